// maki import and maki export, as a user runs them.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/every_kind.h"
#include "tests/cli/json_lines.h"
#include "tests/cli/require_refused.h"

using namespace maki::tests;

namespace {

const std::string kFixtures = std::string(MAKI_SOURCE_DIR) + "/tests/fixtures/";

std::string generated_text(const std::string& run) {
  return require_ok(run_maki({"generate", run, "--prompt", "a", "--temperature", "0", "--max-tokens", "40"})).out;
}

// A trained run; returns its path.
std::string trained(const TemporaryFolder& folder, const Arguments& more = {}) {
  require_ok(train(folder, folder.write("corpus.txt", small_text()), more));
  return folder / "run";
}

}  // namespace

TEST_CASE("a run that is exported and imported again writes the same text") {
  for (const Arguments& model :
       {Arguments{}, Arguments{"--no-bias"},
        Arguments{"--positions", "rotary", "--norm", "rms", "--activation", "swiglu", "--no-bias", "--no-tie-weights",
                  "--ffn-width", "24", "--norm-epsilon", "1e-6"},
        Arguments{"--positions", "rotary", "--norm", "rms", "--activation", "swiglu", "--no-bias", "--n-head", "4",
                  "--n-kv-head", "2"}}) {
    const TemporaryFolder folder;
    const std::string run = trained(folder, model), out = folder / "hf";
    const Finished exported = require_ok(run_maki({"export", run, "--format", "hf", "--out", out}));
    REQUIRE_THAT(exported.out,
                 ContainsSubstring(out + "/config.json\n") && ContainsSubstring(out + "/model.safetensors\n") &&
                     ContainsSubstring(out + "/tokenizer.json\n") && ContainsSubstring(out + "/maki-tokenizer\n"));
    const Finished imported = require_ok(run_maki({"import", out, "--out", folder / "again"}));
    REQUIRE_THAT(imported.out, ContainsSubstring(folder / "again") && ContainsSubstring("char tokenizer"));
    REQUIRE_THAT(imported.err, ContainsSubstring("maki generate") && ContainsSubstring("--init-from"));
    REQUIRE(generated_text(folder / "again") == generated_text(run));
    // It has no text that a resumed run could read.
    REQUIRE_THAT(
        require_ok(run_maki({"inspect", folder / "again", "--verify"})).out,
        ContainsSubstring("step-00000000.maki: is whole; it was imported, and --init-from trains it further\n"));
    const Finished verified = require_ok(run_maki({"inspect", folder / "again", "--verify", "--json"}));
    const auto facts = nlohmann::json::parse(verified.out);
    REQUIRE(facts.at("verified") == true);
    REQUIRE(facts.at("checkpoints").at(0).at("resumable") == false);
  }
}

TEST_CASE("maki reads the tokenizer of its own export, and does not import one that another program has changed") {
  for (const Arguments& kind : {Arguments{}, Arguments{"--tokenizer", "bpe", "--vocab-size", "270"}}) {
    const TemporaryFolder folder;
    const std::string run = trained(folder, kind), hf = folder / "hf", json_file = hf + "/tokenizer.json";
    require_ok(run_maki({"export", run, "--format", "hf", "--out", hf}));
    const auto hash_of = [](const std::string& path) {
      const Finished shown = require_ok(run_maki({"tokenizer", "inspect", path, "--json"}));
      return nlohmann::json::parse(shown.out).at("hash");
    };
    REQUIRE(hash_of(hf) == hash_of(run));
    if (kind.empty()) continue;
    auto changed = nlohmann::json::parse(read_text(json_file));
    changed["added_tokens"].push_back({{"id", changed["model"]["vocab"].size()}, {"content", "<pad>"}});
    folder.write("hf/tokenizer.json", changed.dump());
    require_refused(run_maki({"import", hf, "--out", folder / "again"}), 3,
                    {"maki-tokenizer and tokenizer.json must be the same", "name the file of the right one"});
    require_ok(run_maki({"import", hf, "--out", folder / "again", "--tokenizer", hf + "/maki-tokenizer"}));
  }
}

