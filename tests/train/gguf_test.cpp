// GGUF files: read here as the format says, and compared with the model.
#include <cmath>
#include <cstring>
#include <map>

#include "tests/catch.h"
#include "tests/train/imported.h"
#include "tests/train/read_gguf.h"
#include "train/run/convert/gguf_file.h"
#include "train/run/convert/model_formats.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("a GPT-2 in a GGUF file has its sizes, its vocabulary and its weights") {
  const TemporaryFolder folder;
  const LoadedModel loaded(import_into(hugging_face_fixture("gpt2"), folder / "run"));
  REQUIRE(export_model(loaded, "gguf", {.out = folder / "m.gguf"}).files == std::vector{folder / "m.gguf"});
  const ReadGguf file(folder / "m.gguf");
  const std::map<std::string, std::string> expected = {
      {"general.architecture", "gpt2"},
      {"general.file_type", "0"},
      {"gpt2.vocab_size", "14"},
      {"gpt2.context_length", "9"},
      {"gpt2.embedding_length", "8"},
      {"gpt2.block_count", "2"},
      {"gpt2.feed_forward_length", "32"},
      {"gpt2.attention.head_count", "2"},
      {"gpt2.attention.layer_norm_epsilon", "1e-05"},
      {"tokenizer.ggml.model", "gpt2"},
      {"tokenizer.ggml.pre", "gpt-2"},
      {"tokenizer.ggml.tokens", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\n<|endoftext|>\n"},
      {"tokenizer.ggml.merges", ""},
      {"tokenizer.ggml.eos_token_id", "13"},
      {"tokenizer.ggml.add_bos_token", "false"}};
  for (const auto& [key, value] : expected) {
    INFO(key);
    REQUIRE(file.values.at(key) == value);
  }
  REQUIRE(file.tensors.size() == 28);
  REQUIRE(file.tensors.at("blk.1.ffn_up.weight").shape == std::vector<std::uint64_t>{8, 32});
  const std::map<std::string, std::string> names = {{"token_embd.weight", "wte.weight"},
                                                    {"position_embd.weight", "wpe.weight"},
                                                    {"blk.1.attn_qkv.weight", "h.1.attn.c_attn.weight"},
                                                    {"blk.0.ffn_down.weight", "h.0.mlp.c_proj.weight"},
                                                    {"blk.1.attn_norm.bias", "h.1.ln_1.bias"},
                                                    {"output_norm.weight", "ln_f.weight"}};
  for (const auto& [stored, own] : names) {
    const Parameter& parameter = loaded.store.find(own);
    for (std::int64_t i = 0; i < parameter.value().numel(); ++i) {
      INFO(stored << " " << i);
      REQUIRE(file.f32(stored, static_cast<std::size_t>(i)) == parameter.value().at(i));
    }
  }
}

TEST_CASE("a vocabulary without an end gets a token for it in a GGUF file, which is no character and is not drawn") {
  const TemporaryFolder folder;
  for (const char* const name : {"gpt2", "llama"}) {
    const LoadedModel loaded(import_into(hugging_face_fixture(name), folder / name));
    const std::string path = folder / (std::string(name) + ".gguf");
    export_model(loaded, "gguf", {.out = path});
    const ReadGguf file(path);
    const auto vocab = static_cast<std::size_t>(loaded.state.vocab_size);
    INFO(name);
    REQUIRE(file.values.at("tokenizer.ggml.eos_token_id") == std::to_string(vocab));
    REQUIRE(file.values.at("tokenizer.ggml.suppress_tokens") == std::to_string(vocab) + "\n");
    REQUIRE_THAT(file.values.at("tokenizer.ggml.token_type"), Catch::Matchers::EndsWith("\n1\n3\n"));
    for (const char* const absent :
         {"tokenizer.ggml.eot_token_id", "tokenizer.chat_template", "tokenizer.chat_templates"})
      REQUIRE_FALSE(file.values.contains(absent));
    for (const char* const matrix : {"token_embd.weight", "output.weight"}) {
      if (!file.tensors.contains(matrix)) continue;  // tied
      const std::vector<std::uint64_t>& shape = file.tensors.at(matrix).shape;
      REQUIRE(shape[1] == vocab + 1);
      for (std::size_t column = 0; column < shape[0]; ++column) {
        double sum = 0;
        for (std::size_t row = 0; row < vocab; ++row) sum += file.f32(matrix, row * shape[0] + column);
        REQUIRE(std::abs(file.f32(matrix, vocab * shape[0] + column) - sum / static_cast<double>(vocab)) < 1e-7);
      }
    }
  }
}

