// Directories of Hugging Face against what transformers computes with them (tests/fixtures/make_hugging_face.py), and
// the way back.
#include "train/run/convert/hugging_face.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "autograd/ops.h"
#include "autograd/tape.h"
#include "data/io/error.h"
#include "tests/catch.h"
#include "tests/max_or_nan.h"
#include "tests/train/imported.h"
#include "train/run/convert/model_formats.h"
#include "train/run/convert/safetensors.h"

using namespace maki;
using namespace maki::tests;

namespace {

Tensor values_of(const StoredTensors& file, const std::string& name, const Shape& shape) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  file.find(name)->read(std::span(values));
  return tensor(values, shape);
}

Tensor ids_of(const StoredTensors& file, const std::string& name) {
  const Tensor numbers = values_of(file, name, {2, 7});
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < numbers.numel(); ++i) ids.push_back(static_cast<std::int32_t>(numbers.at(i)));
  return tensor(ids, {2, 7});
}

double largest_gap(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  double gap = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i)
    gap = max_or_nan(gap, std::abs(a.at(i) - b.at(i)) / (1 + std::abs(b.at(i))));
  return gap;
}

// The logits of the last token of each prefix, as generation computes them: [2, V] each.
double largest_gap_of_logits(const LoadedModel& loaded, const Tensor& ids, const Tensor& expected) {
  double gap = 0;
  const std::unique_ptr<State> state = loaded.generator().start(2);
  for (std::int64_t t = 0; t < 7; ++t) {
    const auto id = [&](std::int64_t row) { return static_cast<std::int32_t>(ids.at(row * 7 + t)); };
    const Tensor logits = loaded.generator().next_logits(tensor(std::vector{id(0), id(1)}, {2, 1}), *state);
    gap = max_or_nan(gap, largest_gap(logits, reshape(slice(expected, 1, t, t + 1), {2, 13})));
  }
  return gap;
}

double loss_of(LoadedModel& loaded, const StoredTensors& values, Tape& tape) {
  const Recording on(tape);
  const Batch batch{.ids = ids_of(values, "ids"), .targets = ids_of(values, "targets"), .target_count = 14};
  const Tensor loss = loaded.model->loss(batch, {});
  const double value = loss.item();
  tape.backward(loss);
  return value;
}

constexpr std::pair<DType, double> kBounds[] = {{DType::float32, 1e-5}, {DType::float64, 1e-11}};

}  // namespace

TEST_CASE("transformers: logits and loss of imported models") {
  const TemporaryFolder folder;
  for (const std::string name : {"gpt2", "gpt2-old", "llama", "llama-tied", "llama-grouped"}) {
    const std::string checkpoint = import_into(hugging_face_fixture(name), folder / name);
    const StoredTensors values = read_safetensors(hugging_face_fixture(name) + "/values.safetensors");
    for (const auto& [dtype, error] : kBounds) {
      INFO(name << " " << to_string(dtype));
      LoadedModel loaded(checkpoint, dtype);
      REQUIRE(largest_gap_of_logits(loaded, ids_of(values, "ids"), values_of(values, "logits", {2, 7, 13})) < error);
      Tape tape;
      REQUIRE(std::abs(loss_of(loaded, values, tape) - values_of(values, "loss", {1}).item()) < error);
    }
  }
}

TEST_CASE("transformers: the gradient of every weight of imported models") {
  const TemporaryFolder folder;
  for (const std::string name : {"gpt2", "llama", "llama-grouped"}) {
    const std::string path = hugging_face_fixture(name);
    const std::string checkpoint = import_into(path, folder / name);
    const StoredTensors values = read_safetensors(path + "/values.safetensors");
    const ForeignModel foreign = open_foreign_model(path);
    for (const auto& [dtype, error] : kBounds) {
      LoadedModel loaded(checkpoint, dtype), expected(checkpoint, dtype);
      load_weights(read_safetensors(path + "/gradients.safetensors"), foreign.names, foreign.rules, expected.store);
      Tape tape;
      loss_of(loaded, values, tape);
      for (std::size_t i = 0; i < loaded.store.parameters().size(); ++i) {
        const Parameter& parameter = *loaded.store.parameters()[i];
        INFO(name << " " << to_string(dtype) << " " << parameter.name());
        REQUIRE(largest_gap(parameter.gradient(), expected.store.parameters()[i]->value()) < error);
      }
    }
  }
}

