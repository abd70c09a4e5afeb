// Every option of a run with every kind of model and task: it is refused, or something that the run computes or shows
// is different. This detects an option that is accepted and then ignored.
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/cli/every_kind.h"
#include "tests/cli/require_refused.h"
#include "train/run/config/config.h"
#include "train/run/container.h"

using namespace maki::tests;

namespace {

// An option with another value than in kBase, and what it needs to have an effect.
struct Tried {
  Arguments option, needs = {};
};

// Six short steps, with two evaluations and three checkpoints.
const Arguments kBase = {"--n-layer",
                         "2",
                         "--n-head",
                         "2",
                         "--n-embd",
                         "16",
                         "--block-size",
                         "16",
                         "--batch-size",
                         "3",
                         "--grad-clip",
                         "0.5",
                         "--warmup-steps",
                         "2",
                         "--lr-decay-steps",
                         "60",
                         "--learning-rate",
                         "0.003",
                         "--min-lr",
                         "0.0003",
                         "--max-steps",
                         "6",
                         "--eval-interval",
                         "3",
                         "--eval-batches",
                         "2",
                         "--checkpoint-interval",
                         "2",
                         "--log-interval",
                         "2",
                         "--threads",
                         "1"};

// By field. A field with several rows is tried with each, because the default of its kind may be one of the values.
const std::multimap<std::string, Tried> kTried = {
    {"n_layer", {{"--n-layer", "1"}}},
    {"n_head", {{"--n-head", "1"}}},
    {"n_kv_head", {{"--n-kv-head", "1"}}},
    {"n_embd", {{"--n-embd", "8"}}},
    {"block_size", {{"--block-size", "9"}}},
    {"dropout", {{"--dropout", "0.3"}}},
    {"bias", {{"--no-bias"}}},
    {"tie_weights", {{"--no-tie-weights"}}},
    {"share_vocabulary", {{"--share-vocabulary"}}},
    {"activation", {{"--activation", "relu"}}},
    {"norm_order", {{"--norm-order", "post"}}},
    {"norm_order", {{"--norm-order", "pre"}}},
    {"norm", {{"--norm", "rms"}}},
    {"positions", {{"--positions", "none"}}},
    {"position_base", {{"--position-base", "100"}, {"--positions", "sinusoidal"}}},
    {"attention", {{"--attention", "random:4"}}},
    {"memory", {{"--memory", "3"}}},
    {"ngram_orders", {{"--ngram-orders", "2"}}},
    {"ngram_rows", {{"--ngram-rows", "20"}, {"--ngram-orders", "2"}}},
    {"ngram_dropout", {{"--ngram-dropout", "0.4"}, {"--ngram-orders", "2"}}},
    {"ngram_lr_factor", {{"--ngram-lr-factor", "2"}, {"--ngram-orders", "2"}}},
    {"ngram_prior", {{"--ngram-prior", "2"}}},
    {"respect_documents", {{"--respect-documents"}, {"--document-separator", "==="}}},
    {"qk_norm", {{"--qk-norm"}}},
    {"conv_width", {{"--conv-width", "2"}}},
    {"ffn_width", {{"--ffn-width", "20"}}},
    {"norm_epsilon", {{"--norm-epsilon", "0.01"}}},
    {"zero_projections", {{"--zero-projections"}}},
    {"lora_rank", {{"--lora-rank", "1"}}},
    {"lora_alpha", {{"--lora-alpha", "2"}}},
    {"lora_targets", {{"--lora-targets", "*"}}},
    {"freeze", {{"--freeze", "*wte.weight"}}},
    {"dtype", {{"--dtype", "float64"}}},
    {"precision", {{"--precision", "bfloat16"}}},
    {"tokenizer", {{"--tokenizer", "byte"}}},
    {"vocab_size", {{"--vocab-size", "262"}, {"--tokenizer", "bpe"}}},
    {"normalize", {{"--normalize", "nfkc"}}},
    {"invalid_utf8", {{"--invalid-utf8", "replace"}}},
    {"encoding", {{"--encoding", "ISO-8859-1"}}},
    {"include", {{"--include", "*.txt"}}},
    {"exclude", {{"--exclude", "*.txt"}}},
    {"documents", {{"--documents"}}},
    {"document_separator", {{"--document-separator", "==="}}},
    {"json_field", {{"--json-field", "text"}}},
    {"val_fraction", {{"--val-fraction", "0.3"}}},
    {"batch_size", {{"--batch-size", "2"}}},
    {"grad_accum", {{"--grad-accum", "2"}}},
    {"seed", {{"--seed", "8"}}},
    {"label_smoothing", {{"--label-smoothing", "0.2"}}},
    {"grad_clip", {{"--grad-clip", "0.01"}}},
    {"optimizer", {{"--optimizer", "muon"}}},
    {"learning_rate", {{"--learning-rate", "0.02"}}},
    {"muon_lr", {{"--muon-lr", "0.05"}, {"--optimizer", "muon"}}},
    {"min_lr", {{"--min-lr", "0.002"}}},
    {"beta1", {{"--beta1", "0.5"}}},
    {"beta2", {{"--beta2", "0.5"}}},
    {"momentum", {{"--momentum", "0.5"}, {"--optimizer", "sgd"}}},
    {"nesterov", {{"--nesterov"}, {"--optimizer", "sgd", "--momentum", "0.5"}}},
    {"weight_decay", {{"--weight-decay", "0.5"}}},
    {"schedule", {{"--schedule", "linear"}}},
    {"warmup_steps", {{"--warmup-steps", "4"}}},
    {"lr_decay_steps", {{"--lr-decay-steps", "9"}}},
    {"max_steps", {{"--max-steps", "5"}}},
    {"threads", {{"--threads", "2"}}},
    {"eval_interval", {{"--eval-interval", "2"}}},
    {"eval_batches", {{"--eval-batches", "1"}}},
    {"counting", {{"--no-counting"}}},
    {"recompute_blocks", {{"--recompute-blocks"}}},
    {"checkpoint_interval", {{"--checkpoint-interval", "3"}}},
    {"keep_last", {{"--keep-last", "1"}}},
    {"sample_interval", {{"--sample-interval", "3"}}},
    {"log_interval", {{"--log-interval", "3"}}},
    {"tensorboard", {{"--tensorboard"}}},
};
// Tasks of every kind read these in the same way; "out" is part of every command below, overfitting takes longer, and
// teachers are other runs (taught_run_test.cpp).
const std::set<std::string> kOthers = {"model",    "task",   "out",     "early_stop",
                                       "patience", "target", "teacher", "teacher_weight"};

// What a run computed and showed, without paths and times.
struct Outcome {
  int exit_code;
  std::string config, facts;
};

Outcome outcome_of(const std::string& corpus, const Arguments& options) {
  const TemporaryFolder folder;
  RunOptions inside;
  inside.working_directory = folder.path();
  const Finished done = run_maki(Arguments{"train", corpus, "--out", "run"} + options, inside);
  if (done.exit_code != 0) return {done.exit_code, "", done.err};
  const std::string run = folder / "run";
  std::string facts, line;
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(run + "/checkpoints"))
    files.insert(entry.path().filename());
  for (const std::string& name : files) facts += name + "\n";
  for (const auto& entry : std::filesystem::directory_iterator(run))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) facts += "events\n";
  for (std::istringstream shown(done.err); std::getline(shown, line);) {
    for (const char* const kind : {"text ", "model ", "run ", "memory "})
      if (line.starts_with(kind)) facts += line + "\n";
  }
  for (std::istringstream metrics(read_text(run + "/metrics.jsonl")); std::getline(metrics, line);) {
    nlohmann::json entry = nlohmann::json::parse(line);
    entry.erase("tokens_per_second");
    entry.erase("elapsed_seconds");
    facts += entry.dump() + "\n";
  }
  const std::string last = run + "/checkpoints/" + *files.rbegin();
  return {0, read_text(run + "/config.toml"), facts + maki::ContainerReader(last).read("values")};
}

