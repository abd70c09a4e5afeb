// The words of the command line: alternative spellings that are accepted, and the messages for words that are not.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/require_refused.h"
#include "train/run/config/config.h"

using namespace maki::tests;

namespace {

// The whole of stderr. Requires that the command line is rejected with exit code 2.
std::string said(const Arguments& arguments) {
  const Finished finished = run_maki(arguments);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 2);
  REQUIRE(finished.out.empty());
  return finished.err;
}

const std::string kVerbs =
    "train, plan, generate, fill, embed, classify, eval, attend, positions, inspect, report, serve, prepare, "
    "tokenizer, import, export, gradcheck, bench";

}  // namespace

TEST_CASE("the error for an unknown word names the nearest one, if any, and where to find help") {
  REQUIRE(said({"trian"}) == "maki: trian: unknown verb; must be one of " + kVerbs + "; the nearest is train\n");
  REQUIRE(said({"xyzzy"}) == "maki: xyzzy: unknown verb; must be one of " + kVerbs + "\n");
  REQUIRE(said({"train", "--learning-rte=3"}) ==
          "maki: --learning-rte: unknown option; the nearest is --learning-rate; see maki train --help\n");
  REQUIRE(said({"train", "x", "--outt=y"}) ==
          "maki: --outt: unknown option; the nearest is --out; see maki train --help\n");
  REQUIRE(said({"train", "x", "--gpu"}) == "maki: --gpu: unknown option; see maki train --help\n");
  REQUIRE(said({"train", "x", "--max-steps"}) == "maki: --max-steps: needs a value; see maki train --help\n");
  REQUIRE(said({"--completion"}) == "maki: --completion: needs a value; see maki --help\n");
  REQUIRE(said({"eval", "x", "--json=x"}) == "maki: --json: takes no value; see maki eval --help\n");
  REQUIRE(said({"train", "x", "--no-bias=12345678901234567890"}) ==
          "maki: --no-bias: takes no value; see maki train --help\n");
  REQUIRE(said({"bench", "gemm", "1,1,1", "--thread", "1"}) ==
          "maki: --thread: unknown option; the nearest is --threads; see maki bench gemm --help\n");
  REQUIRE(said({"train", "x", "-out", "y"}) == "maki: -out: needs two dashes; write --out; see maki train --help\n");
  REQUIRE(said({"train", "x", "-lr=1"}) == "maki: -lr: needs two dashes; write --lr; see maki train --help\n");
  REQUIRE(said({"gradcheck", "a", "b"}) == "maki: b: unexpected argument; see maki gradcheck --help\n");
  REQUIRE_THAT(said({"train", "x", "--schedule", "quadratic"}), !ContainsSubstring("nearest"));
  REQUIRE_THAT(said({"generate"}), ContainsSubstring("RUN") && ContainsSubstring("see maki generate --help"));
}

TEST_CASE("the error for a missing or unknown verb of a verb lists its verbs") {
  REQUIRE(said({"tokenizer"}) == "maki: needs a verb: train, encode, decode, inspect; see maki tokenizer --help\n");
  REQUIRE(said({"tokenizer", "encod"}) ==
          "maki: encod: unknown verb; must be one of train, encode, decode, inspect; the nearest is encode\n");
  REQUIRE(said({"tokenizer", "chat"}) == "maki: chat: unknown verb; must be one of train, encode, decode, inspect\n");
  REQUIRE(said({"bench", "train"}) == "maki: train: unknown verb; must be one of gemm, generate, network\n");
}

TEST_CASE("an argument of a verb may be the name of another verb") {
  REQUIRE_THAT(run_maki({"train", "plan", "--n-layer", "2"}).err, ContainsSubstring("maki: plan: cannot be opened"));
  REQUIRE_THAT(run_maki({"inspect", "plan"}).err, ContainsSubstring("maki: plan: there is no such run directory"));
}

