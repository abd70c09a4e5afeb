// Every verb that writes a file or directory opens it in the same way: see data/io/output.h.
#include <fcntl.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/require_refused.h"

using namespace maki;
using namespace maki::tests;

namespace {

namespace stdfs = std::filesystem;

// A command without its output, the option that names this, and what the command reads.
struct Writer {
  std::string name;
  Arguments command;
  std::string option;
  std::vector<std::string> inputs;
  bool directory = false, takes_pipes = true;
};

class Outputs {
 public:
  Outputs() {
    require_ok(run_maki(Arguments{"train", corpus_, "--out", run_, "--max-steps", "1"} + kSmall));
    const Arguments encoder = {"--model",  "encoder", "--max-steps",  "1", "--n-layer",    "1", "--n-head", "1",
                               "--n-embd", "8",       "--block-size", "8", "--batch-size", "2"};
    require_ok(run_maki(Arguments{"train", corpus_, "--out", encoder_} + encoder));
    require_ok(run_maki({"export", run_, "--format", "hf", "--out", folder / "hf"}));
  }
  std::vector<Writer> writers() const {
    const std::string file = run_ + "/checkpoints/step-00000001.maki";
    const Arguments tanh = {"--gelu-as-tanh"}, bpe = {"--tokenizer", "bpe"};
    return {
        {"tokenizer", {"tokenizer", "train", corpus_, "--config", config_}, "--out", {corpus_, config_}},
        {"attend", {"attend", run_, "--prompt", "a"}, "--out", {file, run_ + "/config.toml"}},
        {"positions", {"positions", "--width", "8", "--length", "8"}, "--out", {}},
        {"embed", {"embed", encoder_, "a", "a"}, "--npy", {encoder_ + "/config.toml"}},
        {"prepare",
         Arguments{"prepare", corpus_, "--config", config_} + bpe,
         "--out",
         {corpus_, config_},
         false,
         false},
        {"gguf", Arguments{"export", run_, "--format", "gguf"} + tanh, "--out", {file}},
        {"safetensors", {"export", file, "--format", "safetensors"}, "--out", {file}, false, false},
        {"llm.c", Arguments{"export", run_, "--format", "llm.c"} + tanh, "--out", {file}, false, false},
        {"nanogpt", {"prepare", folder / "d", "--format", "nanogpt"}, "--out", {folder / "d"}, true},
        {"hf", {"export", run_, "--format", "hf"}, "--out", {run_}, true},
        {"maki", {"export", run_, "--format", "maki"}, "--out", {run_}, true},
        {"import", {"import", folder / "hf"}, "--out", {folder / "hf"}, true},
    };
  }
  static Finished write(const Writer& writer, const std::string& out, bool force = false) {
    return run_maki(writer.command + Arguments{writer.option, out} + (force ? Arguments{"--force"} : Arguments{}));
  }

  const TemporaryFolder folder;

 private:
  const std::string corpus_ = folder.write("d/corpus.txt", small_text());
  const std::string config_ = folder.write("config.toml", "vocab_size = 270\n");
  const std::string run_ = folder / "run", encoder_ = folder / "encoder";
};

}  // namespace

TEST_CASE("no verb replaces what it reads, whatever the name, and what is there already only with --force") {
  const Outputs outputs;
  const TemporaryFolder& folder = outputs.folder;
  for (const Writer& writer : outputs.writers()) {
    INFO(writer.name);
    const auto refused = [&](const std::string& path, bool force, const std::string& why) {
      require_refused(Outputs::write(writer, path, force), 2, {path, why});
    };
    for (const std::string& input : writer.inputs) {
      const std::string link = folder / "link";
      stdfs::create_symlink(input, link);
      const std::string before = writer.directory ? "" : read_text(input);
      for (const std::string& path : {input, link}) {
        for (const bool force : {false, true}) refused(path, force, "cannot be its output");
      }
      if (!writer.directory) REQUIRE(read_text(input) == before);
      REQUIRE(stdfs::is_symlink(link));
      stdfs::remove(link);
    }
    const std::string out = folder / ("out-" + writer.name);
    folder.write(writer.directory ? "out-" + writer.name + "/precious" : "out-" + writer.name, "precious");
    refused(out, false, "--force");
    if (writer.directory) {
      refused(out, true, "contains precious, which this command does not write");
      REQUIRE(read_text(out + "/precious") == "precious");
      stdfs::remove(out + "/precious");
      require_ok(Outputs::write(writer, out));
    }
    require_ok(Outputs::write(writer, out, true));
    refused(out, false, "--force");
    if (!writer.directory) refused(folder / "d", true, "is a directory");
  }
  for (const auto& entry : stdfs::directory_iterator(folder.path()))
    REQUIRE_FALSE(entry.path().string().ends_with(".tmp"));
}

