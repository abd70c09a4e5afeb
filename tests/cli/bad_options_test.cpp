// Invalid options, numbers and paths, and too little memory: one clear sentence and the documented exit code.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "data/io/utf8.h"
#include "tests/cli/require_refused.h"

using namespace maki::tests;

TEST_CASE("invalid options: exit 2") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  require_refused(train(folder, corpus, {"--learning-rat", "1"}), 2, {"--learning-rat", "--learning-rate"});
  require_refused(train(folder, corpus, {"--learning-rate", "fast"}), 2, {"learning", "fast"});
  require_refused(train(folder, corpus, {"--learning-rate", "nan"}), 2, {"nan"});
  require_refused(train(folder, corpus, {"--dropout", "1.5"}), 2, {"dropout", "1.5"});
  require_refused(train(folder, corpus, {"--n-layer", "-1"}), 2, {"n", "layer", "-1"});
  require_refused(train(folder, corpus, {"--n-layer", "2.5"}), 2, {"2.5"});
  require_refused(train(folder, corpus, {"--grad-accum", "0"}), 2, {"grad_accum", "0"});
  require_refused(train(folder, corpus, {"--n-head", "3"}), 2, {"16", "3"});
  require_refused(train(folder, corpus, {"--schedule", "cosin"}), 2, {"cosin", "cosine"});
  require_refused(train(folder, corpus, {"--preset", "quickstar"}), 2, {"quickstar", "quickstart"});
  require_refused(train(folder, corpus, {"--config", folder / "none.toml"}), 2, {"none.toml"});
  require_refused(train(folder, corpus, {"--config", folder.write("typo.toml", "n_layr = 2\n")}), 2,
                  {"n_layr", "n_layer"});
  require_refused(train(folder, corpus, {"--config", folder.write("broken.toml", "n_layer = = 2\n")}), 2,
                  {"broken.toml"});
  require_refused(run_maki({"train"}), 2, {"CORPUS"});
  require_refused(run_maki({"trian", corpus}), 2, {"trian", "train"});
  REQUIRE_FALSE(std::filesystem::exists(folder / "run/checkpoints"));
}

