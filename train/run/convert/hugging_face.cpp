// What config.json says, read and written.
#include "train/run/convert/hugging_face.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/shell_quote.h"
#include "train/run/convert/json_file.h"
#include "train/run/convert/safetensors.h"

namespace maki {
namespace {

constexpr NameRule kGpt2Names[] = {
    {.parameter = "wte.weight", .stored = "transformer.wte.weight", .by_token = true},
    {"wpe.weight", "transformer.wpe.weight"},
    {"h.{}.ln_1", "transformer.h.{}.ln_1"},
    {"h.{}.attn.c_attn", "transformer.h.{}.attn.c_attn", Form::transposed},
    {"h.{}.attn.c_proj", "transformer.h.{}.attn.c_proj", Form::transposed},
    {"h.{}.ln_2", "transformer.h.{}.ln_2"},
    {"h.{}.mlp.c_fc", "transformer.h.{}.mlp.c_fc", Form::transposed},
    {"h.{}.mlp.c_proj", "transformer.h.{}.mlp.c_proj", Form::transposed},
    {"ln_f", "transformer.ln_f"},
    {.parameter = "lm_head.weight", .stored = "lm_head.weight", .by_token = true},
};

// q‖k‖v and gate‖up are one parameter each in maki. Both rotate the halves of a head, so no rows change places.
constexpr NameRule kLlamaNames[] = {
    {.parameter = "wte.weight", .stored = "model.embed_tokens.weight", .by_token = true},
    {"h.{}.ln_1.weight", "model.layers.{}.input_layernorm.weight"},
    {"h.{}.attn.c_attn", "model.layers.{}.self_attn.q_proj", Form::same, 0, 3},
    {"h.{}.attn.c_attn", "model.layers.{}.self_attn.k_proj", Form::same, 1, 3},
    {"h.{}.attn.c_attn", "model.layers.{}.self_attn.v_proj", Form::same, 2, 3},
    {"h.{}.attn.c_proj", "model.layers.{}.self_attn.o_proj"},
    {"h.{}.ln_2.weight", "model.layers.{}.post_attention_layernorm.weight"},
    {"h.{}.mlp.c_fc", "model.layers.{}.mlp.gate_proj", Form::same, 0, 2},
    {"h.{}.mlp.c_fc", "model.layers.{}.mlp.up_proj", Form::same, 1, 2},
    {"h.{}.mlp.c_proj", "model.layers.{}.mlp.down_proj"},
    {"ln_f.weight", "model.norm.weight"},
    {.parameter = "lm_head.weight", .stored = "lm_head.weight", .by_token = true},
};

// Limits of what is read from config.json, far above real models: of widths and lengths, and of the numbers of layers
// and heads. Sizes of tensors then fit into 64 bits.
constexpr std::int64_t kMaxExtent = 1'000'000, kMaxLayersOrHeads = 1000;

// The activations that GPT-2 can have. Where transformers has several names for one, the first is written.
constexpr std::pair<Activation, const char*> kActivationNames[] = {
    {Activation::gelu_tanh, "gelu_new"},  {Activation::gelu_tanh, "gelu_pytorch_tanh"},
    {Activation::gelu_tanh, "gelu_fast"}, {Activation::gelu, "gelu"},
    {Activation::gelu, "gelu_python"},    {Activation::relu, "relu"},
    {Activation::relu_squared, "relu2"},  {Activation::silu, "silu"},
    {Activation::silu, "swish"}};

Activation activation_stored_as(const std::string& name, const std::string& path) {
  for (const auto& [activation, stored] : kActivationNames) {
    if (name == stored) return activation;
  }
  fail<CheckpointError>("{}: activation_function must be gelu_new, gelu, relu, relu2 or silu; got {}", path,
                        truncate_for_message(name));
}

void require_flag(const JsonFields& fields, const char* name, bool usual, const std::string& path) {
  check<CheckpointError>(fields.boolean(name, usual) == usual, "{}: {} must be {}, because maki has no such model",
                         path, name, usual);
}

Config gpt2_config(const JsonFields& fields, const std::string& path) {
  Config c;
  c.n_layer = fields.integer("n_layer", kMaxLayersOrHeads);
  c.n_head = fields.integer("n_head", kMaxLayersOrHeads);
  c.n_embd = fields.integer("n_embd", kMaxExtent);
  c.block_size =
      fields.has("n_positions") ? fields.integer("n_positions", kMaxExtent) : fields.integer("n_ctx", kMaxExtent);
  c.activation = activation_stored_as(fields.text("activation_function", "gelu_new"), path);
  c.ffn_width = fields.integer("n_inner", kMaxExtent, 4 * c.n_embd);
  if (c.ffn_width == 4 * c.n_embd) c.ffn_width = 0;
  c.norm_epsilon = fields.number("layer_norm_epsilon", kNormEpsilon);
  c.tie_weights = fields.boolean("tie_word_embeddings", true);
  require_flag(fields, "scale_attn_weights", true, path);
  require_flag(fields, "scale_attn_by_inverse_layer_idx", false, path);
  require_flag(fields, "add_cross_attention", false, path);
  return c;
}

// Without a type, numbers of a scaling would have no effect.
void require_type_of_scaling(const nlohmann::json& rope, const char* name, const std::string& path) {
  const JsonFields fields(rope, path);
  if (fields.has("rope_type") || fields.has("type")) return;
  for (const auto& [member, value] : rope.items()) {
    check<CheckpointError>(member == "rope_theta" || value.is_null(),
                           "{}: {} must have a rope_type, because it has {}; got none", path, name,
                           truncate_for_message(member));
  }
}

// Newer versions of transformers write rope_parameters, older ones rope_theta and rope_scaling.
double rotary_base(const nlohmann::json& object, const JsonFields& fields, const std::string& path) {
  constexpr double kUsualBase = 10000;  // of transformers, where the file has none
  const auto require_plain = [&](const JsonFields& rope) {
    const std::string type = rope.text("rope_type", rope.text("type", "default"));
    check<CheckpointError>(type == "default", "{}: rotary positions must be of the type default; got {}", path,
                           truncate_for_message(type));
    return rope;
  };
  for (const char* const name : {"rope_scaling", "rope_parameters"}) {
    if (!fields.has(name)) continue;
    check<CheckpointError>(object[name].is_object(), "{}: {} must be an object", path, name);
    require_type_of_scaling(object[name], name, path);
    const JsonFields rope = require_plain(JsonFields(object[name], path));
    if (rope.has("rope_theta")) return rope.number("rope_theta", kUsualBase);
  }
  return fields.number("rope_theta", kUsualBase);
}

Config llama_config(const nlohmann::json& object, const JsonFields& fields, const std::string& path) {
  Config c;
  c.n_layer = fields.integer("num_hidden_layers", kMaxLayersOrHeads);
  c.n_head = fields.integer("num_attention_heads", kMaxLayersOrHeads);
  c.n_embd = fields.integer("hidden_size", kMaxExtent);
  c.block_size = fields.integer("max_position_embeddings", kMaxExtent, 2048);
  c.ffn_width = fields.integer("intermediate_size", kMaxExtent);
  if (c.ffn_width == feed_forward_width(c.n_embd, Activation::swiglu)) c.ffn_width = 0;
  c.activation = Activation::swiglu;
  c.norm = NormKind::rms;
  c.positions = Positions::rotary;
  c.position_base = rotary_base(object, fields, path);
  c.norm_epsilon = fields.number("rms_norm_eps", 1e-6);
  c.tie_weights = fields.boolean("tie_word_embeddings", false);
  c.bias = fields.boolean("attention_bias", false);
  check<CheckpointError>(fields.boolean("mlp_bias", false) == c.bias,
                         "{}: attention_bias and mlp_bias must be equal, because maki has biases everywhere or nowhere",
                         path);
  const std::int64_t keys = fields.integer("num_key_value_heads", kMaxLayersOrHeads, c.n_head);
  check<CheckpointError>(c.n_head % keys == 0, "{}: num_key_value_heads must divide num_attention_heads; got {} and {}",
                         path, keys, c.n_head);
  c.n_kv_head = keys == c.n_head ? 0 : keys;
  const std::int64_t head = fields.integer("head_dim", kMaxExtent, c.n_embd / c.n_head);
  check<CheckpointError>(head * c.n_head == c.n_embd,
                         "{}: head_dim must be hidden_size / num_attention_heads; got {} for {} / {}", path, head,
                         c.n_embd, c.n_head);
  const std::string act = fields.text("hidden_act", "silu");
  check<CheckpointError>(act == "silu" || act == "swish", "{}: hidden_act must be silu; got {}", path,
                         truncate_for_message(act));
  return c;
}

// The values that set_field() would accept, so that the run's configuration can be read again.
void require_ranges(const Config& c, const std::string& path) {
  const bool llama = is_like_llama(c);
  for (const auto& [name, stored] : {std::pair{"norm_epsilon", llama ? "rms_norm_eps" : "layer_norm_epsilon"},
                                     std::pair{"position_base", "rope_theta"}}) {
    const Field& field = find_field(name);
    const double value = c.*std::get<double Config::*>(field.member);
    check<CheckpointError>(value >= field.low && value <= field.high, "{}: {} must be from {} to {}; got {}", path,
                           stored, field.low, field.high, value);
  }
  check<CheckpointError>(c.n_embd % c.n_head == 0, "{}: the width {} cannot be divided into {} heads", path, c.n_embd,
                         c.n_head);
  check<CheckpointError>(c.positions != Positions::rotary || c.n_embd / c.n_head % 2 == 0,
                         "{}: heads with rotary positions must have an even width; {} heads of {} have {}", path,
                         c.n_head, c.n_embd, c.n_embd / c.n_head);
}

StoredTensors read_shards(const std::string& directory, const std::string& index) {
  const nlohmann::json object = read_json_object(index);
  check<CheckpointError>(object.contains("weight_map") && object["weight_map"].is_object(),
                         "{}: must contain the object weight_map", index);
  std::vector<std::string> files;
  for (const auto& [tensor, file] : object["weight_map"].items()) {
    const bool is_name = file.is_string() && file.get<std::string>().find('/') == std::string::npos;
    check<CheckpointError>(is_name, "{}: tensor {}: must name a file of the directory", index,
                           truncate_for_message(tensor));
    files.push_back(file.get<std::string>());
  }
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  check<CheckpointError>(!files.empty(), "{}: names no file", index);
  StoredTensors stored = read_safetensors(directory + "/" + files.front());
  for (std::size_t i = 1; i < files.size(); ++i) stored.merge(read_safetensors(directory + "/" + files[i]));
  return stored;
}

StoredTensors read_directory(const std::string& directory) {
  const std::string single = directory + "/model.safetensors", index = single + ".index.json";
  if (file_exists(single)) return read_safetensors(single);
  if (file_exists(index)) return read_shards(directory, index);
  const bool pickled = file_exists(directory + "/pytorch_model.bin");
  fail<CheckpointError>("{}: contains no model.safetensors{}", directory,
                        pickled ? fmt::format("; pytorch_model.bin is a Python pickle; {}", kSaveAsSafetensors) : "");
}

// A file may store a copy of a tied head. A head that differs from the embedding was not tied when it was trained,
// whatever the configuration says; transformers then uses both.
void tie_or_untie(ForeignModel& model) {
  constexpr const char* kHead = "lm_head.weight";
  const StoredTensor* const head = model.stored.find(kHead);
  if (head == nullptr) return;
  const auto embedding = std::ranges::find(model.names, "wte.weight", &NamePair::parameter);
  const StoredTensor* const tied = find_stored(model.stored, embedding->stored, model.rules);
  model.config.tie_weights = tied == nullptr || are_equal(*head, *tied);
  if (model.config.tie_weights) model.rules.ignored.emplace_back(kHead);
}

}  // namespace

ForeignModel open_hugging_face(const std::string& directory) {
  const std::string path = directory + "/config.json";
  const nlohmann::json object = read_json_object(path);
  const JsonFields fields(object, path);
  const std::string type = fields.text("model_type", "");
  ForeignModel model;
  model.path = directory;
  if (type == "gpt2") {
    model.config = gpt2_config(fields, path);
    // Causal masks, which old versions of transformers stored.
    model.rules = {"transformer.", {"*.attn.bias", "*.attn.masked_bias"}};
  } else if (type == "llama") {
    model.config = llama_config(object, fields, path);
    model.rules = {"model.", {"*.rotary_emb.inv_freq"}};
  } else {
    fail<CheckpointError>("{}: model_type must be gpt2 or llama; got {}", path, truncate_for_message(type));
  }
  require_ranges(model.config, path);
  model.names = hugging_face_names(model.config);
  model.vocab_size = fields.integer("vocab_size", 100 * kMaxExtent);
  model.use = read_use(directory);
  model.stored = read_directory(directory);
  if (model.config.tie_weights) tie_or_untie(model);
  return model;
}

bool is_like_llama(const Config& config) {
  return config.norm == NormKind::rms || config.positions == Positions::rotary;
}

std::vector<NamePair> hugging_face_names(const Config& config) {
  return is_like_llama(config) ? expand(kLlamaNames, config.n_layer, config.heads_per_kv_head())
                               : expand(kGpt2Names, config.n_layer);
}

std::string hugging_face_config(const Config& c, std::int64_t vocab_size, const TokenUse& use) {
  nlohmann::ordered_json j;
  const bool llama = is_like_llama(c);
  j["architectures"] = {llama ? "LlamaForCausalLM" : "GPT2LMHeadModel"};
  j["model_type"] = llama ? "llama" : "gpt2";
  j["vocab_size"] = vocab_size;
  if (llama) {
    j["hidden_size"] = c.n_embd;
    j["intermediate_size"] = c.hidden_width();
    j["num_hidden_layers"] = c.n_layer;
    j["num_attention_heads"] = c.n_head;
    j["num_key_value_heads"] = c.kv_heads();
    j["max_position_embeddings"] = c.block_size;
    j["hidden_act"] = "silu";
    j["rms_norm_eps"] = c.norm_epsilon;
    j["rope_theta"] = c.position_base;
    j["attention_bias"] = j["mlp_bias"] = c.bias;
    j["attention_dropout"] = c.dropout;
  } else {
    j["n_positions"] = c.block_size;
    j["n_embd"] = c.n_embd;
    j["n_layer"] = c.n_layer;
    j["n_head"] = c.n_head;
    j["n_inner"] = c.ffn_width > 0 ? nlohmann::ordered_json(c.hidden_width()) : nullptr;
    j["activation_function"] =
        std::ranges::find(kActivationNames, c.activation, &std::pair<Activation, const char*>::first)->second;
    j["resid_pdrop"] = j["embd_pdrop"] = j["attn_pdrop"] = c.dropout;
    j["layer_norm_epsilon"] = c.norm_epsilon;
  }
  j["initializer_range"] = kInitStd;
  put_use(j, use);
  j["tie_word_embeddings"] = c.tie_weights;
  j["torch_dtype"] = to_string(c.dtype);
  return j.dump(2) + "\n";
}

}  // namespace maki