TEST_CASE("a dash is no name to write to, and stands for standard input where a prompt is read") {
  const Outputs outputs;
  for (const Writer& writer : outputs.writers()) {
    INFO(writer.name);
    require_refused(Outputs::write(writer, "-", true), 2, {"-: is no name", "./-"});
  }
  const std::string run = outputs.folder / "run";
  require_refused(run_maki({"report", run, "--out", "-"}), 2, {"/dev/stdout"});
  require_refused(run_maki({"tokenizer", "encode", "-", run}), 3, {"-: a tokenizer cannot be read"});
  const auto generated = [&](const Arguments& more, const std::string& input) {
    return require_ok(run_maki(Arguments{"generate", run, "--max-tokens", "0"} + more, {.input = input})).out;
  };
  REQUIRE(generated({"--prompt-file", "-"}, "the maki") == "the maki");
  REQUIRE(generated({"--prompts", "-"}, "the\nmaki\n") ==
          generated({"--prompts", outputs.folder.write("prompts", "the\nmaki\n")}, ""));
  require_refused(run_maki({"train", "@stories:3000", "--out", outputs.folder / "t", "--config", "-"}), 2,
                  {"config: "});
}

TEST_CASE("no verb replaces a pipe, and those that write one file from its beginning to its end write to it") {
  const Outputs outputs;
  const std::string pipe = outputs.folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = open(pipe.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);  // does not wait for a writer
  for (const Writer& writer : outputs.writers()) {
    INFO(writer.name);
    const bool accepted = writer.takes_pipes && !writer.directory;
    // Nothing here is larger than a pipe, except the model for llama.cpp.
    if (writer.name == "gguf") continue;
    const Finished finished = Outputs::write(writer, pipe, true);
    accepted ? require_ok(finished) : (require_refused(finished, 2, {pipe}), finished);
    REQUIRE(stdfs::is_fifo(pipe));
    std::string got(1 << 16, '\0');
    const ssize_t size = read(reader, got.data(), got.size());
    REQUIRE((size > 0) == accepted);
    if (!accepted) continue;
    const std::string file = outputs.folder / ("file-" + writer.name);
    require_ok(Outputs::write(writer, file));
    REQUIRE(read_text(file) == got.substr(0, static_cast<std::size_t>(size)));
  }
  close(reader);
}

TEST_CASE("what is written to the standard output is alone there, and what is said beside it goes to stderr") {
  const Outputs outputs;
  for (const Writer& writer : outputs.writers()) {
    if (!writer.takes_pipes || writer.directory) continue;
    INFO(writer.name);
    const std::string file = outputs.folder / ("file-" + writer.name);
    const bool says = !require_ok(Outputs::write(writer, file)).out.empty();
    REQUIRE(says == (writer.name == "tokenizer" || writer.name == "gguf" || writer.name == "embed"));
    RunOptions options;
    options.output_file = outputs.folder / ("all-" + writer.name);
    const Finished alone = require_ok(run_maki(writer.command + Arguments{writer.option, "/dev/stdout"}, options));
    REQUIRE(read_text(options.output_file) == read_text(file));
    REQUIRE_FALSE(alone.err.empty());
  }
  const Arguments tokenizer = outputs.writers().front().command + Arguments{"--out", "/dev/stdout"};
  REQUIRE(contains(require_ok(run_maki(tokenizer)).err, "/dev/stdout: 270 tokens"));
  const Finished both = require_ok(run_maki(tokenizer + Arguments{"--json"}));
  REQUIRE(nlohmann::json::parse(both.out).contains("model"));
  REQUIRE(nlohmann::json::parse(both.err).at("vocab_size") == 270);
}

TEST_CASE("the option --force without the output that it is for is refused") {
  for (const Arguments& verb : {Arguments{"positions"}, Arguments{"import", "model"}})
    require_refused(run_maki(verb + Arguments{"--force"}), 2, {"force: replaces", "--out"});
}