TEST_CASE("an imported run is evaluated on a text and trained further, but has nothing to resume") {
  const TemporaryFolder folder;
  const std::string run = trained(folder), corpus = folder / "corpus.txt";
  const std::string other = folder.write("other.txt", small_text().substr(1000));
  require_ok(run_maki({"export", run, "--format", "hf", "--out", folder / "hf"}));
  const std::string again = folder / "again";
  require_ok(run_maki({"import", folder / "hf", "--out", again}));
  const auto measured = [&](const std::string& of) {
    const std::string out = require_ok(run_maki({"eval", of, other})).out;
    return out.substr(out.find("\ntext"));
  };
  REQUIRE(measured(again) == measured(run));
  require_refused(run_maki({"eval", again}), 2,
                  {"does not name the text of its training, because it was imported, or exported", "name a CORPUS"});
  require_refused(run_maki({"train", "--resume", again, "--max-steps", "9"}), 2,
                  {"because it was imported", "maki train CORPUS --init-from"});
  require_ok(run_maki({"train", corpus, "--init-from", again, "--out", folder / "tuned", "--max-steps", "2"}));
  std::filesystem::remove(run + "/config.toml");
  require_refused(run_maki({"train", "--resume", run, "--max-steps", "99"}), 2, {"because it has no config.toml"});
}

TEST_CASE("without a prompt an imported model starts with its end-of-text token, and a trained one with a newline") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, {"--tokenizer", "bpe", "--vocab-size", "270"}), again = folder / "again";
  require_ok(run_maki({"export", run, "--format", "hf", "--out", folder / "hf"}));
  require_ok(run_maki({"import", folder / "hf", "--out", again}));
  const auto said = [](const std::string& of, const std::string& prompt) {
    const Arguments warm = {"--seed", "1",  "--temperature", "2", "--max-tokens", "60", "--json",
                            "-n",     "20", "--logprobs",    "0"};
    std::vector<std::string> texts;
    for (const auto& line :
         json_lines(require_ok(run_maki(Arguments{"generate", of, "--prompt", prompt} + warm)).out)) {
      texts.push_back(line.at("logprobs").dump());
    }
    REQUIRE(texts.size() == 20);
    return texts;
  };
  REQUIRE(said(again, "the") == said(run, "the"));
  REQUIRE(said(run, "") == said(run, "\n"));
  REQUIRE(said(again, "") != said(again, "\n"));
}

TEST_CASE("every format is written, and lists its files as JSON") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, {"--activation", "gelu_tanh"});
  for (const char* const format : {"hf", "safetensors", "llm.c", "gguf", "maki"}) {
    INFO(format);
    const std::string out = folder / format;
    const Finished exported = require_ok(run_maki({"export", run, "--format", format, "--out", out, "--json"}));
    const nlohmann::json facts = nlohmann::json::parse(exported.out);
    REQUIRE(facts.at("format") == format);
    for (const std::string file : facts.at("files")) REQUIRE(std::filesystem::is_regular_file(file));
    require_refused(run_maki({"export", run, "--format", format, "--out", out}), 2,
                    {"exists already", "choose another name", "--force"});
    require_ok(run_maki({"export", run, "--format", format, "--out", out, "--force"}));
  }
  const Finished imported = require_ok(run_maki({"import", folder / "llm.c", "--out", folder / "c", "--json"}));
  REQUIRE(nlohmann::json::parse(imported.out).at("tokenizer") == "char");
  REQUIRE(generated_text(folder / "c") == generated_text(run));
  std::filesystem::remove(folder / "llm.c.maki-tokenizer");
  for (const std::string& of : {run, checkpoint(run, 4)}) {
    INFO(of);
    require_ok(run_maki({"import", folder / "llm.c", "--tokenizer", of, "--out", folder / "d", "--force"}));
    REQUIRE(generated_text(folder / "d") == generated_text(run));
  }
}