TEST_CASE("what is imported and exported again has the same bytes") {
  const TemporaryFolder folder;
  for (const std::string name : {"gpt2", "llama", "llama-tied", "llama-grouped"}) {
    INFO(name);
    const LoadedModel loaded(import_into(hugging_face_fixture(name), folder / name));
    const std::string out = folder / (name + "-out");
    export_model(loaded, "hf", {.out = out});
    const std::string before = hugging_face_fixture(name);
    REQUIRE(read_bytes(out + "/model.safetensors") == read_bytes(before + "/model.safetensors"));
    REQUIRE(read_bytes(out + "/maki-tokenizer") == read_bytes(before + "/maki-tokenizer"));
    const auto tokenizer = nlohmann::json::parse(read_bytes(out + "/tokenizer.json"));
    REQUIRE(tokenizer["model"]["vocab"].size() == 13);
    REQUIRE(tokenizer["model"]["vocab"]["c"] == 2);
    // And the configuration means the same.
    const LoadedModel again(import_into(out, folder / (name + "-again")));
    REQUIRE(training_toml(again.state.config) == training_toml(loaded.state.config));
    const auto written = nlohmann::json::parse(read_bytes(out + "/config.json"));
    const auto original = nlohmann::json::parse(read_bytes(before + "/config.json"));
    for (const char* const key : {"initializer_range", "tie_word_embeddings", "model_type", "vocab_size"})
      REQUIRE(written.contains(key));
    for (const auto& [key, value] : written.items()) {
      if (!original.contains(key) || key.find("drop") != std::string::npos) continue;
      INFO(key);
      REQUIRE(original[key] == value);
    }
  }
}

TEST_CASE("characters are exported with their normalization, and that words are not is said") {
  const TemporaryFolder folder;
  const auto exported = [&](const std::string& name, const Tokenizer& tokenizer) {
    const std::string copy = changed_fixture(folder, "gpt2", "{", "{");
    write_bytes(copy + "/maki-tokenizer", tokenizer.save());
    return export_model(LoadedModel(import_into(copy, folder / (name + "-run"))), "hf", {.out = folder / name}).notes;
  };
  const auto characters = make_tokenizer("char", "abcdefghijklm", {.normalization = Normalization::nfkc});
  REQUIRE(exported("characters", *characters).empty());
  const auto written = nlohmann::json::parse(read_bytes(folder / "characters/tokenizer.json"));
  REQUIRE(written.at("normalizer") == nlohmann::json{{"type", "NFKC"}});
  REQUIRE(written.at("model").at("vocab").size() == 13);
  const LoadedModel again(import_into(folder / "characters", folder / "again"));
  REQUIRE(again.tokenizer->hash() == characters->hash());

  const std::string none = ": has no tokenizer.json, which cannot express ";
  REQUIRE(exported("words", *make_tokenizer("word", "ab ab")) ==
          std::vector{folder / "words" + none + "a vocabulary of words; only maki reads maki-tokenizer"});
  REQUIRE_FALSE(std::filesystem::exists(folder / "words/tokenizer.json"));
  const auto ending = make_tokenizer("char", "abcdefghijklm");
  ending->set_use({.ends = {3}});
  REQUIRE_THAT(exported("ending", *ending).at(0), ContainsSubstring(none + "characters that begin or end a text"));
}

TEST_CASE("an old file of GPT-2 is read: no prefix, stored masks and head, padded vocabulary") {
  const TemporaryFolder folder;
  const ForeignModel model = open_foreign_model(hugging_face_fixture("gpt2-old"));
  REQUIRE(model.stored.find("h.0.attn.bias") != nullptr);
  const Imported run = import_run(model, *tokenizer_for(model), folder / "run");
  REQUIRE(run.padding == 3);
  REQUIRE(run.vocab_size == 13);
  REQUIRE(run.config.ffn_width == 12);
  REQUIRE(run.config.activation == Activation::relu);
  REQUIRE(run.config.norm_epsilon == 0.01);
}