TEST_CASE("a Llama in a GGUF file has rows of queries and keys in pairs") {
  const TemporaryFolder folder;
  const LoadedModel loaded(import_into(hugging_face_fixture("llama"), folder / "run"));
  export_model(loaded, "gguf", {.out = folder / "m.gguf"});
  const ReadGguf file(folder / "m.gguf");
  REQUIRE(file.values.at("general.architecture") == "llama");
  REQUIRE(file.values.at("llama.rope.freq_base") == "500");
  REQUIRE(file.values.at("llama.rope.dimension_count") == "4");
  REQUIRE(file.values.at("llama.attention.head_count_kv") == "2");
  REQUIRE(file.values.at("llama.attention.layer_norm_rms_epsilon") == "0.001");
  REQUIRE(file.values.at("llama.feed_forward_length") == "20");
  const Tensor& qkv = loaded.store.find("h.1.attn.c_attn.weight").value();
  const std::vector<std::int64_t> pairs = {0, 2, 1, 3, 4, 6, 5, 7}, same = {0, 1, 2, 3, 4, 5, 6, 7};
  for (const auto& [name, first, order] : {std::tuple{"blk.1.attn_q.weight", 0, pairs},
                                           {"blk.1.attn_k.weight", 8, pairs},
                                           {"blk.1.attn_v.weight", 16, same}}) {
    for (std::int64_t row = 0; row < 8; ++row) {
      for (std::int64_t c = 0; c < 8; ++c) {
        INFO(name << " " << row << " " << c);
        REQUIRE(file.f32(name, static_cast<std::size_t>(row * 8 + c)) ==
                qkv.at((first + order[static_cast<std::size_t>(row)]) * 8 + c));
      }
    }
  }
  const Tensor& fc = loaded.store.find("h.0.mlp.c_fc.weight").value();
  for (std::int64_t i = 0; i < 160; ++i) {
    REQUIRE(file.f32("blk.0.ffn_gate.weight", static_cast<std::size_t>(i)) == fc.at(i));
    REQUIRE(file.f32("blk.0.ffn_up.weight", static_cast<std::size_t>(i)) == fc.at(160 + i));
  }
}

TEST_CASE("a Llama with shared keys in a GGUF file has its heads, and rows in pairs within each") {
  const TemporaryFolder folder;
  const LoadedModel loaded(import_into(hugging_face_fixture("llama-grouped"), folder / "run"));
  export_model(loaded, "gguf", {.out = folder / "m.gguf"});
  const ReadGguf file(folder / "m.gguf");
  REQUIRE(file.values.at("llama.attention.head_count") == "4");
  REQUIRE(file.values.at("llama.attention.head_count_kv") == "2");
  REQUIRE(file.values.at("llama.rope.dimension_count") == "4");
  const Tensor& qkv = loaded.store.find("h.1.attn.c_attn.weight").value();
  for (const auto& [name, first, rows] :
       {std::tuple{"blk.1.attn_q.weight", 0, 16}, {"blk.1.attn_k.weight", 16, 8}, {"blk.1.attn_v.weight", 24, 8}}) {
    REQUIRE(file.tensors.at(name).shape == std::vector<std::uint64_t>{16, static_cast<std::uint64_t>(rows)});
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t order[] = {0, 2, 1, 3}, source = first == 24 ? row : row / 4 * 4 + order[row % 4];
      for (std::int64_t c = 0; c < 16; ++c) {
        INFO(name << " " << row << " " << c);
        REQUIRE(file.f32(name, static_cast<std::size_t>(row * 16 + c)) == qkv.at((first + source) * 16 + c));
      }
    }
  }
}

TEST_CASE("f16 and q8_0 apply to matrices, and rows that do not fill blocks stay f16") {
  const TemporaryFolder folder;
  const LoadedModel loaded(import_into(hugging_face_fixture("gpt2"), folder / "run"));
  for (const char* const type : {"f16", "q8_0"}) {
    export_model(loaded, "gguf", {.out = folder / type, .gguf_type = type});
    const ReadGguf file(folder / type);
    INFO(type);
    const bool q8 = std::string(type) == "q8_0";
    REQUIRE(file.values.at("general.file_type") == (q8 ? "7" : "1"));
    REQUIRE(file.tensors.at("blk.0.ffn_down.weight").type == (q8 ? 8U : 1U));  // rows of 32
    REQUIRE(file.tensors.at("blk.0.ffn_up.weight").type == 1U);                // rows of 8
    for (const char* const vector : {"blk.0.ffn_down.bias", "output_norm.weight", "position_embd.weight"}) {
      REQUIRE(file.tensors.at(vector).type == 0U);
    }
  }
}

