// Invalid input is rejected with one clear sentence on stderr and the documented exit code, and nothing is lost.
#include <array>
#include <filesystem>
#include <unistd.h>

#include "tests/cli/require_refused.h"
#include "tests/train/container_file.h"

using namespace maki::tests;

TEST_CASE("corpora that cannot be trained on: exit 3") {
  const TemporaryFolder folder;
  require_refused(train(folder, folder / "missing.txt"), 3, {"missing.txt", "No such file"});
  require_refused(train(folder, folder.write("empty.txt", "")), 3, {"empty"});
  require_refused(train(folder, folder.write("byte.txt", "x")), 3, {"17", "1"});
  require_refused(train(folder, folder.write("short.txt", std::string(40, 'x'))), 3, {"17", "4"});
  require_refused(train(folder, folder.write("bad.txt", small_text() + "\xff\xfe" + small_text())), 3,
                  {"bad.txt", "UTF-8", std::to_string(small_text().size())});
  require_refused(train(folder, "@nonsense"), 3, {"@nonsense", "@stories"});
  const std::string secret = folder.write("secret.txt", small_text());
  if (geteuid() != 0) {
    std::filesystem::permissions(secret, std::filesystem::perms::none);
    require_refused(train(folder, secret), 3, {"secret.txt", "Permission denied"});
  }
  REQUIRE_FALSE(std::filesystem::exists(folder / "run/checkpoints"));
}

TEST_CASE("non-UTF-8 text is replaced on request") {
  const TemporaryFolder folder;
  const Finished finished =
      train(folder, folder.write("bad.txt", small_text() + "\xff" + small_text()), {"--invalid-utf8", "replace"});
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
}

TEST_CASE("a directory that contains a run is not overwritten: exit 2, with a hint to --resume") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  REQUIRE(train(folder, corpus).exit_code == 0);
  const std::string before = read_text(checkpoint(folder / "run", 4));
  require_refused(train(folder, corpus), 2, {"--resume"});
  REQUIRE(read_text(checkpoint(folder / "run", 4)) == before);
}

TEST_CASE("files of the user in --out are not overwritten: exit 2, naming one of them") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  std::filesystem::create_directory(run);
  REQUIRE(train(folder, corpus, {"--max-steps", "0"}).exit_code == 0);  // an empty directory is accepted
  std::filesystem::remove_all(run);
  for (const char* name : {"config.toml", "notes.txt", "metrics.jsonl"}) {
    std::filesystem::create_directory(run);
    folder.write(std::string("run/") + name, "the user's");
    require_refused(train(folder, corpus), 2, {run, name, "--out"});
    REQUIRE(read_text(run + "/" + name) == "the user's");
    REQUIRE(std::distance(std::filesystem::directory_iterator(run), {}) == 1);
    std::filesystem::remove_all(run);
  }
}

TEST_CASE("resuming with another corpus is exit 3, with another shape 2, and resuming a missing run 2 or 4") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  REQUIRE(train(folder, corpus).exit_code == 0);
  const std::string other = folder.write("other.txt", small_text() + "more");
  require_refused(run_maki({"train", "--resume", run, other, "--max-steps", "8"}), 3, {"other"});
  const std::string before = read_text(checkpoint(run, 4));
  const std::vector<std::array<std::string, 3>> others = {{"--n-embd", "n_embd", "32"},
                                                          {"--n-layer", "n_layer", "1"},
                                                          {"--n-head", "n_head", "4"},
                                                          {"--block-size", "block_size", "8"},
                                                          {"--seed", "seed", "9"},
                                                          {"--batch-size", "batch_size", "2"},
                                                          {"--grad-accum", "grad_accum", "1"},
                                                          {"--dropout", "dropout", "0.2"},
                                                          {"--tokenizer", "tokenizer", "byte"},
                                                          {"--weight-decay", "weight_decay", "0.3"},
                                                          {"--dtype", "dtype", "float64"}};
  for (const auto& [option, field, value] : others)
    require_refused(run_maki({"train", "--resume", run, option, value, "--max-steps", "8"}), 2, {field, value});
  REQUIRE(read_text(checkpoint(run, 4)) == before);
  require_refused(run_maki({"train", "--resume", folder / "nothing"}), 2, {"nothing"});
  // An option with the value that the run has already changes nothing, and a run that has reached its last step is
  // reported without an error.
  const Finished reached = run_maki({"train", "--resume", run, "--n-embd", "16", "--max-steps", "4"});
  INFO(reached.err);
  REQUIRE(reached.exit_code == 0);
  REQUIRE(reached.err.find("4") != std::string::npos);
}