TEST_CASE("an option that may be repeated takes one value each time, and arguments keep their brackets") {
  const TemporaryFolder folder;
  folder.write("corpus.txt", small_text());
  const std::string run = folder / "run";
  const Finished trained =
      run_maki(Arguments{"train", "--out", run} + kSmall +
               Arguments{"--max-steps", "1", "--include", "*.txt", "--include", "*.md", folder / ""});
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  REQUIRE_THAT(read_text(run + "/config.toml"), ContainsSubstring("*.txt") && ContainsSubstring("*.md"));
  const Finished stopped =
      run_maki({"generate", "--prompt", "the", "--max-tokens", "3", "--json", "--stop", "[x,y]", run});
  INFO(stopped.err);
  REQUIRE(stopped.exit_code == 0);
  REQUIRE_THAT(run_maki({"train", "[no, such file]"}).err,
               ContainsSubstring("maki: [no, such file]: cannot be opened"));
  REQUIRE_THAT(said({"gradcheck", "a", "[b]"}), ContainsSubstring("maki: [b]: unexpected argument"));
}

TEST_CASE("a value after = may be empty, and then the next word is no value") {
  REQUIRE_THAT(run_maki({"generate", "--prompt=", "no-such-run"}).err, ContainsSubstring("no-such-run: there is no"));
  REQUIRE_THAT(said({"generate", "x", "--temperature="}), ContainsSubstring("temperature: must not be empty"));
}

TEST_CASE("the last value of an option counts") {
  REQUIRE_THAT(said({"generate", "x", "--temperature", "1", "--temperature", "hot"}), ContainsSubstring("got hot"));
  REQUIRE_THAT(said({"generate", "x", "--overflow", "stop", "--overflow", "burst"}), ContainsSubstring("got burst"));
}

TEST_CASE("the error for an option of another verb names that verb") {
  REQUIRE(said({"train", "x", "--temperature", "1"}) ==
          "maki: --temperature: is an option of maki generate, not of maki train; see maki train --help\n");
  REQUIRE(said({"generate", "x", "--batch_size", "3"}) ==
          "maki: --batch_size: is an option of maki train, maki plan and maki bench, not of maki generate; see maki "
          "generate --help\n");
  REQUIRE(said({"train", "x", "--temperatur", "1"}) ==
          "maki: --temperatur: unknown option; the nearest is --temperature of maki generate; see maki train "
          "--help\n");
  for (const Arguments& early : {Arguments{"--batch-size", "3"}, Arguments{"--batch-size", "3", "train", "x"}}) {
    REQUIRE_THAT(said(early),
                 ContainsSubstring("--batch-size: options come after the verb, as in maki train --batch-size"));
  }
  // Of two options that are equally near, that of the verb is named.
  REQUIRE_THAT(said({"eval", "x", "--checkpont", "last"}),
               ContainsSubstring("the nearest is --checkpoint; see maki eval"));
}

TEST_CASE("the error for an alias of a verb names the verb") {
  for (const auto& [word, verb] : {std::pair{"sample", "generate"},
                                   {"fit", "train"},
                                   {"info", "inspect"},
                                   {"test", "eval"},
                                   {"evaluate", "eval"},
                                   {"benchmark", "bench"}}) {
    const std::string sentence =
        std::string("maki: ") + word + ": unknown verb; must be one of " + kVerbs + "; the nearest is " + verb + "\n";
    REQUIRE(said({word}) == sentence);
    REQUIRE(said({word, "--help"}) == sentence);
    REQUIRE(said({"help", word}) == sentence);
  }
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  REQUIRE_THAT(said({corpus}), ContainsSubstring("to train on this text: maki train " + corpus));
}