TEST_CASE("text of a path, an option or a file can neither control the terminal nor imitate a line that maki prints") {
  const TemporaryFolder folder;
  const std::string evil = "a\x1b[2J\nmaki: done\xc2\x9b", shown = "a\\x1b[2J\\nmaki: done\\u009b";
  const std::string corpus = folder.write("corpus.txt", small_text());
  const std::string config = folder.write("evil.toml", "\"a\\u001b[2J\\nmaki: done\\u009b\" = 1\n");
  for (const Arguments& arguments :
       {Arguments{evil}, Arguments{"generate", evil}, Arguments{"generate", "--" + evil}, Arguments{"train", evil},
        Arguments{"train", corpus, "--schedule", evil}, Arguments{"train", corpus, "--seed", evil},
        Arguments{"train", corpus, "--config", config}}) {
    const Finished finished = run_maki(arguments);
    INFO(finished.err);
    REQUIRE(finished.exit_code >= 2);
    REQUIRE(finished.err.find('\x1b') == std::string::npos);
    REQUIRE(finished.err.find("\xc2\x9b") == std::string::npos);
    REQUIRE(finished.err.find(shown) != std::string::npos);
    REQUIRE(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
  }
  std::string deep = "a";
  while (deep.size() < 200'000) deep += ".\".\".\"=\"";
  require_refused(run_maki({"train", corpus, "--config", folder.write("deep.toml", deep + " = 1\n")}), 2, {"65536"});
}

TEST_CASE("a whole text in place of a verb, an option or an argument is not repeated in the message") {
  const std::string text(100'000, 'a');
  for (const Arguments& arguments :
       {Arguments{text}, Arguments{"--" + text}, Arguments{"bench", text}, Arguments{"inspect", "a", text}}) {
    const Finished finished = run_maki(arguments);
    REQUIRE(finished.exit_code == 2);
    REQUIRE(finished.err.size() < 500);
  }
}

TEST_CASE("a whole text in place of a path is repeated in part, and the message keeps its end") {
  std::string text;
  while (text.size() < 60'000) text += "あ";
  const std::string too_long = std::strerror(ENAMETOOLONG);
  for (const Arguments& arguments : {Arguments{"train", text}, Arguments{"inspect", text}, Arguments{"report", text},
                                     Arguments{"train", "@stories:1000", "--out", text}}) {
    const Finished finished = run_maki(arguments);
    INFO(finished.err);
    REQUIRE(finished.exit_code >= 2);
    REQUIRE(finished.err.size() < 2000);
    REQUIRE(finished.err.find(too_long) != std::string::npos);
    REQUIRE_FALSE(maki::invalid_utf8(finished.err));
  }
}

TEST_CASE("numbers are decimal and finite, whichever verb reads them: others are exit 2") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  REQUIRE(train(folder, corpus).exit_code == 0);
  const std::string whole = "must be a whole number; got ", decimal = "must be a finite decimal number; got ";
  for (const char* text : {"0x10", "1e3", "5.0", " 5", "+5", "5x", "0b11"}) {
    require_refused(run_maki({"generate", run, "--max-tokens", text}), 2, {"max_tokens: " + whole + text});
    require_refused(run_maki({"generate", run, "--seed", text}), 2, {"seed: " + whole + text});
    require_refused(run_maki({"eval", run, "--eval-batches", text}), 2, {"eval_batches: " + whole + text});
    require_refused(run_maki({"train", corpus, "--max-steps", text}), 2, {"max_steps: " + whole + text});
  }
  for (const char* text : {"nan", "inf", "0x1p3", "1,5", "warm", "1e999"}) {
    require_refused(run_maki({"generate", run, "--temperature", text}), 2, {"temperature: " + decimal + text});
    require_refused(run_maki({"train", corpus, "--learning-rate", text}), 2, {"learning_rate: " + decimal + text});
  }
  require_refused(run_maki({"generate", run, "--top-p", "1.5"}), 2, {"top_p: must be between 0 and 1; got 1.5"});
  require_refused(run_maki({"generate", run, "--max-tokens", "-1"}), 2, {"max_tokens: must be between 0 and "});
  require_refused(run_maki({"generate", run, "--threads", "-1"}), 2, {"threads: must be between 0 and 1024; got -1"});
  const Finished ten = run_maki({"generate", run, "--prompt", "a", "--max-tokens", "010"});  // 10, not octal
  INFO(ten.err);
  REQUIRE(ten.exit_code == 0);
  REQUIRE(ten.out.size() == 11);
}

TEST_CASE("gradcheck takes a run or a description of a model: both together are exit 2") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  REQUIRE(train(folder, corpus).exit_code == 0);
  require_refused(run_maki({"gradcheck", run, "--n-layer", "3"}), 2, {"--n-layer", run});
  require_refused(run_maki({"gradcheck", run, "--no-bias"}), 2, {"--bias", run});
  require_refused(run_maki({"gradcheck", run, "--preset", "quickstart"}), 2, {"--preset", run});
  require_refused(run_maki({"gradcheck", run, "--config", run + "/config.toml"}), 2, {"--config", run});
  require_refused(run_maki({"gradcheck", "--checkpoint", "best"}), 2, {"--checkpoint", "RUN"});
  require_refused(run_maki({"gradcheck", "--learning-rate", "1"}), 2, {"--learning-rate"});  // it is not used
  const Finished threads = run_maki({"gradcheck", run, "--threads", "1", "--checkpoint", "last"});
  INFO(threads.out << threads.err);
  REQUIRE(threads.exit_code == 0);
}

TEST_CASE("paths that lead nowhere: an error message of maki, and the exit code for this kind of input") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  REQUIRE(train(folder, corpus).exit_code == 0);
  const std::string loop = folder / "loop", long_name(300, 'n'), below_a_file = corpus + "/below";
  std::filesystem::create_symlink(loop, loop);
  struct Path {
    std::string path, why;
  };
  for (const Path& p : {Path{loop, "Too many levels of symbolic links"}, Path{long_name, "File name too long"}}) {
    for (const Arguments& verb :
         {Arguments{"generate", p.path}, Arguments{"eval", p.path}, Arguments{"inspect", p.path},
          Arguments{"gradcheck", p.path}, Arguments{"train", "--resume", p.path},
          Arguments{"train", corpus, "--out", p.path}}) {
      require_refused(run_maki(verb), 4, {p.path, p.why});
    }
    require_refused(run_maki({"train", p.path, "--out", folder / "other"}), 3, {p.path, p.why});
    require_refused(run_maki({"eval", run, p.path}), 3, {p.path, p.why});
    require_refused(run_maki({"generate", run, "--prompt-file", p.path}), 3, {p.path, p.why});
    require_refused(run_maki({"train", corpus, "--config", p.path}), 2, {p.path, p.why});
  }
  require_refused(run_maki({"inspect", below_a_file}), 2, {below_a_file, "no such"});
  require_refused(run_maki({"train", corpus, "--config", below_a_file}), 2, {below_a_file});
  require_refused(run_maki({"train", corpus, "--config", folder / "run"}), 2, {"is a directory"});
  require_refused(run_maki({"train", "--resume", below_a_file}), 2, {below_a_file});
  require_refused(run_maki({"train", corpus, "--out", below_a_file}), 2,
                  {below_a_file, corpus + " is not a directory"});
  // Before the text is looked for.
  std::filesystem::create_symlink("nothing", folder / "dangling");
  for (const std::string& out : {corpus, folder / "dangling", folder / "dangling/run", std::string("-")})
    require_refused(run_maki({"train", folder / "missing.txt", "--out", out}), 2, {out, "choose another --out"});
  std::filesystem::create_directory(folder / "closed");
  if (geteuid() != 0) {
    std::filesystem::permissions(folder / "closed", std::filesystem::perms::none);
    const std::string inside = folder / "closed/run";
    require_refused(run_maki({"inspect", inside}), 4, {inside, "Permission denied"});
    require_refused(run_maki({"train", "--resume", inside}), 4, {inside, "Permission denied"});
    require_refused(run_maki({"train", corpus, "--config", inside}), 2, {inside, "Permission denied"});
    std::filesystem::permissions(folder / "closed", std::filesystem::perms::owner_all);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they reserve more than any limit allows
TEST_CASE("no memory for the first step: exit 2, and the directory can be used again") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  RunOptions narrow;
  narrow.memory_limit = std::uint64_t{600} << 20;
  const Finished finished =
      run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "4"} + kSmall +
                   Arguments{"--batch-size", "100000", "--grad-accum", "1", "--threads", "1", "--tensorboard"},
               narrow);
  require_refused(finished, 2, {"memory", "--batch-size", run});
  REQUIRE_THAT(finished.err, ContainsSubstring("step 0: training loss"));  // so the first step had begun
  REQUIRE_FALSE(std::filesystem::exists(run));
  REQUIRE(train(folder, corpus).exit_code == 0);
}
#endif

