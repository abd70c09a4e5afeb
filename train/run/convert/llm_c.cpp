// Checkpoints of llm.c (Karpathy): a header of 256 int32, then all tensors of a GPT-2 without names, each kind over all
// blocks. https://github.com/karpathy/llm.c, train_gpt2.py: write_model().
#include <algorithm>
#include <array>

#include "data/dataset/foreign_tokens.h"
#include "data/io/error.h"
#include "data/io/printable.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/run/config/models.h"
#include "train/run/convert/hugging_face.h"
#include "train/run/convert/model_formats.h"

namespace maki {
namespace {

using Header = std::array<std::int32_t, 256>;
constexpr std::int32_t kFloat32Version = 3, kBfloat16Version = 5;  // of train_gpt2.py
constexpr std::int64_t kVocabMultiple = 128;  // write_model() pads the vocabulary to a multiple of this
// Limits of what is read from the header, far above real models: of widths and lengths, and of the numbers of layers
// and heads.
constexpr std::int32_t kMaxSize = 1'000'000, kMaxCount = 1000;

// In the order of the file; the names are those of maki.
constexpr NameRule kLlmCNames[] = {{.parameter = "wte.weight", .by_token = true},
                                   {"wpe.weight"},
                                   {"h.{}.ln_1"},
                                   {"h.{}.attn.c_attn"},
                                   {"h.{}.attn.c_proj"},
                                   {"h.{}.ln_2"},
                                   {"h.{}.mlp.c_fc"},
                                   {"h.{}.mlp.c_proj"},
                                   {"ln_f"}};

struct Sizes {
  std::int64_t block_size, vocab_size, n_layer, n_head, n_embd, padded_vocab;
};

Sizes read_sizes(const Header& header, const std::string& path) {
  const std::array<std::int32_t, 6> most = {kMaxSize, 100 * kMaxSize, kMaxCount, kMaxCount, kMaxSize, 100 * kMaxSize};
  constexpr std::array kNames = {"maxT", "V", "L", "NH", "C", "Vp"};
  for (std::size_t i = 0; i < most.size(); ++i) {
    check<CorruptFile>(header[2 + i] >= 1 && header[2 + i] <= most[i], "{}: {} must be from 1 to {}; got {}", path,
                       kNames[i], most[i], header[2 + i]);
  }
  const Sizes sizes{header[2], header[3], header[4], header[5], header[6], header[7]};
  check<CorruptFile>(sizes.padded_vocab >= sizes.vocab_size && sizes.n_embd % sizes.n_head == 0,
                     "{}: its sizes contradict each other: V {}, Vp {}, C {}, NH {}", path, sizes.vocab_size,
                     sizes.padded_vocab, sizes.n_embd, sizes.n_head);
  return sizes;
}

Config llm_c_config(const Sizes& sizes) {
  Config c;
  c.block_size = sizes.block_size;
  c.n_layer = sizes.n_layer;
  c.n_head = sizes.n_head;
  c.n_embd = sizes.n_embd;
  c.activation = Activation::gelu_tanh;
  return c;
}

// The tensors behind the header, in the order of the names: `layout` has their shapes.
std::vector<StoredTensor> locate(const std::vector<NamePair>& names, const ParameterStore& layout, const Sizes& sizes,
                                 NumberType type, const std::shared_ptr<const StableFile>& file) {
  std::vector<StoredTensor> tensors;
  std::uint64_t at = sizeof(Header);
  for (const NamePair& name : names) {
    const Shape& extents = layout.find(name.parameter).shape();
    std::vector<std::int64_t> shape(extents.extents().begin(), extents.extents().end());
    if (name.by_token) shape[0] = sizes.padded_vocab;
    std::uint64_t bytes = bits_of(type) / 8;
    for (const std::int64_t n : shape) bytes *= static_cast<std::uint64_t>(n);  // below 2^58: checked by the store
    check<CorruptFile>(bytes <= file->size() - at, "{}: is too short for the model of its header; got {} bytes",
                       file->path(), file->size());
    tensors.push_back({name.stored, type, std::move(shape), at, bytes, file});
    at += bytes;
  }
  check<CorruptFile>(at == file->size(), "{}: must have {} bytes according to its header; got {}", file->path(), at,
                     file->size());
  std::ranges::sort(tensors, {}, &StoredTensor::name);
  return tensors;
}

ForeignModel open_llm_c(const std::string& path) {
  ForeignModel model;
  model.path = model.stored.path = path;
  const auto file = std::make_shared<const StableFile>(path, throw_as<CheckpointError>);
  Header header{};
  const std::size_t there = std::min<std::uint64_t>(file->size(), sizeof header);
  file->read(0, std::as_writable_bytes(std::span(header)).first(there));
  check<CorruptFile>(header[0] == kLlmCModelMagic,
                     "{}: is neither a directory of Hugging Face nor a checkpoint of llm.c, whose first number must be "
                     "{}; got {}",
                     path, kLlmCModelMagic, header[0]);
  check<CorruptFile>(there == sizeof header, "{}: is too short for a checkpoint of llm.c; got {} bytes", path, there);
  check<CheckpointError>(header[1] == kFloat32Version || header[1] == kBfloat16Version,
                         "{}: must have version {} (float32) or {} (bfloat16); got {}", path, kFloat32Version,
                         kBfloat16Version, header[1]);
  const Sizes sizes = read_sizes(header, path);
  model.config = llm_c_config(sizes);
  model.vocab_size = sizes.vocab_size;  // other rows pad it
  model.names = expand(kLlmCNames, sizes.n_layer);
  ParameterStore layout;
  const std::unique_ptr<Model> network = make_model(model.config, {sizes.padded_vocab}, Scope(layout));
  layout.assign_offsets();
  model.stored.tensors =
      locate(model.names, layout, sizes, header[1] == kFloat32Version ? NumberType::f32 : NumberType::bf16, file);
  return model;
}

Exported write_llm_c(const LoadedModel& model, const ExportOptions& options, FileSystem& fs) {
  const Config& config = model.state.config;
  const std::string target = "llm.c";
  require_gpt2(config, target);
  require_gelu_tanh(config.activation, options, target);
  check(config.tie_weights, "export: {} needs tie_weights = true; the model has false", target);
  check(config.hidden_width() == 4 * config.n_embd,
        "export: {} needs ffn_width = 0, that is 4 n_embd; the model has {}", target, config.ffn_width);
  check(config.norm_epsilon == kNormEpsilon, "export: {} needs norm_epsilon = {}; the model has {}", target,
        kNormEpsilon, config.norm_epsilon);
  const std::int64_t vocab = model.state.vocab_size,
                     padded = (vocab + kVocabMultiple - 1) / kVocabMultiple * kVocabMultiple;
  Header header{};
  const std::array<std::int64_t, 8> numbers = {kLlmCModelMagic, kFloat32Version, config.block_size, vocab,
                                               config.n_layer,  config.n_head,   config.n_embd,     padded};
  std::ranges::transform(numbers, header.begin(), [](std::int64_t n) { return static_cast<std::int32_t>(n); });
  const std::vector<OwnedTensor> weights =
      collect_weights(model.store, expand(kLlmCNames, config.n_layer), {.zero_biases = true, .token_rows = padded});
  std::vector<Bytes> pieces = {std::as_bytes(std::span(header))};
  for (const OwnedTensor& tensor : weights) pieces.emplace_back(tensor.bytes);
  const OutputPath out = with_tokenizer(options.out, model);
  write_output(fs, out, pieces);
  return {{out.companion_path(), out.path}};
}

}  // namespace

extern constinit const ModelFormat kLlmC = {
    .name = "llm.c",
    .help = "a checkpoint of llm.c",
    .write = write_llm_c,
    .is_tanh = true,
    .reads = "a checkpoint of llm.c",
    .detect = [](const std::string&) { return true; },  // opening it says what a file is not
    .open = open_llm_c};

}  // namespace maki