TEST_CASE("help for a verb is printed in either order of the words") {
  REQUIRE(run_maki({"help"}).out == run_maki({"--help"}).out);
  for (const Arguments& verb : {Arguments{"train"}, Arguments{"generate"}, Arguments{"bench", "gemm"}}) {
    const Finished asked = run_maki(Arguments{"help"} + verb);
    REQUIRE(asked.exit_code == 0);
    REQUIRE(asked.out == run_maki(verb + Arguments{"--help"}).out);
    REQUIRE_THAT(asked.out, ContainsSubstring(verb.back()));
  }
}

TEST_CASE("underscores and common aliases are accepted in options, and values are unchanged") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  const Finished aliases =
      run_maki(Arguments{"train", corpus, "--out_dir", run} + kSmall +
               Arguments{"--batch_size=2", "--lr", "0.002", "-n", "2", "--no_bias", "--mlp", "swiglu"});
  INFO(aliases.err);
  REQUIRE(aliases.exit_code == 0);
  const std::string written = read_text(run + "/config.toml");
  REQUIRE_THAT(written, ContainsSubstring("\nbatch_size = 2 ") && ContainsSubstring("\nlearning_rate = 0.002 ") &&
                            ContainsSubstring("\nmax_steps = 2 ") && ContainsSubstring("\nbias = false ") &&
                            ContainsSubstring("\nactivation = 'swiglu' "));
  const Finished warm = run_maki({"generate", run, "--temp", "x"});
  REQUIRE_THAT(warm.err, ContainsSubstring("temperature: must be a finite decimal number; got x"));
  // A value that looks like an option.
  RunOptions inside;
  inside.working_directory = folder / "";
  REQUIRE(
      run_maki(Arguments{"train", corpus, "--out", "--batch_size", "--max-steps", "1"} + kSmall, inside).exit_code ==
      0);
  REQUIRE(std::filesystem::exists(folder / "--batch_size/config.toml"));
}

TEST_CASE("the option --epochs is the number of steps that the passes over the text take") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  // 4,304 tokens are 268 windows of 16 tokens, and a step takes 9 windows.
  const Arguments train = Arguments{"train", corpus, "--out", run} + kSmall;
  require_refused(run_maki(train + Arguments{"--epochs", "many"}), 2, {"epochs: must be a finite decimal number"});
  require_refused(run_maki(train + Arguments{"--epochs", "0"}), 2, {"epochs: must be above 0; got 0"});
  require_refused(run_maki(train + Arguments{"--epochs", "1", "--max-steps", "2"}), 2,
                  {"epochs: ", "--max-steps", "omit"});
  require_refused(run_maki(train + Arguments{"--epochs", "1", "--minutes", "1"}), 2, {"epochs: ", "--minutes", "omit"});
  require_refused(run_maki(train + Arguments{"--epochs", "1000000000"}), 2,
                  {"epochs: are at most ", " steps; got 1000000000, which are ", "; use fewer"});
  REQUIRE_FALSE(std::filesystem::exists(run));
  REQUIRE_THAT(require_ok(run_maki(train + Arguments{"--num_epochs", "1"})).err, ContainsSubstring("run    30 steps"));
  const std::string steps = folder / "steps", passes = folder / "passes";
  const Arguments open = {"--lr-decay-steps", "0"};  // the schedule ends with the run
  require_ok(run_maki(Arguments{"train", corpus, "--out", steps} + kSmall + open + Arguments{"--max-steps", "9"}));
  require_ok(run_maki(Arguments{"train", corpus, "--out", passes} + kSmall + open + Arguments{"--epochs", "0.3"}));
  REQUIRE(read_text(checkpoint(passes, 9)) == read_text(checkpoint(steps, 9)));
  // A run that is resumed goes on to that many passes, counted from its beginning.
  require_ok(run_maki({"train", "--resume", steps, "--max-steps", "15", "--rewarm", "--learning-rate", "0.002"}));
  require_ok(run_maki({"train", "--resume", passes, "--epochs", "0.5", "--rewarm", "--learning-rate", "0.002"}));
  REQUIRE(read_text(checkpoint(passes, 15)) == read_text(checkpoint(steps, 15)));
  REQUIRE_THAT(require_ok(run_maki({"train", "--resume", run, "--epochs", "1"})).err,
               ContainsSubstring("has reached step 30 of 30"));
  REQUIRE_THAT(require_ok(run_maki({"train", "--resume", run, "--max-steps", "10"})).err,
               ContainsSubstring("has 30 steps already, and max_steps is 10; continue it with: "));
  REQUIRE_THAT(run_maki({"train", "--help"}).out, ContainsSubstring("--epochs NUMBER"));
  const std::string one = folder / "one";  // a fraction of a step is one step
  REQUIRE_THAT(require_ok(run_maki(Arguments{"train", corpus, "--out", one, "--epochs", "1e-12"} + kSmall)).err,
               ContainsSubstring("run    1 step of"));
  // Its schedule ends at step 60, so the next step continues it.
  REQUIRE_THAT(require_ok(run_maki({"train", "--resume", one})).err,
               ContainsSubstring("--max-steps 2\n") && !ContainsSubstring("--rewarm"));
}

