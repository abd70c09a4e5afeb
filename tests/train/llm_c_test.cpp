// Checkpoints of llm.c (tests/fixtures/make_llm_c.py), read and written.
#include <cstring>
#include <sys/stat.h>

#include "data/io/error.h"
#include "tests/catch.h"
#include "tests/train/imported.h"
#include "train/run/convert/model_formats.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::string kFixture = std::string(MAKI_SOURCE_DIR) + "/tests/fixtures/llm_c.bin";
constexpr std::size_t kHeaderBytes = 1024;

std::string tokenizer_of_fixture() { return hugging_face_fixture("gpt2") + "/maki-tokenizer"; }

// The numbers after the header as bfloat16, in version 5.
std::string as_bfloat16(const std::string& file) {
  std::string bytes = file.substr(0, kHeaderBytes);
  bytes[4] = 5;
  for (std::size_t at = kHeaderBytes; at < file.size(); at += 4) {
    float value = 0;
    std::memcpy(&value, file.data() + at, sizeof value);
    const BFloat16 upper = float_to_bfloat(value);
    bytes.append(reinterpret_cast<const char*>(&upper), sizeof upper);
  }
  return bytes;
}

void set_number(std::string& bytes, std::size_t index, std::int32_t value) {
  std::memcpy(bytes.data() + 4 * index, &value, sizeof value);
}

}  // namespace

TEST_CASE("a checkpoint of llm.c has the weights of the directory that it was made of") {
  const TemporaryFolder folder;
  const LoadedModel one(import_into(kFixture, folder / "a", tokenizer_of_fixture()));
  const LoadedModel other(import_into(hugging_face_fixture("gpt2"), folder / "b"));
  REQUIRE(training_toml(one.state.config) == training_toml(other.state.config));
  REQUIRE(one.state.tokenizer == other.state.tokenizer);
}

TEST_CASE("a tokenizer has no more ids than a checkpoint of llm.c has tokens, whatever pads them") {
  const TemporaryFolder folder;
  std::string bytes = read_bytes(kFixture);
  set_number(bytes, 3, 12);  // V, of which the tokenizer has 13
  write_bytes(folder / "model.bin", bytes);
  REQUIRE_THAT(
      error_message<CorpusError>([&] { import_into(folder / "model.bin", folder / "run", tokenizer_of_fixture()); }),
      ContainsSubstring("model.bin, which has 12") && ContainsSubstring("got 13"));
}

TEST_CASE("what is exported to llm.c has its bytes, and is imported with the tokenizer beside it") {
  const TemporaryFolder folder;
  const LoadedModel loaded(import_into(hugging_face_fixture("gpt2"), folder / "run"));
  const auto written = export_model(loaded, "llm.c", {.out = folder / "model.bin"}).files;
  REQUIRE(written == std::vector{folder / "model.bin.maki-tokenizer", folder / "model.bin"});
  REQUIRE(read_bytes(folder / "model.bin") == read_bytes(kFixture));
  const LoadedModel again(import_into(folder / "model.bin", folder / "again"));
  REQUIRE(again.state.config.init_from == loaded.state.config.init_from);  // the hash of all weights
  const std::string beside = folder / "model.bin.maki-tokenizer";
  std::filesystem::remove(beside);
  REQUIRE(mkfifo(beside.c_str(), 0600) == 0);
  REQUIRE_THAT(error_message<CorpusError>([&] { import_into(folder / "model.bin", folder / "never"); }),
               ContainsSubstring(beside + ": is not a regular file"));
}

TEST_CASE("bfloat16 in a checkpoint of llm.c is read exactly") {
  const TemporaryFolder folder;
  write_bytes(folder / "bf16.bin", as_bfloat16(read_bytes(kFixture)));
  const LoadedModel narrow(import_into(folder / "bf16.bin", folder / "a", tokenizer_of_fixture()));
  const LoadedModel wide(import_into(kFixture, folder / "b", tokenizer_of_fixture()));
  for (std::int64_t i = 0; i < wide.store.values().numel(); ++i) {
    const float rounded = to_float(float_to_bfloat(static_cast<float>(wide.store.values().at(i))));
    REQUIRE(narrow.store.values().at(i) == static_cast<double>(rounded));
  }
}