TEST_CASE("a run of every kind that is exported as a run is opened and evaluated as it is") {
  for (const SmallKind& kind : every_kind()) {
    INFO(kind.name());
    const TemporaryFolder folder;
    const std::string corpus = folder.write("corpus.txt", kind.corpus_text), run = folder / "run", out = folder / "out",
                      other = folder.write("other.txt", kind.corpus_text);
    require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "2"} + kind.options));
    require_ok(run_maki({"export", run, "--format", "maki", "--out", out}));
    require_ok(run_maki({"inspect", out, "--verify"}));
    const auto loss_of = [&](const std::string& of) {
      return nlohmann::json::parse(require_ok(run_maki({"eval", of, other, "--json"})).out).at("val_loss");
    };
    REQUIRE(loss_of(out) == loss_of(run));
  }
}

TEST_CASE("characters of which one ends a text learn documents, and the checkpoints are opened") {
  const TemporaryFolder folder;
  const std::string run = trained(folder), again = folder / "again", tuned = folder / "tuned";
  require_ok(run_maki({"export", run, "--format", "hf", "--out", folder / "hf"}));
  folder.write("hf/generation_config.json", R"({"eos_token_id": 3})");
  require_ok(run_maki({"import", folder / "hf", "--out", again}));
  std::string lines;
  for (std::size_t i = 0; i < 20; ++i)
    lines += nlohmann::json{{"text", small_text().substr(100 * i, 90)}}.dump() + "\n";
  require_ok(run_maki({"train", folder.write("documents.jsonl", lines), "--json-field", "text", "--init-from", again,
                       "--out", tuned, "--max-steps", "2"}));
  require_ok(run_maki({"inspect", tuned, "--verify"}));
  generated_text(tuned);
  require_refused(run_maki({"export", tuned, "--format", "gguf", "--gelu-as-tanh", "--out", folder / "gguf"}), 2,
                  {"begin or end texts"});
}

TEST_CASE("safetensors takes any model, and other formats refuse what they cannot express, and leave no file") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, {"--qk-norm"}), out = folder / "out";
  for (const char* const format : {"hf", "llm.c", "gguf"}) {
    require_refused(run_maki({"export", run, "--format", format, "--out", out}), 2,
                    {"needs qk_norm = false; the model has true", "--format safetensors writes any model"});
  }
  REQUIRE_FALSE(std::filesystem::exists(out));
  require_ok(run_maki({"export", run, "--format", "safetensors", "--out", out}));
  REQUIRE_THAT(read_text(out), ContainsSubstring("\"h.0.attn.qk_norm\""));
  const std::string classifier = std::string(MAKI_SOURCE_DIR) + "/tests/golden/classify";
  REQUIRE_THAT(require_ok(run_maki({"export", classifier, "--format", "safetensors", "--out", folder / "c"})).err,
               ContainsSubstring("but not the labels of its classes; --format maki keeps all of it\n"));
  const std::string grouped = folder / "grouped";
  require_ok(run_maki(
      {"train", folder.write("text.txt", small_text()), "--out", grouped, "--max-steps", "1", "--n-kv-head", "2"}));
  require_refused(run_maki({"export", grouped, "--format", "hf", "--out", folder / "g"}), 2,
                  {"GPT-2 of transformers needs n_kv_head = 0 or 4; the model has 2"});
  const std::string normalized = folder / "normalized";
  require_ok(run_maki({"train", folder.write("text.txt", small_text()), "--out", normalized, "--max-steps", "1",
                       "--tokenizer", "bpe", "--vocab-size", "300", "--normalize", "nfc"}));
  require_refused(run_maki({"export", normalized, "--format", "gguf", "--out", folder / "n", "--gelu-as-tanh"}), 2,
                  {"cannot say that text is normalized", "--normalize"});
}