// Two columns or running text, with a character that NFKC changes, and in running text documents.
std::string corpus_of(const SmallKind& kind) {
  const std::size_t tab = kind.corpus_text.find('\t');
  if (tab != std::string::npos)
    return kind.corpus_text + "\uFB01a" + kind.corpus_text.substr(tab, kind.corpus_text.find('\n') + 1 - tab);
  std::string text;
  for (std::size_t at = 0; at < kind.corpus_text.size(); at += 400)
    text += kind.corpus_text.substr(at, 400) + "\uFB01\n===\n";
  return text;
}

void try_options(const SmallKind& kind) {
  const TemporaryFolder folder;
  const std::string text = corpus_of(kind), corpus = folder.write("corpus.txt", text);
  const Arguments base = kBase + Arguments{"--model", kind.model, "--task", kind.task};
  std::map<Arguments, Outcome> before;  // by needs
  for (const maki::Field& field : maki::fields()) {
    if (kOthers.contains(field.name)) continue;
    INFO(kind.name() << ": " << field.name << "; a new field needs a row in kTried");
    REQUIRE(kTried.contains(field.name));
    for (auto [row, end] = kTried.equal_range(field.name); row != end; ++row) {
      auto [option, needs] = row->second;
      if (!before.contains(needs)) before[needs] = outcome_of(corpus, base + needs);
      if (before[needs].exit_code != 0) needs = {};  // what it needs is refused, so it must be, too
      // To count is the default, which other tasks leave undone.
      if (field.name == "counting" && kind.task != "next_token") option = {"--counting"};
      const Outcome after = outcome_of(corpus, base + needs + option);
      INFO(after.facts.substr(0, 300));
      REQUIRE(before[{}].exit_code == 0);
      if (after.exit_code != 0) {
        REQUIRE((after.exit_code == 2 || field.name == "json_field" || field.name == "documents"));
        REQUIRE_THAT(after.facts, ContainsSubstring(field.name) || ContainsSubstring(field.option()) ||
                                      ContainsSubstring("is not JSON") || ContainsSubstring("is one document"));
      } else if (field.name == "invalid_utf8") {
        const std::string broken = folder.write("broken.txt", "\xFF" + text);
        REQUIRE(outcome_of(broken, base).exit_code == 3);
        REQUIRE(outcome_of(broken, base + option).exit_code == 0);
      } else if (after.config != before[needs].config) {
        REQUIRE(after.facts != before[needs].facts);
      }
    }
  }
}

void try_task(const std::string& task) {
  for (const SmallKind& kind : every_kind()) {
    if (kind.task == task) try_options(kind);
  }
}

}  // namespace

TEST_CASE("what the test of options compares does not depend on the time") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const Outcome first = outcome_of(corpus, kBase), again = outcome_of(corpus, kBase);
  REQUIRE(first.exit_code == 0);
  REQUIRE(again.facts == first.facts);
}

TEST_CASE("every option has an effect or is refused: models that continue a text") { try_task("next_token"); }
TEST_CASE("every option has an effect or is refused: models that translate") { try_task("translate"); }
TEST_CASE("every option has an effect or is refused: models that fill masks") { try_task("masked"); }
TEST_CASE("every option has an effect or is refused: models that label texts") { try_task("classify"); }