TEST_CASE("a damaged checkpoint of llm.c is refused") {
  const TemporaryFolder folder;
  const std::string good = read_bytes(kFixture);
  const auto said = [&](const std::string& bytes) {
    write_bytes(folder / "m.bin", bytes);
    return error_message<CheckpointError>([&] { open_foreign_model(folder / "m.bin"); });
  };
  REQUIRE(said(good).empty());
  REQUIRE_THAT(said(""), ContainsSubstring("nor a checkpoint of llm.c"));
  REQUIRE_THAT(said(good.substr(0, kHeaderBytes - 1)), ContainsSubstring("too short"));
  REQUIRE_THAT(said(good.substr(0, kHeaderBytes)), ContainsSubstring("too short for the model"));
  REQUIRE_THAT(said(good.substr(0, good.size() - 1)), ContainsSubstring("too short for the model"));
  REQUIRE_THAT(said(good + "x"), ContainsSubstring("according to its header"));
  struct Row {
    std::size_t index;
    std::int32_t value;
    const char* words;
  };
  const std::vector<Row> rows = {{0, 20240325, "neither a directory of Hugging Face nor a checkpoint of llm.c"},
                                 {1, 4, "must have version 3 (float32) or 5 (bfloat16); got 4"},
                                 {1, 5, "according to its header"},
                                 {2, 0, "maxT must be from 1"},
                                 {2, -9, "maxT must be from 1"},
                                 {2, 1'000'000, "too short"},
                                 {3, 0, "V must be from 1"},
                                 {3, 129, "contradict each other"},
                                 {4, 0, "L must be from 1"},
                                 {4, 1000, "too short"},
                                 {4, 1, "according to its header"},
                                 {4, 2147483647, "L must be from 1 to 1000"},
                                 {5, 3, "contradict each other"},
                                 {5, 0, "NH must be from 1"},
                                 {6, 0, "C must be from 1"},
                                 {6, 1'000'000, "too short"},
                                 {6, -8, "C must be from 1"},
                                 {7, 12, "contradict each other"},
                                 {7, 100'000'000, "too short"},
                                 {7, -128, "Vp must be from 1"}};
  for (const auto& [index, value, words] : rows) {
    std::string bytes = good;
    set_number(bytes, index, value);
    INFO(index << " " << value);
    REQUIRE_THAT(said(bytes), ContainsSubstring(words));
  }
}

TEST_CASE("what llm.c cannot express is not exported to it") {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& from, const std::string& to, bool gelu_as_tanh = false) {
    const LoadedModel loaded(import_into(changed_fixture(folder, "gpt2", from, to), folder / ("run-" + to)));
    const ExportOptions with{.out = folder / "model.bin", .gguf_type = {}, .gelu_as_tanh = gelu_as_tanh};
    return error_message<Error>([&] { export_model(loaded, "llm.c", with); });
  };
  REQUIRE_THAT(said("gelu_new", "gelu"),
               ContainsSubstring("computes the tanh form of GELU") && ContainsSubstring("`gelu_as_tanh`"));
  REQUIRE_THAT(said("gelu_new", "relu"), ContainsSubstring("needs activation = gelu_tanh; the model has relu"));
  REQUIRE_THAT(said("1e-05", "1e-06"), ContainsSubstring("needs norm_epsilon = 1e-05; the model has 1e-06"));
  REQUIRE_FALSE(std::filesystem::exists(folder / "model.bin"));
  REQUIRE(said("gelu_new", "gelu_python", true).empty());
  const LoadedModel llama(import_into(hugging_face_fixture("llama"), folder / "llama"));
  REQUIRE_THAT(error_message<Error>([&] { export_model(llama, "llm.c", {.out = folder / "x"}); }),
               ContainsSubstring("llm.c needs norm = layer; the model has rms; `format` safetensors writes any model"));
}

TEST_CASE("a width of the feed-forward layers that is four times n_embd is exported to llm.c, however it was given") {
  const TemporaryFolder folder;
  LoadedModel loaded(import_into(hugging_face_fixture("gpt2"), folder / "run"));
  export_model(loaded, "llm.c", {.out = folder / "default.bin"});
  loaded.state.config.ffn_width = 4 * loaded.state.config.n_embd;
  export_model(loaded, "llm.c", {.out = folder / "given.bin"});
  REQUIRE(read_bytes(folder / "given.bin") == read_bytes(folder / "default.bin"));
  loaded.state.config.ffn_width += 1;
  REQUIRE_THAT(error_message<Error>([&] { export_model(loaded, "llm.c", {.out = folder / "x"}); }),
               ContainsSubstring("needs ffn_width = 0, that is 4 n_embd; the model has"));
}
