// Fine-tuning, as a user does it: frozen parameters and adapters (LoRA) on top of another run.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/require_refused.h"
#include "tests/cli/trained_run.h"
#include "tests/train/small_checkpoint.h"
#include "train/run/container.h"

using namespace maki;
using namespace maki::tests;

namespace {

// A base run, another text, and training on that text which begins with the weights of the base.
struct Tuning : TrainedRun {
  Finished tuned(const std::string& name, const Arguments& more) const {
    return run_maki(Arguments{"train", text, "--init-from", path, "--out", folder / name, "--checkpoint-interval", "5",
                              "--keep-last", "9", "--lr-decay-steps", "12", "--dropout", "0.1", "--warmup-steps", "0"} +
                    more);
  }
  std::string text = folder.write("other.txt", small_text() + small_text());
};

nlohmann::json inspected(const std::string& path) {
  return nlohmann::json::parse(require_ok(run_maki({"inspect", path, "--json"})).out);
}

// The bytes of one tensor of a checkpoint with float32 values.
std::string bytes_of(const std::string& path, const std::string& name) {
  const ContainerReader file(path);
  const std::string values = file.read("values");
  for (const TensorEntry& entry : read_tensors(file)) {
    if (entry.name != name) continue;
    return values.substr(static_cast<std::size_t>(entry.offset) * 4, static_cast<std::size_t>(entry.shape.numel()) * 4);
  }
  FAIL("no tensor " << name);
  return "";
}

std::uint64_t bytes_of_moments(const std::string& path) {
  const ContainerReader file(path);
  return file.length("exp_avg") + file.length("exp_avg_sq");
}

}  // namespace

TEST_CASE("a run with frozen parameters begins with another run, leaves them alone, and is resumed exactly") {
  const Tuning base;
  const std::string first = checkpoint(base.path, 30);
  const Arguments freeze = {"--freeze", "wte.*", "--freeze", "h.0.*"};
  const Finished straight = require_ok(base.tuned("straight", freeze + Arguments{"--max-steps", "12"}));
  REQUIRE_THAT(straight.err, ContainsSubstring(" parameters, of which ") && ContainsSubstring(" are trained"));
  const std::string last = checkpoint(base.folder / "straight", 12);
  for (const char* const name : {"wte.weight", "h.0.attn.c_attn.weight", "h.0.ln_1.bias"}) {
    REQUIRE(bytes_of(last, name) == bytes_of(first, name));
  }
  for (const char* const name : {"wpe.weight", "h.1.attn.c_attn.weight", "ln_f.weight"}) {
    REQUIRE(bytes_of(checkpoint(base.folder / "straight", 0), name) == bytes_of(first, name));
    REQUIRE(bytes_of(last, name) != bytes_of(first, name));
  }
  require_ok(base.tuned("cut", freeze + Arguments{"--max-steps", "7", "--threads", "3"}));
  require_ok(run_maki({"train", "--resume", base.folder / "cut", "--max-steps", "12", "--threads", "2"}));
  REQUIRE(read_text(checkpoint(base.folder / "cut", 12)) == read_text(last));

  const nlohmann::json facts = inspected(last);
  REQUIRE(facts.at("config").at("freeze") == nlohmann::json({"wte.*", "h.0.*"}));
  REQUIRE(facts.at("config").at("init_from").get<std::string>().size() == 32);
  REQUIRE_FALSE(inspected(first).at("config").contains("init_from"));
  REQUIRE(facts.at("trained_parameters") < facts.at("parameters"));
  REQUIRE(inspected(first).at("trained_parameters") == inspected(first).at("parameters"));
  REQUIRE(bytes_of_moments(last) < bytes_of_moments(first) / 2 + 4096);
  REQUIRE_THAT(require_ok(run_maki({"inspect", last})).out, ContainsSubstring(" of them trained\n"));
  require_refused(run_maki({"train", "--resume", base.folder / "cut", "--freeze", "wte.*"}), 2,
                  {"freeze: is fixed for this run"});
  // A frozen run is a base like any other, and what it froze is trained again.
  require_ok(run_maki({"train", base.text, "--init-from", base.folder / "straight", "--out", base.folder / "again",
                       "--max-steps", "1"}));
  REQUIRE(bytes_of(checkpoint(base.folder / "again", 1), "wte.weight") != bytes_of(first, "wte.weight"));
}