TEST_CASE("export and import refuse unsuitable options and paths") {
  const TemporaryFolder folder;
  const std::string run = trained(folder), out = folder / "out";
  const Arguments to_gguf = {"export", run, "--format", "gguf", "--out", out};
  require_refused(run_maki(to_gguf), 2, {"computes the tanh form of GELU", "--gelu-as-tanh"});
  require_refused(run_maki(to_gguf + Arguments{"--gguf-type", "q4"}), 2,
                  {"gguf_type: must be one of f32, f16, q8_0; got q4"});
  require_ok(run_maki(to_gguf + Arguments{"--gelu-as-tanh", "--gguf-type", "q8_0"}));
  const std::string tanh = folder / "tanh";
  require_ok(run_maki({"import", kFixtures + "hf-gpt2", "--out", tanh}));
  require_refused(run_maki({"export", tanh, "--format", "gguf", "--gelu-as-tanh", "--out", folder / "x"}), 2,
                  {"gelu_as_tanh: applies to models with activation = gelu; the model has gelu_tanh"});
  require_refused(run_maki({"export", run, "--format", "onnx", "--out", out}), 2,
                  {"format: must be one of hf, safetensors"});
  for (const char* const type : {"f16", "f32"})
    require_refused(run_maki({"export", run, "--format", "hf", "--out", folder / "x", "--gguf-type", type}), 2,
                    {"gguf_type: applies"});
  require_refused(run_maki({"export", run, "--format", "hf", "--out", folder / "x", "--gelu-as-tanh"}), 2,
                  {"gelu_as_tanh: applies"});
  require_refused(run_maki({"export", run, "--out", out}), 2, {"--format is required"});

  require_refused(run_maki({"import", folder / "none", "--out", folder / "r"}), 4, {"none", "cannot be opened"});
  require_refused(run_maki({"import", kFixtures + "hf-gpt2/model.safetensors", "--out", folder / "r"}), 4,
                  {"config.json"});
  require_refused(run_maki({"import", kFixtures + "llm_c.bin", "--out", folder / "r"}), 3,
                  {"has no tokenizer", "--tokenizer FILE"});
  require_refused(run_maki({"import", kFixtures + "llm_c.bin", "--out", folder / "r", "--tokenizer", "byte"}), 3,
                  {"must have as many ids"});
  require_refused(run_maki({"import", kFixtures + "hf-gpt2", "--out", run}), 2, {"run"});
  REQUIRE_FALSE(std::filesystem::exists(folder / "r"));
  const std::string tokenizer = kFixtures + "hf-gpt2/maki-tokenizer";
  require_ok(run_maki({"import", kFixtures + "llm_c.bin", "--out", folder / "r", "--tokenizer", tokenizer}));

  const std::string read = folder.write("f/config.toml", read_text(tokenizer));  // named as what a run has
  require_refused(run_maki({"import", kFixtures + "llm_c.bin", "--out", folder / "f", "--tokenizer", read, "--force"}),
                  2, {"contains what this command reads"});
  REQUIRE(read_text(read) == read_text(tokenizer));
}

TEST_CASE("what is no model of another program is refused, with advice") {
  using namespace std::string_literals;
  const TemporaryFolder folder;
  const std::string run = trained(folder);
  folder.write("adapter/adapter_config.json", "{}");
  const auto refused = [&](const std::string& path, int exit_code, const std::vector<std::string>& words) {
    INFO(path);
    require_refused(run_maki({"import", path, "--out", folder / "r"}), exit_code, words);
  };
  refused(run, 2, {run + ": is a run of maki already"});
  refused(checkpoint(run, 4), 2, {"is a run of maki already"});
  refused(folder / "adapter", 2, {"is an adapter of PEFT", "merge_and_unload()"});
  refused(kFixtures + "hf-gpt2/config.json", 4, {"is JSON", "name the directory"});
  refused(folder.write("model.gguf", "GGUF\3\0\0\0"s), 4, {"is a GGUF file", "import the model that it was made of"});
  refused(folder.write("model.pt", "PK\3\4"), 4, {"PyTorch", "save_pretrained()"});
  refused(folder.write("model.bin", "\x80\2\x8a\n"), 4, {"Python pickle", "save_pretrained()"});
  refused(folder.write("notes.txt", "a text"), 4, {"neither a directory of Hugging Face nor a checkpoint of llm.c"});
  REQUIRE_FALSE(std::filesystem::exists(folder / "r"));
}