TEST_CASE("truncated and altered checkpoints are rejected: exit 4") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  REQUIRE(train(folder, corpus).exit_code == 0);
  const std::string good = read_text(checkpoint(run, 4));
  const std::string cut = folder.write("cut.maki", good.substr(0, good.size() / 2));
  std::string flipped = good;  // one bit of the weights: these verbs do not read the moments after them
  flipped[flipped.size() / 4] = static_cast<char>(flipped[flipped.size() / 4] ^ 1);
  const std::string altered = folder.write("altered.maki", flipped);
  for (const std::string& path : {cut, altered, folder.write("text.maki", "hello"), folder.write("none.maki", "")}) {
    require_refused(run_maki({"generate", path, "--max-tokens", "1"}), 4, {path});
    require_refused(run_maki({"inspect", path, "--verify"}), 4, {path});
    require_refused(run_maki({"eval", path, corpus}), 4, {path});
  }
}

TEST_CASE("a damaged newest checkpoint is reported and the one before it is used") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  REQUIRE(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "60"} + kSmall).exit_code == 0);
  const std::string expected = read_text(checkpoint(run, 60));
  REQUIRE(std::filesystem::exists(checkpoint(run, 40)));
  std::filesystem::resize_file(checkpoint(run, 60), 1000);
  const Finished resumed = run_maki({"train", "--resume", run, "--max-steps", "60"});
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE(resumed.err.find("step-00000060.maki") != std::string::npos);
  REQUIRE(read_text(checkpoint(run, 60)) == expected);
  std::filesystem::resize_file(checkpoint(run, 60), 1000);
  const std::string said = require_ok(run_maki({"train", "--resume", run, "--max-steps", "60", "--quiet"})).err;
  REQUIRE(contains(said, "falling back to the previous checkpoint"));
  REQUIRE_FALSE(contains(said, "resuming after step"));
}

TEST_CASE("damage anywhere in the best checkpoint is reported and another one is used, unless it was chosen") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "40"} + kSmall));
  folder.write("run/checkpoints/best", "step-00000020.maki 20 1.5\n");
  const std::string best = checkpoint(run, 20);
  for (const char* const section : {"config", "tensors", "values"}) {
    const std::string bytes = with_damage(best, section), intact = read_text(best);
    write_bytes(best, bytes);
    for (const Arguments& verb :
         {Arguments{"generate", run, "--max-tokens", "1"}, Arguments{"eval", run},
          Arguments{"export", run, "--format", "safetensors", "--force", "--out", folder / "out.safetensors"},
          Arguments{"report", run, "--force", "--out", folder / "out.html"},
          Arguments{"train", corpus, "--init-from", run, "--max-steps", "1", "--out", folder / section},
          Arguments{"train", corpus, "--teacher", run, "--max-steps", "1", "--out", folder / section + "-taught"} +
              kSmall}) {
      INFO(section << ", " << verb.front());
      REQUIRE(contains(require_ok(run_maki(verb)).err, best));
    }
    for (const Arguments& verb : {Arguments{"generate", run, "--checkpoint", "best"}, Arguments{"generate", best}})
      require_refused(run_maki(verb), 4, {best});
    write_bytes(best, intact);
  }
}