TEST_CASE("an embedding with more rows than padding is refused, whatever the configuration says") {
  const TemporaryFolder folder;
  const std::string copy = changed_fixture(folder, "gpt2", "{", "{"), file = copy + "/model.safetensors";
  std::vector<OwnedTensor> tensors = owned(read_safetensors(hugging_face_fixture("gpt2") + "/model.safetensors"));
  for (OwnedTensor& tensor : tensors) {
    if (tensor.name != "transformer.wte.weight") continue;
    tensor.shape[0] = 13 + 1024;
    tensor.bytes.resize(static_cast<std::size_t>(tensor.shape[0] * tensor.shape[1]) * sizeof(float));
  }
  write_safetensors(posix_file_system(), {file, true}, tensors);
  REQUIRE_THAT(error_message<CheckpointError>([&] { import_into(copy, folder / "run"); }),
               ContainsSubstring("at most 1023 rows") && ContainsSubstring("it has 1024 rows more"));
}

TEST_CASE("one tensor of float64 is enough for a model of float64, and one that is not read is none") {
  const TemporaryFolder folder;
  const std::string copy = changed_fixture(folder, "gpt2-old", "{", "{"), file = copy + "/model.safetensors";
  const auto dtype_of = [&](const std::string& wide, const std::string& run) {
    std::vector<OwnedTensor> tensors = owned(read_safetensors(hugging_face_fixture("gpt2-old") + "/model.safetensors"));
    for (OwnedTensor& tensor : tensors) {
      if (tensor.name != wide) continue;
      REQUIRE(tensor.type == NumberType::f32);
      std::vector<float> values(tensor.bytes.size() / sizeof(float));
      read_numbers<float>(NumberType::f32, tensor.bytes, values);
      tensor.type = NumberType::f64;
      tensor.bytes.resize(values.size() * sizeof(double));
      write_numbers<float>(NumberType::f64, values, tensor.bytes);
    }
    write_safetensors(posix_file_system(), {file, true}, tensors);
    return LoadedModel(import_into(copy, folder / run)).store.dtype();
  };
  REQUIRE(dtype_of("ln_f.weight", "a") == DType::float64);
  REQUIRE(dtype_of("h.0.attn.bias", "b") == DType::float32);
}

