// A model with its tokenizer for llama.cpp.
#include <algorithm>
#include <cstring>
#include <set>

#include "autograd/core/check.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/byte_tokenizer.h"
#include "data/tokenizer/tokenizer_config.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/run/convert/gguf_file.h"
#include "train/run/convert/hugging_face.h"
#include "train/run/convert/model_formats.h"
#include "train/run/convert/weights.h"

namespace maki {
namespace {

constexpr NameRule kGgufGpt2Names[] = {
    {"wte.weight", "token_embd.weight"},
    {"wpe.weight", "position_embd.weight"},
    {"h.{}.ln_1", "blk.{}.attn_norm"},
    {"h.{}.attn.c_attn", "blk.{}.attn_qkv"},
    {"h.{}.attn.c_proj", "blk.{}.attn_output"},
    {"h.{}.ln_2", "blk.{}.ffn_norm"},
    {"h.{}.mlp.c_fc", "blk.{}.ffn_up"},
    {"h.{}.mlp.c_proj", "blk.{}.ffn_down"},
    {"ln_f", "output_norm"},
    {"lm_head.weight", "output.weight"},
};

// llama.cpp rotates neighbouring rows of a Llama, so those of queries and keys change places.
constexpr NameRule kGgufLlamaNames[] = {
    {"wte.weight", "token_embd.weight"},
    {"h.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
    {"h.{}.attn.c_attn.weight", "blk.{}.attn_q.weight", Form::rotary_pairs, 0, 3},
    {"h.{}.attn.c_attn.weight", "blk.{}.attn_k.weight", Form::rotary_pairs, 1, 3},
    {"h.{}.attn.c_attn.weight", "blk.{}.attn_v.weight", Form::same, 2, 3},
    {"h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight"},
    {"h.{}.ln_2.weight", "blk.{}.ffn_norm.weight"},
    {"h.{}.mlp.c_fc.weight", "blk.{}.ffn_gate.weight", Form::same, 0, 2},
    {"h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight", Form::same, 1, 2},
    {"h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight"},
    {"ln_f.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
};

std::uint32_t u32(std::int64_t n) { return static_cast<std::uint32_t>(n); }

void add_sizes(GgufFile& file, const Config& c, bool llama, std::int64_t vocab_size) {
  const std::string at = llama ? "llama." : "gpt2.";
  file.add("general.architecture", std::string(llama ? "llama" : "gpt2"));
  file.add(at + "vocab_size", u32(vocab_size));
  file.add(at + "context_length", u32(c.block_size));
  file.add(at + "embedding_length", u32(c.n_embd));
  file.add(at + "block_count", u32(c.n_layer));
  file.add(at + "feed_forward_length", u32(c.hidden_width()));
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
  const std::vector<std::string> bytes = bpe_vocabulary(ByteTokenizer()).tokens;
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

// The name of llama.cpp for a rule of the pre-tokenizer. It knows llama-bpe as that of tokenizers that take a piece as
// a whole if it is a token, and all others as those of tokenizers that do not.
struct PreTokenizerName {
  const char* rule;
  bool whole_pieces;
  const char* name;
};
constexpr PreTokenizerName kPreTokenizers[] = {{"gpt2", false, "gpt-2"},
                                               {"cl100k", true, "llama-bpe"},
                                               {"cl100k", false, "dbrx"},
                                               {"qwen2", false, "qwen2"},
                                               {"o200k", false, "gpt-4o"}};

std::string pre_tokenizer_name(const BpeVocabulary& vocabulary) {
  for (const PreTokenizerName& each : kPreTokenizers) {
    if (vocabulary.rule == each.rule && vocabulary.whole_pieces == each.whole_pieces) return each.name;
  }
  fail("export: llama.cpp has no name for a tokenizer with the rule {} that {}; choose the format hf", vocabulary.rule,
       vocabulary.whole_pieces ? "takes a piece as a whole if it is a token (ignore_merges)" : "merges every piece");
}

// The expressions of llama.cpp are those of the rules, except for gpt-4o.
std::vector<std::string> notes_about(const BpeVocabulary& vocabulary, const std::string& path) {
  if (vocabulary.rule != "o200k") return {};
  return {fmt::format(
      "{}: llama.cpp cuts texts almost as the rule o200k does: it knows no combining marks, and no capital letters but "
      "those of ASCII, so that Hindi, Thai or decomposed accents become other tokens; `format` hf keeps the rule",
      path)};
}

void check_added(const BpeVocabulary& vocabulary) {
  for (const AddedToken& token : vocabulary.added) {
    check(!token.lstrip && !token.rstrip && !token.single_word,
          "export: llama.cpp cannot look for the added token {} together with the white space beside it, or only as a "
          "word of its own (lstrip, rstrip, single_word); choose the format hf",
          vocabulary.tokens.at(static_cast<std::size_t>(token.id)));
  }
}

BpeVocabulary vocabulary_of(const Tokenizer& tokenizer) {
  const bool by_character = is_by_character(tokenizer);
  check(!by_character || tokenizer.use() == TokenUse(),
        "export: a GGUF file of characters cannot say that some of them begin or end texts, as the model's tokenizer "
        "does; choose the format safetensors");
  check(
      by_character || is_byte_level(tokenizer),
      "export: a GGUF file needs a tokenizer of bytes, of byte-level BPE, or of characters without normalization; the "
      "model has one of the kind {}",
      tokenizer.kind());
  check(tokenizer.normalization() == Normalization::none,
        "export: a GGUF file cannot say that text is normalized before it is encoded, as this model's tokenizer does; "
        "choose the format hf, or train without `normalize`");
  if (by_character) return char_vocabulary(tokenizer);
  BpeVocabulary vocabulary = bpe_vocabulary(tokenizer);
  check_added(vocabulary);
  return vocabulary;
}

// llama.cpp ends texts at some token, whatever a file says. A vocabulary without such a token gets one as its last,
// which the model never writes: see append_mean_row().
TokenUse with_end(BpeVocabulary& vocabulary, const Tokenizer& tokenizer) {
  TokenUse use = complete_use(tokenizer);
  if (!use.ends.empty()) return use;
  const auto end = static_cast<std::int32_t>(vocabulary.tokens.size());
  check(std::ranges::find(vocabulary.tokens, kEndOfText) == vocabulary.tokens.end(),
        "export: a GGUF file needs a token that ends a text; the vocabulary has {}, but not as a special token; choose "
        "the format hf",
        kEndOfText);
  vocabulary.tokens.emplace_back(kEndOfText);
  vocabulary.added.push_back({.id = end});
  use.ends = {end};
  return use;
}

std::vector<std::int32_t> token_types(const BpeVocabulary& vocabulary) {
  constexpr std::int32_t kNormal = 1, kControl = 3, kUserDefined = 4;  // of llama.cpp: llama_token_type
  std::vector<std::int32_t> types(vocabulary.tokens.size(), kNormal);
  for (const AddedToken& token : vocabulary.added)
    types.at(static_cast<std::size_t>(token.id)) = token.special ? kControl : kUserDefined;
  return types;
}

void add_use(GgufFile& file, const TokenUse& use) {
  const auto add_id = [&](const std::string& name, std::int32_t id) {
    file.add("tokenizer.ggml." + name + "_token_id", static_cast<std::uint32_t>(id));
  };
  constexpr const char* kEnds[] = {"eos", "eot", "eom"};  // of a text, a turn, a message
  check(use.ends.size() <= std::size(kEnds),
        "export: a GGUF file can name {} tokens at which generation stops; the model has {}; choose the format hf",
        std::size(kEnds), use.ends.size());
  for (std::size_t i = 0; i < use.ends.size(); ++i) add_id(kEnds[i], use.ends[i]);
  const auto id_of = [&](std::optional<std::int32_t> of_model, const char* role) {
    const auto found = use.roles.find(role);
    return of_model ? *of_model : found != use.roles.end() ? found->second : use.ends.front();
  };
  add_id("bos", id_of(use.begin, "bos_token"));
  add_id("padding", id_of(use.pad, "pad_token"));
  file.add("tokenizer.ggml.add_bos_token", false);
  std::vector<std::string> names;
  for (const auto& [name, text] : use.chat_templates) {
    const bool usual = name == "default";
    file.add(usual ? "tokenizer.chat_template" : "tokenizer.chat_template." + name, text);
    if (!usual) names.push_back(name);
  }
  if (!names.empty()) file.add("tokenizer.chat_templates", names);
}

void add_vocabulary(GgufFile& file, const BpeVocabulary& vocabulary, const TokenUse& use) {
  file.add("tokenizer.ggml.model", std::string("gpt2"));
  file.add("tokenizer.ggml.pre", pre_tokenizer_name(vocabulary));
  file.add("tokenizer.ggml.tokens", vocabulary.tokens);
  file.add("tokenizer.ggml.token_type", token_types(vocabulary));
  file.add("tokenizer.ggml.merges", vocabulary.merges);
  add_use(file, use);
}

// A row for a token that was added to a matrix with a row for every other token. It is the mean of the others, so that
// its logit is the mean of theirs: never the greatest, and its probability is at most theirs in the geometric mean.
void append_mean_row(std::vector<std::int64_t>& shape, std::vector<float>& values) {
  const auto rows = static_cast<std::size_t>(shape[0]), columns = static_cast<std::size_t>(shape[1]);
  for (std::size_t column = 0; column < columns; ++column) {
    double sum = 0;
    for (std::size_t row = 0; row < rows; ++row) sum += static_cast<double>(values[row * columns + column]);
    values.push_back(static_cast<float>(sum / static_cast<double>(rows)));
  }
  ++shape[0];
}

// Vectors and positions stay float32, as llama.cpp expects. A matrix with rows that whole blocks of Q8_0 do not fill is
// stored as float16.
GgufType type_of(const OwnedTensor& tensor, GgufType wanted) {
  if (tensor.shape.size() < 2 || tensor.name == "position_embd.weight") return GgufType::f32;
  const bool fills = tensor.shape[1] % static_cast<std::int64_t>(kQ8Block) == 0;
  return wanted == GgufType::q8_0 && !fills ? GgufType::f16 : wanted;
}

Exported write_gguf(const LoadedModel& model, const ExportOptions& options, FileSystem& fs) {
  const Config& config = model.state.config;
  const GgufType type = options.gguf_type.empty() ? GgufType::f32 : gguf_type_named(options.gguf_type);
  const bool llama = is_like_llama(config);
  const std::string target = llama ? "a Llama of llama.cpp" : "a GPT-2 of llama.cpp";
  (llama ? require_llama : require_gpt2)(config, target);
  if (llama) {
    check(!config.bias, "export: {} needs bias = false; the model has true", target);
  } else {
    require_gelu_tanh(config.activation, options, target);
  }
  BpeVocabulary vocabulary = vocabulary_of(*model.tokenizer);
  const TokenUse use = with_end(vocabulary, *model.tokenizer);
  const auto tokens = std::ssize(vocabulary.tokens);
  const bool adds_end = tokens > model.state.vocab_size;
  GgufFile file;
  add_sizes(file, config, llama, tokens);
  // Of llama.cpp: GGML_QNT_VERSION and llama_ftype.
  constexpr std::uint32_t kQuantizationVersion = 2, kMostlyF16 = 1, kMostlyQ8 = 7;
  file.add("general.file_type", type == GgufType::f32 ? 0U : type == GgufType::f16 ? kMostlyF16 : kMostlyQ8);
  file.add("general.quantization_version", kQuantizationVersion);
  add_vocabulary(file, vocabulary, use);
  if (adds_end) file.add("tokenizer.ggml.suppress_tokens", use.ends);
  const std::vector<OwnedTensor> weights =
      collect_weights(model.store,
                      llama ? expand(kGgufLlamaNames, config.n_layer, config.heads_per_kv_head())
                            : expand(kGgufGpt2Names, config.n_layer),
                      {.head_size = config.n_embd / config.n_head, .zero_biases = !llama});
  for (const OwnedTensor& tensor : weights) {
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    read_numbers(tensor.type, tensor.bytes, std::span<float>(values));
    std::vector<std::int64_t> shape = tensor.shape;
    if (adds_end && (tensor.name == "token_embd.weight" || tensor.name == "output.weight"))
      append_mean_row(shape, values);
    const GgufType own = type_of(tensor, type);
    file.add_tensor(tensor.name, shape, own, gguf_numbers(own, values));
  }
  file.write(fs, options.out);
  return {{options.out.path}, notes_about(vocabulary, options.out.path)};
}

}  // namespace

extern constinit const ModelFormat kGguf = {
    .name = "gguf", .help = "a file for llama.cpp", .write = write_gguf, .is_tanh = true, .has_number_type = true};

}  // namespace maki