TEST_CASE("bench and gradcheck list and accept only options that they use") {
  const Arguments model = {"--model",        "--task",       "--attention",  "--n-layer",       "--n-head",
                           "--n-embd",       "--block-size", "--bias",       "--tie-weights",   "--activation",
                           "--norm-order",   "--norm",       "--positions",  "--position-base", "--memory",
                           "--ngram-orders", "--ngram-rows", "--qk-norm",    "--conv-width",    "--ffn-width",
                           "--norm-epsilon", "--lora-rank",  "--lora-alpha", "--lora-targets",  "--seed",
                           "--threads",      "--n-kv-head"};
  struct Verb {
    Arguments path, more;
  };
  const std::vector<Verb> verbs = {
      {{"bench"},
       {"--dropout", "--dtype", "--precision", "--batch-size", "--grad-accum", "--label-smoothing", "--optimizer",
        "--momentum", "--nesterov", "--recompute-blocks", "--vocab-size", "--share-vocabulary", "--ngram-prior"}},
      {{"bench", "generate"}, {"--dtype", "--vocab-size"}},
      {{"gradcheck"}, {"--dropout", "--label-smoothing", "--share-vocabulary", "--ngram-prior"}}};
  for (const auto& [path, more] : verbs) {
    const Arguments used = model + more;
    const std::string help = run_maki(path + Arguments{"--help"}).out;
    for (const maki::Field& field : maki::fields()) {
      const bool listed = help.find("  " + field.option() + (field.is_boolean() ? "," : " ")) != std::string::npos;
      INFO(path.back() << " " << field.option());
      REQUIRE(listed == (std::ranges::find(used, field.option()) != used.end()));
    }
    for (const char* option : {"--learning-rate", "--tokenizer", "--out", "--eval-interval", "--val-fraction"}) {
      REQUIRE_THAT(said(path + Arguments{option, "1"}),
                   ContainsSubstring(std::string("maki: ") + option + ": is an option of maki train"));
    }
  }
  // An option before a verb of bench would have no effect.
  REQUIRE_THAT(said({"bench", "--n-layer", "2", "generate"}),
               ContainsSubstring("--n-layer was given before generate, to which it does not apply"));
}

TEST_CASE("a preset of bench is the preset of train") {
  const Arguments small = {"--n-layer", "1", "--n-embd", "12", "--block-size", "4", "--steps", "1", "--json"};
  const Finished finished = run_maki(Arguments{"bench", "--preset", "baby"} + small);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  maki::Config baby;
  maki::apply_preset(baby, "baby");
  const nlohmann::json facts = nlohmann::json::parse(finished.out);
  REQUIRE(facts.at("batch_size") == baby.batch_size);
  REQUIRE(facts.at("n_head") == baby.n_head);
  REQUIRE(facts.at("parameters") == 65 * 12 + 12 * 12 * 12 + 13 * 12 + 2 * 12);  // with biases, as in train
}
