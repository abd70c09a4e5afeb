// A model with its tokenizer for llama.cpp.
#include <algorithm>
#include <cstring>
#include <set>

#include "autograd/core/check.h"
#include "data/tokenizer/normalized_tokenizer.h"
#include "data/tokenizer/tokenizer_files.h"
#include "nn/transformer.h"
#include "train/convert/export_model.h"
#include "train/convert/gguf_file.h"
#include "train/convert/hugging_face.h"
#include "train/convert/weights.h"

namespace maki {
namespace {

std::uint32_t u32(std::int64_t n) { return static_cast<std::uint32_t>(n); }

void add_sizes(GgufFile& file, const Config& c, bool llama, std::int64_t vocab_size) {
  const std::string at = llama ? "llama." : "gpt2.";
  const std::int64_t width =
      c.ffn_width > 0 ? c.ffn_width : feed_forward_width(c.n_embd, activation_named(c.activation));
  file.add("general.architecture", std::string(llama ? "llama" : "gpt2"));
  file.add(at + "vocab_size", u32(vocab_size));
  file.add(at + "context_length", u32(c.block_size));
  file.add(at + "embedding_length", u32(c.n_embd));
  file.add(at + "block_count", u32(c.n_layer));
  file.add(at + "feed_forward_length", u32(width));
  file.add(at + "attention.head_count", u32(c.n_head));
  file.add(at + (llama ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon"),
           static_cast<float>(c.norm_epsilon));
  if (!llama) return;
  file.add(at + "attention.head_count_kv", u32(c.kv_heads()));
  file.add(at + "rope.dimension_count", u32(c.n_embd / c.n_head));
  file.add(at + "rope.freq_base", static_cast<float>(c.position_base));
}

// A tokenizer of characters as byte-level BPE whose merges join the bytes of each character, from left to right.
BpeVocabulary char_vocabulary(const Tokenizer& tokenizer) {
  const std::vector<std::string> bytes = bpe_vocabulary(*make_tokenizer("byte", "")).tokens;
  BpeVocabulary vocabulary;
  std::set<std::string> known;  // characters share their first bytes
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    std::string joined;
    for (const char c : tokenizer.bytes(id)) {
      const std::string& next = bytes[static_cast<unsigned char>(c)];
      const std::string merge = fmt::format("{} {}", joined, next);
      if (!joined.empty() && known.insert(merge).second) vocabulary.merges.push_back(merge);
      joined += next;
    }
    vocabulary.tokens.push_back(joined);
  }
  return vocabulary;
}

void add_vocabulary(GgufFile& file, const Tokenizer& tokenizer) {
  const bool plain = is_plain_char_tokenizer(tokenizer);
  check(
      plain || (tokenizer.kind() != "word" && tokenizer.kind() != "char"),
      "export: a GGUF file needs a tokenizer of bytes, of byte-level BPE, or of characters without normalization; the "
      "model has one of the kind {}",
      tokenizer.kind());
  check(dynamic_cast<const NormalizedTokenizer*>(&tokenizer) == nullptr,
        "export: a GGUF file cannot say that text is normalized before it is encoded, as this model's tokenizer does; "
        "choose the format hf, or train without --normalize");
  const BpeVocabulary vocabulary = plain ? char_vocabulary(tokenizer) : bpe_vocabulary(tokenizer);
  constexpr std::int32_t kNormal = 1, kControl = 3;  // of llama.cpp: llama_token_type
  std::vector<std::int32_t> types(vocabulary.tokens.size(), kNormal);
  if (vocabulary.end_of_text) types.at(static_cast<std::size_t>(*vocabulary.end_of_text)) = kControl;
  // Without the key, llama.cpp ends texts at id 11. A vocabulary without such a token gives its last id, which is a
  // rare character, or a byte that no UTF-8 has.
  const auto end = static_cast<std::uint32_t>(
      vocabulary.end_of_text.value_or(static_cast<std::int32_t>(vocabulary.tokens.size()) - 1));
  file.add("tokenizer.ggml.model", std::string("gpt2"));
  file.add("tokenizer.ggml.pre", std::string("gpt-2"));
  file.add("tokenizer.ggml.tokens", vocabulary.tokens);
  file.add("tokenizer.ggml.token_type", types);
  file.add("tokenizer.ggml.merges", vocabulary.merges);
  file.add("tokenizer.ggml.bos_token_id", end);
  file.add("tokenizer.ggml.eos_token_id", end);
  file.add("tokenizer.ggml.add_bos_token", false);
}

// Vectors and positions stay float32, as llama.cpp expects. A matrix with rows that whole blocks of Q8_0 do not fill is
// stored as float16.
GgufType type_of(const StoredTensor& tensor, GgufType wanted) {
  if (tensor.shape.size() < 2 || tensor.name == "position_embd.weight") return GgufType::f32;
  const bool fills = tensor.shape[1] % static_cast<std::int64_t>(kQ8Block) == 0;
  return wanted == GgufType::q8_0 && !fills ? GgufType::f16 : wanted;
}

}  // namespace

std::vector<std::string> write_gguf(const LoadedModel& model, const ExportOptions& options, FileSystem& fs) {
  const Config& config = model.state.config;
  const GgufType type = gguf_type_named(options.gguf_type);
  const bool llama = is_like_llama(config);
  const std::string target = llama ? "a Llama of llama.cpp" : "a GPT-2 of llama.cpp";
  (llama ? require_llama : require_gpt2)(config, target);
  if (llama) {
    check(!config.bias, "export: {} needs bias = false; the model has true", target);
  } else {
    require_gelu_tanh(config.activation, options, target);
  }
  GgufFile file;
  add_sizes(file, config, llama, model.state.vocab_size);
  // Of llama.cpp: GGML_QNT_VERSION and llama_ftype.
  constexpr std::uint32_t kQuantizationVersion = 2, kMostlyF16 = 1, kMostlyQ8 = 7;
  file.add("general.file_type", type == GgufType::f32 ? 0U : type == GgufType::f16 ? kMostlyF16 : kMostlyQ8);
  file.add("general.quantization_version", kQuantizationVersion);
  add_vocabulary(file, *model.tokenizer);
  const OwnedTensors weights = collect_weights(
      model.store, expand(llama ? gguf_llama_names() : gguf_gpt2_names(), config.n_layer, config.heads_per_kv_head()),
      {.head_size = config.n_embd / config.n_head, .zero_biases = !llama});
  for (const StoredTensor& tensor : weights.tensors) {
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    read_numbers(tensor.type, tensor.bytes, std::span<float>(values));
    const GgufType own = type_of(tensor, type);
    file.add_tensor(tensor.name, tensor.shape, own, gguf_numbers(own, values));
  }
  file.write(fs, options.out);
  return {options.out.path};
}

}  // namespace maki