TEST_CASE("an option that has no effect with the others is refused: exit 2") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  struct Refused {
    Arguments options;
    std::vector<std::string> said;
  };
  const std::string phases = folder.write(
      "phases.toml", "phases = [{start = 2, end = 4, learning_rate = 0.1, min_lr = 0.0, warmup_steps = 1}]\n");
  const std::vector<Refused> all = {
      {{"--config", phases}, {"learning_rate: the configuration contains phases", "omit --learning-rate, or remove"}},
      {{"--muon-lr", "0.1"}, {"muon_lr: has an effect only if optimizer is muon", "it is adamw", "omit --muon-lr"}},
      {{"--optimizer", "sgd", "--beta1", "0.8"}, {"beta1: has an effect only if optimizer is adamw or adam or muon"}},
      {{"--optimizer", "sgd", "--beta2", "0.8"}, {"beta2"}},
      {{"--momentum", "0.8"}, {"momentum: has an effect only if optimizer is sgd or muon"}},
      {{"--optimizer", "muon", "--no-nesterov"}, {"nesterov"}},
      {{"--position-base", "50"}, {"position_base", "sinusoidal or rotary", "it is learned"}},
      {{"--ngram-rows", "50"}, {"ngram_rows: has an effect only if ngram_orders is not none"}},
      {{"--ngram-dropout", "0.5"}, {"ngram_dropout"}},
      {{"--ngram-lr-factor", "2"}, {"ngram_lr_factor"}},
      {{"--schedule", "constant"}, {"min_lr: has an effect only if schedule is not constant", "omit --min-lr"}},
      {{"--schedule", "inverse_sqrt"}, {"lr_decay_steps: has an effect only if schedule is cosine or linear or wsd"}},
      {{"--no-early-stop", "--patience", "2"}, {"patience: has an effect only if early_stop is true"}},
      {{"--val-fraction", "0", "--patience", "2"}, {"patience: has an effect only if val_fraction is not 0.0"}},
      {{"--val-fraction", "0", "--early-stop"}, {"early_stop: has an effect only if val_fraction is not 0.0"}},
      {{"--val-fraction", "0", "--counting"}, {"counting: has an effect only if val_fraction is not 0.0"}}};
  for (const Refused& refused : all) {
    require_refused(run_maki(Arguments{"train", corpus, "--out", folder / "run"} + kSmall + refused.options), 2,
                    refused.said);
    REQUIRE_FALSE(std::filesystem::exists(folder / "run"));
  }
  for (const Arguments& accepted :
       {Arguments{"--optimizer", "muon", "--muon-lr", "0.1", "--momentum", "0.9", "--beta1", "0.8"},
        Arguments{"--optimizer", "sgd", "--momentum", "0.9", "--nesterov"},
        Arguments{"--positions", "rotary", "--position-base", "50"},
        Arguments{"--ngram-orders", "2", "--ngram-rows", "50", "--ngram-dropout", "0.5", "--ngram-lr-factor", "2"}}) {
    require_ok(run_maki(
        Arguments{"train", corpus, "--max-steps", "1", "--out", folder / fmt::format("accepted-{}", accepted[1])} +
        kSmall + accepted));
  }
}