TEST_CASE("patterns of freeze that make no sense are refused before a run exists") {
  const Tuning base;
  require_refused(base.tuned("no", {"--freeze", "h.7.*", "--max-steps", "1"}), 2,
                  {"freeze: every pattern must match a parameter; got h.7.*; the most similar name is h."});
  require_refused(base.tuned("no", {"--freeze", "*", "--max-steps", "1"}), 2, {"nothing would be trained"});
  const Arguments lora = {"--lora-rank", "2", "--max-steps", "1"};  // which trains nothing but adapters
  require_refused(base.tuned("no", lora + Arguments{"--freeze", "wte*"}), 2,
                  {"freeze: every pattern must match a parameter of an adapter", "got wte*"});
  require_ok(base.tuned("half", lora + Arguments{"--freeze", "*.lora_a"}));
  REQUIRE_FALSE(std::filesystem::exists(base.folder / "no"));
  // In a checkpoint, such a pattern means damage.
  Sections sections = sections_of(checkpoint(base.path, 30));
  std::string& config = section(sections, "config");
  config.replace(config.find("freeze = []"), 11, "freeze = ['wtf']");
  const std::string forged = write_sections(base.folder / "forged.maki", sections);
  require_refused(run_maki({"generate", forged}), 4, {"forged.maki: freeze: every pattern must match", "wte.weight"});
}

TEST_CASE("a run begins with the weights of another in a shorter or longer context, unless its positions are learned") {
  const Tuning base;
  require_refused(base.tuned("no", {"--block-size", "8", "--max-steps", "1"}), 2,
                  {"block_size: must be 16 to start with the weights of"});
  REQUIRE_FALSE(std::filesystem::exists(base.folder / "no"));
  const std::string rotary = base.folder / "rotary";
  require_ok(
      run_maki(Arguments{"train", base.text, "--out", rotary, "--positions", "rotary", "--max-steps", "5"} + kSmall));
  for (const char* const context : {"8", "32"}) {
    const std::string name = std::string("in-") + context, run = base.folder / name;
    require_ok(run_maki({"train", base.text, "--init-from", rotary, "--block-size", context, "--max-steps", "2",
                         "--out", run, "--checkpoint-interval", "1"}));
    REQUIRE(inspected(run).at("config").at("block_size") == std::stoi(context));
    REQUIRE(bytes_of(checkpoint(run, 0), "h.1.attn.c_attn.weight") ==
            bytes_of(checkpoint(rotary, 5), "h.1.attn.c_attn.weight"));
    const std::string last = read_text(checkpoint(run, 2));
    require_ok(run_maki({"train", "--resume", run, "--checkpoint", "1"}));
    REQUIRE(read_text(checkpoint(run, 2)) == last);
  }
}

TEST_CASE("adapters are trained on top of a run, whose weights keep their bits, and are resumed exactly") {
  const Tuning base;
  const std::string first = checkpoint(base.path, 30);
  const Arguments lora = {"--lora-rank", "2", "--lora-alpha", "4"};
  const Finished straight = require_ok(base.tuned("straight", lora + Arguments{"--max-steps", "12"}));
  REQUIRE_THAT(straight.err, ContainsSubstring(" are trained"));
  const std::string begun = checkpoint(base.folder / "straight", 0), last = checkpoint(base.folder / "straight", 12);
  const ContainerReader file(first);
  for (const TensorEntry& entry : read_tensors(file))
    REQUIRE(bytes_of(last, entry.name) == bytes_of(first, entry.name));
  REQUIRE(bytes_of(last, "h.1.mlp.c_fc.lora_b") != bytes_of(begun, "h.1.mlp.c_fc.lora_b"));
  REQUIRE(bytes_of_moments(last) < bytes_of_moments(first) / 2);
  require_ok(base.tuned("cut", lora + Arguments{"--max-steps", "7", "--threads", "3"}));
  require_ok(run_maki({"train", "--resume", base.folder / "cut", "--max-steps", "12", "--threads", "2"}));
  REQUIRE(read_text(checkpoint(base.folder / "cut", 12)) == read_text(last));
  // What a new adapter writes is what the base writes.
  const Arguments greedy = {"--temperature", "0", "--max-tokens", "20", "--prompt", "the "};
  REQUIRE(run_maki(Arguments{"generate", begun} + greedy).out == run_maki(Arguments{"generate", first} + greedy).out);
  REQUIRE(require_ok(run_maki({"eval", begun, base.text, "--json"})).out.substr(0) !=
          require_ok(run_maki({"eval", last, base.text, "--json"})).out);
}