TEST_CASE("a configuration that maki does not have is refused by name") {
  const TemporaryFolder folder;
  struct Row {
    const char *fixture, *from, *to, *words;
  };
  const std::vector<Row> rows = {
      {"gpt2", "\"gpt2\"", "\"bert\"", "model_type must be gpt2 or llama; got bert"},
      {"gpt2", "\"gelu_new\"", "\"mish\"", "activation_function must be gelu_new, gelu, relu, relu2 or silu; got mish"},
      {"gpt2", "\"scale_attn_weights\": true", "\"scale_attn_weights\": false", "scale_attn_weights must be true"},
      {"gpt2", "\"scale_attn_by_inverse_layer_idx\": false", "\"scale_attn_by_inverse_layer_idx\": true",
       "must be false"},
      {"gpt2", "\"add_cross_attention\": false", "\"add_cross_attention\": true", "add_cross_attention must be false"},
      {"gpt2", "\"n_head\": 2", "\"n_head\": 3", "8 cannot be divided into 3 heads"},
      {"gpt2", "\"n_head\": 2", "\"n_head\": 0", "n_head must be a whole number from 1"},
      {"gpt2", "\"n_head\": 2", "\"n_head\": -2", "n_head must be a whole number from 1"},
      {"gpt2", "\"n_head\": 2", "\"n_head\": 2.0", "n_head must be a whole number from 1"},
      {"gpt2", "\"n_head\": 2", "\"n_head\": \"2\"", "n_head must be a whole number from 1"},
      {"gpt2", "\"n_layer\": 2", "\"n_layer\": 1000000", "n_layer must be a whole number from 1 to 1000"},
      {"gpt2", "\"n_layer\": 2", "\"n_layer\": 3", "must contain the tensor transformer.h.2.ln_1.weight"},
      {"gpt2", "\"n_layer\": 2", "\"n_layer\": 1", "contains the tensor transformer.h.1."},
      {"gpt2", "\"n_layer\": 2,", "", "must contain n_layer"},
      {"gpt2", "\"n_embd\": 8", "\"n_embd\": 1000000", "must have the shape [13, 1000000]; got [13, 8]"},
      {"gpt2", "\"n_inner\": null", "\"n_inner\": 16", "must have the shape [8, 16]; got [8, 32]"},
      {"gpt2", "\"n_positions\": 9", "\"n_positions\": 10", "must have the shape [10, 8]; got [9, 8]"},
      {"gpt2", "\"layer_norm_epsilon\": 1e-05", "\"layer_norm_epsilon\": 0",
       "config.json: layer_norm_epsilon must be from"},
      {"gpt2", "\"layer_norm_epsilon\": 1e-05", "\"layer_norm_epsilon\": null, \"x\": [[[[[[[[[1]]]]]]]]]", "nested"},
      {"gpt2", "\"layer_norm_epsilon\": 1e-05", "\"layer_norm_epsilon\": \"a\"", "must be a number"},
      {"gpt2", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false",
       "must contain the tensor lm_head.weight"},
      {"gpt2", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": 1", "must be true or false"},
      {"gpt2", "\"vocab_size\": 13", "\"vocab_size\": 12", "must have as many ids"},
      {"gpt2", "\"vocab_size\": 13", "\"vocab_size\": 5000", "must have as many ids"},
      {"gpt2", "\"vocab_size\": 13", "\"vocab_size\": 1037", "which has 1037 (at most 1023 of them padding); got 13"},
      {"gpt2-old", "\"eos_token_id\": null", "\"eos_token_id\": [2, 14]",
       "has 13 and lacks token 14, which ends texts; use the whole tokenizer"},
      {"gpt2-old", "\"bos_token_id\": null", "\"bos_token_id\": 13", "lacks token 13, which begins texts"},
      {"gpt2-old", "\"pad_token_id\": null", "\"pad_token_id\": 15", "lacks token 15, which fills batches"},
      {"gpt2", "{", "[{", "is not valid JSON"},
      {"llama", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 1", "must have the shape [4, 8]; got [8, 8]"},
      {"llama-grouped", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3",
       "num_key_value_heads must divide num_attention_heads; got 3 and 4"},
      {"llama-grouped", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 0", "must be a whole number from 1"},
      {"llama", "\"head_dim\": 4", "\"head_dim\": 8", "head_dim must be hidden_size / num_attention_heads"},
      {"llama", "\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"", "hidden_act must be silu; got gelu"},
      {"llama", "\"rope_type\": \"default\"", "\"rope_type\": \"llama3\"", "of the type default; got llama3"},
      {"llama", "\"rms_norm_eps\": 0.001", "\"rms_norm_eps\": 5", "config.json: rms_norm_eps must be from"},
      {"llama", "\"rope_theta\": 500.0", "\"rope_theta\": 1", "config.json: rope_theta must be from 2"},
      {"llama", "\"mlp_bias\": false", "\"mlp_bias\": true", "attention_bias and mlp_bias must be equal"},
      {"llama", "\"intermediate_size\": 20", "\"intermediate_size\": 24", "must have the shape [24, 8]; got [20, 8]"},
  };
  for (const auto& [fixture, from, to, words] : rows) {
    INFO(fixture << " " << to);
    const std::string path = changed_fixture(folder, fixture, from, to);
    const std::string said = error_message<Error>([&] { import_into(path, folder / "run"); });
    REQUIRE_THAT(said, ContainsSubstring(words));
    REQUIRE_FALSE(std::filesystem::exists(folder / "run"));
  }
  const std::string padded = changed_fixture(folder, "gpt2", "\"vocab_size\": 13", "\"vocab_size\": 1036");
  REQUIRE(tokenizer_for(open_foreign_model(padded))->vocab_size() == 13);
  // Ids beyond the model are those of another one.
  const std::string other = changed_fixture(folder, "gpt2-old", "\"eos_token_id\": null", "\"eos_token_id\": [16, 3]");
  REQUIRE(tokenizer_for(open_foreign_model(other))->ends() == std::vector<std::int32_t>{3});
}

TEST_CASE("the values of rope_theta and rope_scaling of older configurations are read") {
  const TemporaryFolder folder;
  const std::string now = "\"rope_parameters\": {\n    \"rope_theta\": 500.0,\n    \"rope_type\": \"default\"\n  }";
  const std::string older = changed_fixture(folder, "llama", now, "\"rope_theta\": 700, \"rope_scaling\": null");
  REQUIRE(open_foreign_model(older).config.position_base == 700);
  const std::string scaled =
      changed_fixture(folder, "llama", now, "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}");
  REQUIRE_THAT(error_message<CheckpointError>([&] { open_foreign_model(scaled); }), ContainsSubstring("got linear"));
  const std::string untyped =
      changed_fixture(folder, "llama", now, "\"rope_scaling\": {\"type\": null, \"factor\": 2}");
  REQUIRE_THAT(error_message<CheckpointError>([&] { open_foreign_model(untyped); }),
               ContainsSubstring("rope_scaling must have a rope_type, because it has factor"));
  const std::string plain = changed_fixture(folder, "llama", now, "\"rope_parameters\": {\"rope_theta\": 600}");
  REQUIRE(open_foreign_model(plain).config.position_base == 600);
}

TEST_CASE("the tensors of a model may be in several files") {
  const TemporaryFolder folder;
  const std::string copy = changed_fixture(folder, "llama", "{", "{"), file = copy + "/model.safetensors";
  const std::vector<OwnedTensor> tensors = owned(read_safetensors(file));
  nlohmann::json map;
  std::vector<OwnedTensor> parts[2];
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    parts[i % 2].push_back(tensors[i]);
    map[tensors[i].name] = i % 2 == 0 ? "a.safetensors" : "b.safetensors";
  }
  write_safetensors(posix_file_system(), copy + "/a.safetensors", parts[0]);
  write_safetensors(posix_file_system(), copy + "/b.safetensors", parts[1]);
  std::filesystem::remove(file);
  const auto write_index = [&](const nlohmann::json& index) { write_bytes(file + ".index.json", index.dump()); };
  const auto said = [&] { return error_message<CheckpointError>([&] { open_foreign_model(copy); }); };
  write_index({{"weight_map", map}});
  const LoadedModel loaded(import_into(copy, folder / "run"));
  const LoadedModel whole(import_into(hugging_face_fixture("llama"), folder / "whole"));
  REQUIRE(largest_gap(loaded.store.values(), whole.store.values()) == 0);

  write_index({{"weight_map", {{"a", "../a.safetensors"}}}});
  REQUIRE_THAT(said(), ContainsSubstring("must name a file of the directory"));
  write_index({{"weight_map", {{"a", 1}}}});
  REQUIRE_THAT(said(), ContainsSubstring("must name a file of the directory"));
  write_index({{"weight_map", nlohmann::json::object()}});
  REQUIRE_THAT(said(), ContainsSubstring("names no file"));
  write_index({{"weights", 1}});
  REQUIRE_THAT(said(), ContainsSubstring("weight_map"));
  write_safetensors(posix_file_system(), {copy + "/b.safetensors", true}, parts[0]);
  write_index({{"weight_map", map}});
  REQUIRE_THAT(said(), ContainsSubstring("which another file of the model contains"));
  std::filesystem::remove(file + ".index.json");
  REQUIRE_THAT(said(), ContainsSubstring("contains no model.safetensors"));
  write_bytes(copy + "/pytorch_model.bin", "x");
  REQUIRE_THAT(said(), ContainsSubstring("is a Python pickle"));
}

TEST_CASE("weights that are not finite, or of another type, are refused") {
  const TemporaryFolder folder;
  const std::string copy = changed_fixture(folder, "gpt2", "{", "{"), file = copy + "/model.safetensors";
  std::vector<OwnedTensor> tensors = owned(read_safetensors(file));
  OwnedTensor& wpe = *std::ranges::find(tensors, "transformer.wpe.weight", &OwnedTensor::name);
  const float infinite = HUGE_VALF;
  std::memcpy(wpe.bytes.data() + 8, &infinite, sizeof infinite);
  write_safetensors(posix_file_system(), folder / "m", tensors);
  std::filesystem::rename(folder / "m", file);
  REQUIRE_THAT(error_message<CheckpointError>([&] { import_into(copy, folder / "run"); }),
               ContainsSubstring(file + ": tensor transformer.wpe.weight: contains a value that is not finite"));
  wpe.type = NumberType::i32;
  write_safetensors(posix_file_system(), folder / "m", tensors);
  std::filesystem::rename(folder / "m", file);
  REQUIRE_THAT(error_message<CheckpointError>([&] { import_into(copy, folder / "run"); }),
               ContainsSubstring("must be of type F16, BF16, F32 or F64; got I32"));
}

TEST_CASE("a model is imported only into a folder that config.toml can name") {
  const TemporaryFolder folder;
  REQUIRE_THROWS_WITH(import_into(hugging_face_fixture("gpt2"), folder / "r\xFFn"),
                      ContainsSubstring("out: must be valid UTF-8"));
  REQUIRE(std::filesystem::is_empty(folder / ""));
}

TEST_CASE("a stored head that differs from the embedding is not tied, whatever the configuration says") {
  const TemporaryFolder folder;
  const std::string path = changed_fixture(folder, "llama-tied", "{", "{"), file = path + "/model.safetensors";
  const std::vector<OwnedTensor> stored = owned(read_safetensors(file));
  const OwnedTensor& embedding = *std::ranges::find(stored, "model.embed_tokens.weight", &OwnedTensor::name);
  const auto write_with_head = [&](NumberType type, double added, std::size_t from_end = 1) {
    std::vector<double> values(embedding.bytes.size() * 8 / bits_of(embedding.type));
    read_numbers(embedding.type, embedding.bytes, std::span(values));
    values[values.size() - from_end] += added;
    std::vector<std::byte> bytes(values.size() * bits_of(type) / 8);
    write_numbers<double>(type, values, bytes);
    std::vector<OwnedTensor> tensors = stored;
    tensors.push_back({"lm_head.weight", type, embedding.shape, bytes});
    std::filesystem::remove(file);
    write_safetensors(posix_file_system(), file, tensors);
    return values;
  };
  for (const NumberType type : {embedding.type, NumberType::f64}) {
    write_with_head(type, 0);
    REQUIRE(open_foreign_model(path).config.tie_weights);
  }
  write_with_head(embedding.type, 0.5, embedding.bytes.size() * 8 / bits_of(embedding.type));
  REQUIRE_FALSE(open_foreign_model(path).config.tie_weights);
  const std::vector<double> head = write_with_head(embedding.type, 0.5);
  REQUIRE_FALSE(open_foreign_model(path).config.tie_weights);
  const LoadedModel loaded(import_into(path, folder / "run"));
  const Tensor& imported = loaded.store.find("lm_head.weight").value();
  for (std::int64_t i = 0; i < imported.numel(); ++i)
    REQUIRE(std::abs(imported.at(i) - head[static_cast<std::size_t>(i)]) < 1e-6);
  export_model(loaded, "hf", {.out = folder / "hf"});
  const nlohmann::json config = nlohmann::json::parse(read_bytes(folder / "hf/config.json"));
  REQUIRE(config.at("tie_word_embeddings") == false);
}

TEST_CASE("numbers of all four types are imported exactly, and float64 is exported as such") {
  const TemporaryFolder folder;
  const std::string copy = changed_fixture(folder, "gpt2", "{", "{"), file = copy + "/model.safetensors";
  const auto stored = owned(read_safetensors(hugging_face_fixture("gpt2") + "/model.safetensors"));
  for (const NumberType type : {NumberType::f16, NumberType::bf16, NumberType::f32, NumberType::f64}) {
    INFO(to_string(type));
    std::vector<OwnedTensor> tensors = stored;
    for (OwnedTensor& tensor : tensors) {
      std::vector<float> values(tensor.bytes.size() / sizeof(float));
      read_numbers<float>(NumberType::f32, tensor.bytes, values);
      tensor.type = type;
      tensor.bytes.resize(values.size() * bits_of(type) / 8);
      write_numbers<float>(type, values, tensor.bytes);
    }
    write_safetensors(posix_file_system(), {file, true}, tensors);
    const LoadedModel loaded(import_into(copy, folder / to_string(type)));
    REQUIRE(loaded.store.dtype() == (type == NumberType::f64 ? DType::float64 : DType::float32));
    std::vector<double> expected(13 * 8);
    read_safetensors(file).find("transformer.wte.weight")->read(std::span(expected));
    const Tensor& wte = loaded.store.find("wte.weight").value();
    for (std::int64_t i = 0; i < wte.numel(); ++i) REQUIRE(wte.at(i) == expected[static_cast<std::size_t>(i)]);
    const std::string out = folder / (std::string("out-") + to_string(type));
    export_model(loaded, "hf", {.out = out});
    const bool unchanged = type == NumberType::f32 || type == NumberType::f64;
    REQUIRE((read_bytes(out + "/model.safetensors") == read_bytes(file)) == unchanged);
  }
}