TEST_CASE("streams that cannot be written, and configurations that cannot be used") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  RunOptions lost;
  lost.error_file = "/dev/full";
  REQUIRE(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "4"} + kSmall, lost).exit_code == 0);
  REQUIRE(read_text(checkpoint(run, 4)).size() > 10000);
  RunOptions full;
  full.output_file = "/dev/full";
  const std::string ids = folder.write("ids.txt", "1 2\n");
  for (const Arguments& arguments :
       {Arguments{"eval", run}, Arguments{"inspect", run}, Arguments{"generate", run}, Arguments{"help"},
        Arguments{"train", "--help"}, Arguments{"--version"}, Arguments{"--man"}, Arguments{"plan", corpus},
        Arguments{"tokenizer", "inspect", run}, Arguments{"tokenizer", "encode", run, corpus},
        Arguments{"tokenizer", "decode", run, ids}, Arguments{"gradcheck", run},
        Arguments{"attend", run, "--prompt", "the"}}) {
    INFO(arguments[0]);
    require_refused(run_maki(arguments, full), 4, {"standard output", "No space left on device"});
  }
  std::string dots;
  for (int i = 0; i < 60000; ++i) dots += "a.";
  require_refused(run_maki({"train", corpus, "--config", folder.write("dots.toml", dots + "a = 1\n")}), 2, {"dots"});
  require_refused(run_maki({"train", corpus, "--out", folder / "none", "--max-steps", "0"}), 2, {"lr_decay_steps"});
}