TEST_CASE("adapters are merged into a run that computes the same and is exported alike") {
  const Tuning base;
  require_ok(
      base.tuned("tuned", {"--lora-rank", "2", "--lora-alpha", "9", "--max-steps", "12", "--learning-rate", "0.01"}));
  const std::string tuned = base.folder / "tuned", merged = base.folder / "merged";
  REQUIRE_THAT(require_ok(run_maki({"export", tuned, "--format", "maki", "--out", merged})).out,
               ContainsSubstring("step-00000000.maki"));
  const auto loss = [&](const std::string& run) {
    const std::string out = require_ok(run_maki({"eval", run, base.text, "--json"})).out;
    return nlohmann::json::parse(out).at("val_loss").get<double>();
  };
  REQUIRE(std::abs(loss(merged) - loss(tuned)) < 1e-6);
  REQUIRE(std::abs(loss(merged) - loss(base.path)) > 1e-4);
  const nlohmann::json facts = inspected(merged);
  REQUIRE(facts.at("config").at("lora_rank") == 0);
  REQUIRE(facts.at("parameters") == inspected(base.path).at("parameters"));
  require_ok(run_maki({"inspect", merged, "--verify"}));
  for (const char* const format : {"hf", "safetensors", "gguf"}) {
    INFO(format);
    const std::string one = base.folder / (std::string("one-") + format), two = one + "-2";
    const Arguments tanh = format == std::string("gguf") ? Arguments{"--gelu-as-tanh"} : Arguments{};
    require_ok(run_maki(Arguments{"export", tuned, "--format", format, "--out", one} + tanh));
    require_ok(run_maki(Arguments{"export", merged, "--format", format, "--out", two} + tanh));
    const std::string inside = format == std::string("hf") ? "/model.safetensors" : "";
    REQUIRE(read_text(one + inside) == read_text(two + inside));
  }
  // The merged run is a base for others, and so is the tuned one, with its own adapters.
  require_ok(run_maki(
      {"train", base.text, "--init-from", merged, "--out", base.folder / "a", "--lora-rank", "3", "--max-steps", "1"}));
  require_ok(run_maki({"train", base.text, "--init-from", tuned, "--out", base.folder / "b", "--max-steps", "1"}));
  REQUIRE(inspected(base.folder / "b").at("config").at("lora_rank") == 2);
}

TEST_CASE("adapters are refused where they make no sense") {
  const Tuning base;
  require_refused(run_maki({"train", base.text, "--out", base.folder / "no", "--lora-rank", "2", "--max-steps", "1"}),
                  2, {"lora_rank: adapts a model that has learned already; name its run with --init-from RUN"});
  require_refused(base.tuned("no", {"--lora-alpha", "2", "--max-steps", "1"}), 2,
                  {"lora_alpha: has an effect only if lora_rank is not 0"});
  require_refused(base.tuned("no", {"--lora-targets", "*", "--max-steps", "1"}), 2, {"lora_targets: has an effect"});
  require_refused(base.tuned("no", {"--lora-rank", "2", "--lora-targets", "*.attm.*", "--max-steps", "1"}), 2,
                  {"lora_targets: every pattern must match", "the most similar name is h.0.attn."});
  require_ok(base.tuned("tuned", {"--lora-rank", "2", "--max-steps", "1"}));
  require_refused(run_maki({"train", base.text, "--init-from", base.folder / "tuned", "--out", base.folder / "no",
                            "--lora-rank", "3", "--max-steps", "1"}),
                  2, {"lora_rank: must be 2 to start with the weights of", "maki export --format maki"});
  require_refused(run_maki({"plan", base.text, "--lora-rank", "2"}), 2, {"--lora-rank: is an option of maki train"});
  require_refused(base.tuned("no", {"--zero-projections", "--max-steps", "1"}), 2,
                  {"zero_projections: says what random values a model begins with"});
  REQUIRE_FALSE(std::filesystem::exists(base.folder / "no"));
}

TEST_CASE("gradcheck checks the adapters of a described model and of a run") {
  const Finished described = require_ok(run_maki({"gradcheck", "--n-layer", "1", "--n-embd", "8", "--n-head", "2",
                                                  "--block-size", "8", "--lora-rank", "2", "--json"}));
  const nlohmann::json facts = nlohmann::json::parse(described.out);
  REQUIRE(facts.at("passed") == true);
  REQUIRE(facts.at("tensors").size() == 8);
  for (const nlohmann::json& tensor : facts.at("tensors")) {
    REQUIRE(tensor.at("name").get<std::string>().find(".lora_") != std::string::npos);
  }
  const Tuning base;
  require_ok(base.tuned("tuned", {"--lora-rank", "2", "--max-steps", "3"}));
  require_ok(run_maki({"gradcheck", base.folder / "tuned"}));
}

TEST_CASE("blocks may be recomputed in any part of a run, whose bytes stay the same") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const Arguments train = Arguments{"train", corpus, "--max-steps", "20"} + kSmall;
  require_ok(run_maki(train + Arguments{"--out", folder / "kept"}));
  const std::string expected = read_text(checkpoint(folder / "kept", 20));
  require_ok(run_maki(train + Arguments{"--out", folder / "all", "--recompute-blocks", "--threads", "3"}));
  REQUIRE(read_text(checkpoint(folder / "all", 20)) == expected);
  require_ok(run_maki(Arguments{"train", corpus, "--max-steps", "7", "--out", folder / "part"} + kSmall));
  require_ok(run_maki({"train", "--resume", folder / "part", "--max-steps", "20", "--recompute-blocks"}));
  REQUIRE(read_text(checkpoint(folder / "part", 20)) == expected);
  require_refused(
      run_maki(train + Arguments{"--out", folder / "no", "--recompute-blocks", "--model", "transformer-xl"}), 2,
      {"recompute_blocks: has an effect only if model is gpt or linear or encoder; it is transformer-xl"});
}