TEST_CASE("a full disk stops the run with exit 4 and leaves the last good checkpoint") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  REQUIRE(train(folder, corpus).exit_code == 0);
  const std::string before = read_text(checkpoint(run, 4));
  RunOptions full;
  full.file_size_limit = 20000;  // smaller than a checkpoint
  REQUIRE(before.size() > full.file_size_limit);
  const Finished finished = run_maki({"train", "--resume", run, "--max-steps", "8"}, full);
  require_refused(finished, 4, {"step-00000008.maki"});
  REQUIRE(read_text(checkpoint(run, 4)) == before);
  const Finished again = run_maki({"train", "--resume", run, "--max-steps", "8"});
  INFO(again.err);
  REQUIRE(again.exit_code == 0);
}

TEST_CASE("a run whose first checkpoint finds no room leaves nothing in the way of the next start") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), mine = folder / "mine";
  std::filesystem::create_directory(mine);
  RunOptions full;
  full.file_size_limit = 20000;  // smaller than a checkpoint
  for (const Arguments& more : {Arguments{"--minutes", "0.02"}, Arguments{"--max-steps", "2"} + kSmall,
                                Arguments{"--max-steps", "2", "--teacher", "@own:2"} + kSmall}) {
    for (const std::string& run : {folder / "new/run", mine}) {
      const Finished finished = run_maki(Arguments{"train", corpus, "--out", run} + more, full);
      require_refused(finished, 4, {run + "/checkpoints/step-00000000.maki: could not be written (cannot be written"});
      REQUIRE_FALSE(contains(finished.err, ".tmp"));
      REQUIRE_FALSE(std::filesystem::exists(folder / "new"));
      REQUIRE(std::filesystem::is_empty(mine));
    }
  }
}

TEST_CASE("unknown characters of a prompt are named: exit 3") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  REQUIRE(train(folder, corpus).exit_code == 0);
  require_refused(run_maki({"generate", run, "--prompt", "the Ω"}), 3, {"Ω", "U+03A9"});
  require_refused(run_maki({"generate", run, "--prompt", "the \xff"}), 3, {"UTF-8"});
  require_refused(run_maki({"generate", run, "--temperature", "-1"}), 2, {"temperature"});
  require_refused(run_maki({"generate", folder / "nothing"}), 2, {"nothing"});
}

TEST_CASE("a run whose text came from standard input reports that instead of waiting for input") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  RunOptions piped, waiting;
  piped.input = small_text();
  waiting.input_stays_open = true;
  REQUIRE(run_maki(Arguments{"train", "-", "--out", run, "--max-steps", "4"} + kSmall, piped).exit_code == 0);
  require_refused(run_maki({"eval", run}, waiting), 3, {run, "standard input", "pass - again"});
  require_refused(run_maki({"train", "--resume", run, "--max-steps", "6"}, waiting), 3,
                  {run, "standard input", "pass - again"});
  const Finished again = run_maki({"eval", run, "-"}, piped);
  INFO(again.err);
  REQUIRE(again.exit_code == 0);
  REQUIRE(run_maki({"train", "--resume", run, "-", "--max-steps", "6"}, piped).exit_code == 0);
}

TEST_CASE("a checkpoint must be of the step in its name, and a damaged pointer is not fatal") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  REQUIRE(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "40"} + kSmall).exit_code == 0);
  const std::string expected = read_text(checkpoint(run, 40));
  std::filesystem::copy_file(checkpoint(run, 20), checkpoint(run, 50));
  std::filesystem::remove(checkpoint(run, 40));
  const Finished resumed = run_maki({"train", "--resume", run, "--max-steps", "40"});
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE(resumed.err.find("contains the state of step 20") != std::string::npos);
  REQUIRE(read_text(checkpoint(run, 40)) == expected);

  folder.write("run/checkpoints/best", "junk");
  REQUIRE(run_maki({"generate", run, "--max-tokens", "3"}).exit_code == 0);
  std::filesystem::resize_file(checkpoint(run, 40), 100);
  folder.write("run/checkpoints/best", "step-00000040.maki 40 1.5");
  const Finished fallen_back = run_maki({"generate", run, "--max-tokens", "3"});
  INFO(fallen_back.err);
  REQUIRE(fallen_back.exit_code == 0);
  REQUIRE(fallen_back.err.find("using another checkpoint") != std::string::npos);
}