TEST_CASE("weights of float64 are rounded to float32, which is said, and refused where they are beyond it") {
  const TemporaryFolder folder;
  const std::string checkpoint = import_into(hugging_face_fixture("gpt2"), folder / "run");
  REQUIRE(export_model(LoadedModel(checkpoint), "gguf", {.out = folder / "narrow"}).notes.empty());
  LoadedModel wide(checkpoint, DType::float64);
  REQUIRE(export_model(wide, "safetensors", {.out = folder / "wide"}).notes.empty());
  double& weight = wide.store.values().data<double>()[wide.store.find("wte.weight").offset()];
  const double before = weight;
  for (const std::string format : {"gguf", "llm.c"}) {
    weight = before;
    REQUIRE(export_model(wide, format, {.out = folder / format}).notes ==
            std::vector{folder / format + ": has the weights rounded from float64 to float32; `format` hf or maki or "
                                          "safetensors keeps them"});
    weight = -1e300;
    REQUIRE_THAT(error_message<Error>([&] { export_model(wide, format, {.out = folder / "never"}); }),
                 ContainsSubstring("float32, which cannot hold the weight -1e+300 of wte.weight"));
    REQUIRE_FALSE(std::filesystem::exists(folder / "never"));
  }
}

TEST_CASE("a block of Q8_0 is a scale and 32 rounded numbers") {
  std::vector<float> values(64);
  for (std::size_t i = 0; i < 32; ++i) values[i] = std::sin(static_cast<float>(i));
  values[5] = -2;
  const std::vector<std::byte> bytes = gguf_numbers(GgufType::q8_0, values);
  REQUIRE(bytes.size() == 2 * 34);
  std::uint16_t half = 0;
  std::memcpy(&half, bytes.data(), sizeof half);
  REQUIRE(half == float_to_half(2.0F / 127));
  REQUIRE(static_cast<std::int8_t>(bytes[2 + 5]) == -127);
  for (std::size_t i = 0; i < 32; ++i) {
    const float back = half_to_float(half) * static_cast<float>(static_cast<std::int8_t>(bytes[2 + i]));
    REQUIRE(std::abs(back - values[i]) < 0.51F * 2 / 127 + 1e-4F);
  }
  for (std::size_t i = 34; i < 68; ++i) REQUIRE(bytes[i] == std::byte{0});  // all zeros have the scale 0
  const std::vector<float> tiny(32, 1e-40F);  // whose scale is 0 as well, and 1 / scale infinite
  REQUIRE(gguf_numbers(GgufType::q8_0, tiny) == std::vector<std::byte>(34));
  REQUIRE_THROWS(gguf_numbers(GgufType::q8_0, std::span(values).first(33)));
  values[3] = 65504;  // the largest finite number of float16
  REQUIRE(gguf_numbers(GgufType::f16, values).size() == 2 * values.size());
  values[3] = std::nextafter(65504.0F, 1e30F);
  REQUIRE_THAT(error_message<Error>([&] { gguf_numbers(GgufType::f16, values); }),
               ContainsSubstring("f16 cannot hold"));
  values[3] = 1e30F;
  REQUIRE_THAT(error_message<Error>([&] { gguf_numbers(GgufType::q8_0, values); }),
               ContainsSubstring("q8_0 cannot hold"));
  REQUIRE_THAT(error_message<Error>([&] { gguf_type_named("q8"); }), ContainsSubstring("nearest is q8_0"));
}

TEST_CASE("a character of several bytes is joined by merges in a GGUF file") {
  const TemporaryFolder folder;
  const std::string path = changed_fixture(folder, "gpt2", "{", "{");
  // Thirteen characters: four of one byte, and nine of three bytes, of which the first two are the same.
  std::string characters = "maki char tokenizer 1\n\n ab";
  for (const char* const c : {"あ", "い", "う", "え", "お", "か", "き", "く", "け"}) characters += c;
  write_bytes(path + "/maki-tokenizer", characters);
  const LoadedModel loaded(import_into(path, folder / "run"));
  export_model(loaded, "gguf", {.out = folder / "m.gguf"});
  const ReadGguf file(folder / "m.gguf");
  // U+3042 is E3 81 82, which GPT-2 writes as ã, ģ, Ĥ; a newline is Ċ and a space Ġ.
  REQUIRE_THAT(file.values.at("tokenizer.ggml.tokens"), Catch::Matchers::StartsWith("Ċ\nĠ\na\nb\nãģĤ\nãģĦ\n"));
  REQUIRE_THAT(file.values.at("tokenizer.ggml.merges"), Catch::Matchers::StartsWith("ã ģ\nãģ Ĥ\nãģ Ħ\n"));
}
