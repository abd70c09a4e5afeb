// Several processes, which mpirun starts, train one model through the whole program. scripts/check_mpi.sh tries more,
// and ends ranks at random moments.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "autograd/kernels/simd/target.h"
#include "tests/catch.h"
#include "tests/cli/every_kind.h"
#include "tests/cli/require_refused.h"

using namespace maki::tests;

namespace {

#if !defined(MAKI_MPIRUN)
#define MAKI_MPIRUN ""
#endif

// Where Open MPI keeps what it knows of its processes. Launchers that run at the same time, as in other tests, remove
// the folder that they share by default while another one makes it.
const std::string& session_folder() {
  static const TemporaryFolder folder;
  return folder.path();
}

// Whether the program was built with MPI, and its launcher starts processes on this machine. Warns if not.
bool has_mpi() {
  if (!std::filesystem::exists(MAKI_MPIRUN)) {
    WARN("skipped: needs MPI (Debian package libopenmpi-dev or libmpich-dev)");
    return false;
  }
  static const bool starts =
      std::system(("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
                   "OMPI_MCA_orte_tmpdir_base=" +
                   session_folder() + " " MAKI_MPIRUN " -n 2 true >/dev/null 2>&1")
                      .c_str()) == 0;
  if (!starts) WARN("skipped: " MAKI_MPIRUN " cannot start two processes on this machine");
  return starts;
}

// Runs through mpirun. `first`: commands of a shell that each rank runs before it becomes maki; $rank is its number.
RunOptions on_ranks(int size, const std::string& first = "") {
  RunOptions options;
  options.environment = {"OMPI_ALLOW_RUN_AS_ROOT=1",
                         "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                         "OMPI_MCA_rmaps_base_oversubscribe=1",
                         "OMPI_MCA_hwloc_base_binding_policy=none",               // beside other tests
                         "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",  // both in Open MPI 5
                         "PRTE_MCA_hwloc_default_binding_policy=none",
                         "OMPI_MCA_orte_tmpdir_base=" + session_folder(),
                         "PRTE_MCA_prte_tmpdir_base=" + session_folder(),  // in Open MPI 5
                         "ASAN_OPTIONS=detect_leaks=0"};                   // MPI libraries do not free all of theirs
  options.launcher = {MAKI_MPIRUN, "-n", std::to_string(size)};
  if (!first.empty()) {
    options.launcher.insert(options.launcher.end(),
                            {"sh", "-c", "rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; " + first + "; exec \"$0\" \"$@\""});
  }
  return options;
}

// As if this process were this rank of two.
RunOptions like_rank(int rank) {
  RunOptions options;
  options.environment = {fmt::format("OMPI_COMM_WORLD_RANK={}", rank),
                         fmt::format("OMPI_COMM_WORLD_LOCAL_RANK={}", rank), "OMPI_COMM_WORLD_SIZE=2"};
  return options;
}
RunOptions like_rank_0() { return like_rank(0); }

int count_of(const std::string& part, const std::string& text) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Sends a signal to the rank that writes its process into the file, unless the launcher ends before.
void signal_rank(pid_t launcher, const std::string& file, int signal) {
  while (!text_so_far(file).ends_with('\n')) {
    if (has_ended(launcher)) return;
    usleep(1000);
  }
  const pid_t process = std::stoi(read_text(file));
  wait_for_handlers(process);
  kill(process, signal);
}

// Requires one sentence of maki, whatever the launcher says beside it.
void require_one_sentence(const Finished& finished, int exit_code, const std::vector<std::string>& words) {
  INFO(finished.err);
  REQUIRE(finished.exit_code == exit_code);
  REQUIRE(count_of("maki: ", finished.err) == 1);
  const std::size_t at = finished.err.find("maki: ");
  const std::string sentence = finished.err.substr(at, finished.err.find('\n', at) - at);
  for (const std::string& word : words) REQUIRE_THAT(sentence, ContainsSubstring(word));
}

// All files of checkpoints, as one text.
std::string checkpoints(const std::string& run) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(run + "/checkpoints"))
    names.push_back(file.path().filename().string());
  std::ranges::sort(names);
  std::string all;
  for (const std::string& name : names) all += name + "\n" + read_text(run + "/checkpoints/" + name);
  return all;
}

const Arguments kTwelveSteps = {"--threads",       "1", "--max-steps",           "12",
                                "--eval-interval", "5", "--checkpoint-interval", "4"};

Arguments new_run(const std::string& corpus, const std::string& run, const Arguments& options) {
  return Arguments{"train", corpus, "--out", run} + options + kTwelveSteps;
}

}  // namespace

TEST_CASE("ranks: any number of them writes the files of one process") {
  if (!has_mpi()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  for (const char* const micro_batches : {"7", "2"}) {
    const Arguments options = kSmall + Arguments{"--grad-accum", micro_batches};
    const std::string alone = folder / fmt::format("alone-{}", micro_batches);
    require_ok(run_maki(new_run(corpus, alone, options)));
    for (const int size : {1, 2, 3, 5}) {
      INFO(micro_batches << " micro-batches, " << size << " ranks");
      const std::string run = folder / fmt::format("run-{}-{}", micro_batches, size);
      const Finished finished = require_ok(run_maki(new_run(corpus, run, options), on_ranks(size)));
      REQUIRE(checkpoints(run) == checkpoints(alone));
      REQUIRE(count_of("done: 12 steps", finished.err) == 1);
      REQUIRE(count_of("ranks  ", finished.err) == (size > 1 ? 1 : 0));
      REQUIRE((count_of("note: 3 ranks have no micro-batch", finished.err) == 1) ==
              (size == 5 && micro_batches == std::string("2")));
    }
  }
}

TEST_CASE("ranks: what a file says about a step holds as an option does") {
  if (!has_mpi()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const Arguments options = without("--batch-size", without("--grad-accum", kSmall));
  const auto of_file = [&](const std::string& name, const std::string& text) {
    const std::string file = folder.write(name + ".toml", text), run = folder / name;
    require_ok(run_maki(new_run(corpus, run, options + Arguments{"--config", file}), on_ranks(2)));
    return read_text(run + "/config.toml");
  };
  // 1 is the default as well.
  REQUIRE_THAT(of_file("both", "grad_accum = 1\nbatch_size = 5\n"),
               ContainsSubstring("\ngrad_accum = 1 ") && ContainsSubstring("\nbatch_size = 5 "));
  REQUIRE_THAT(of_file("size", "batch_size = 5\n"),
               ContainsSubstring("\ngrad_accum = 2 ") && ContainsSubstring("\nbatch_size = 5 "));
}

TEST_CASE("ranks: a taught run has the files of one process, new and resumed") {
  if (!has_mpi()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), alone = folder / "alone", run = folder / "run";
  require_ok(run_maki(new_run(corpus, folder / "teacher", kSmall)));
  const Arguments options = kSmall + Arguments{"--teacher", folder / "teacher", "--seed", "2"};
  require_ok(run_maki(new_run(corpus, alone, options)));
  require_ok(
      run_maki(without("--max-steps", new_run(corpus, run, options)) + Arguments{"--max-steps", "4"}, on_ranks(2)));
  require_ok(run_maki({"train", "--resume", run, "--max-steps", "12"}, on_ranks(3)));
  REQUIRE(checkpoints(run) == checkpoints(alone));
}

TEST_CASE("ranks: a run that trains its teachers first has the files of one process") {
  if (!has_mpi()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), alone = folder / "alone", run = folder / "run";
  const Arguments options = kSmall + Arguments{"--teacher", "@own:10", "--teacher", "@counts", "--teacher", "@own:5"};
  require_ok(run_maki(new_run(corpus, alone, options)));
  require_ok(run_maki(new_run(corpus, run, options), on_ranks(3)));
  REQUIRE(checkpoints(run) == checkpoints(alone));
  REQUIRE(checkpoints(run + "/teacher-2") == checkpoints(alone + "/teacher-2"));
}

TEST_CASE("ranks: SIGTERM to one of them saves the step once, and other numbers of ranks go on from there") {
  if (!has_mpi()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  for (const int asked : {1, 0}) {
    INFO("to rank " << asked);
    std::filesystem::remove_all(run);
    RunOptions stopped = on_ranks(2, "echo $$ >'" + folder / "process-'$rank");
    stopped.meanwhile = [&](pid_t launcher) {
      while (text_so_far(run + "/metrics.jsonl").find("\"train\"") == std::string::npos && !has_ended(launcher))
        usleep(1000);
      signal_rank(launcher, folder / fmt::format("process-{}", asked), SIGTERM);
    };
    const Finished finished = run_maki(
        Arguments{"train", corpus, "--out", run} + kSmall + Arguments{"--max-steps", "1000000", "--log-interval", "1"},
        stopped);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 128 + SIGTERM);
    REQUIRE(count_of("is saved", finished.err) == 1);
    REQUIRE(count_of("maki train --resume", finished.err) == 1);
    const int step = std::stoi(read_text(run + "/checkpoints/last").substr(5));
    REQUIRE(step > 0);
    const auto until = [&](int steps) {
      return Arguments{"train", "--resume", run, "--max-steps", std::to_string(step + steps)};
    };
    require_ok(run_maki({"inspect", run, "--verify"}));
    require_ok(run_maki(until(4), on_ranks(3)));
    require_ok(run_maki(until(9)));
    const std::string straight = folder / fmt::format("straight-{}", asked);
    require_ok(
        run_maki(Arguments{"train", corpus, "--out", straight, "--max-steps", std::to_string(step + 9)} + kSmall));
    REQUIRE(read_text(checkpoint(run, step + 9)) == read_text(checkpoint(straight, step + 9)));
  }
}

TEST_CASE("ranks: SIGTERM before training begins ends all of them, and leaves nothing") {
  if (!has_mpi()) return;
  for (const int asked : {0, 1}) {
    INFO("to rank " << asked);
    const TemporaryFolder folder;
    RunOptions waiting = on_ranks(2, "echo $$ >'" + folder / "process-'$rank");
    waiting.input = small_text();
    waiting.input_stays_open = true;
    waiting.meanwhile = [&](pid_t launcher) {
      signal_rank(launcher, folder / fmt::format("process-{}", asked), SIGTERM);
    };
    const Finished finished = run_maki(Arguments{"train", "-", "--out", folder / "run"} + kSmall, waiting);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 128 + SIGTERM);
    REQUIRE(count_of("maki: ", finished.err) <= 1);  // a launcher may end rank 0 with SIGKILL
    REQUIRE_FALSE(std::filesystem::exists(folder / "run"));
  }
}

TEST_CASE("ranks: a text that only rank 0 can read is sent to the others") {
  if (!has_mpi()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), other = folder / "other";
  require_ok(run_maki(new_run(corpus, folder / "alone", kSmall)));
  const std::string expected = read_text(checkpoint(folder / "alone", 12));
  const auto trained = [&](const std::string& source, const std::string& run, RunOptions options) {
    INFO(run);
    options.working_directory = folder / "";
    require_ok(run_maki(new_run(source, folder / run, kSmall), options));
    require_ok(run_maki({"inspect", folder / run, "--verify"}));
    return read_text(checkpoint(folder / run, 12));
  };
  // There is no such file where rank 1 is, or another one.
  const RunOptions elsewhere = on_ranks(3, "[ $rank = 0 ] || cd '" + other + "'");
  std::filesystem::create_directory(other);
  REQUIRE(trained("corpus.txt", "absent", elsewhere) == expected);
  folder.write("other/corpus.txt", small_text() + "And more.\n");
  REQUIRE(trained("corpus.txt", "different", elsewhere) == expected);
  RunOptions input = on_ranks(2);
  input.input = small_text();
  const std::string of_input = trained("-", "input", input);
  RunOptions alone;
  alone.input = small_text();
  REQUIRE(trained("-", "input-alone", alone) == of_input);
  // A prepared text may be large: each rank must have it.
  require_ok(run_maki({"prepare", corpus, "--out", folder / "corpus.bin"}));
  RunOptions prepared = elsewhere;
  prepared.working_directory = folder / "";
  require_one_sentence(run_maki(new_run("corpus.bin", folder / "prepared", kSmall), prepared), 3,
                       {"rank 1", "corpus.bin", "every machine"});
  REQUIRE(trained(folder / "corpus.bin", "in-place", on_ranks(2)).size() > 10000);
}

TEST_CASE("ranks: every kind of model is that of one process") {
  if (!has_mpi()) return;
  for (const SmallKind& kind : every_kind()) {
    INFO(kind.name());
    const TemporaryFolder folder;
    const std::string corpus = folder.write("corpus.txt", kind.corpus_text), alone = folder / "alone";
    require_ok(run_maki(new_run(corpus, alone, kind.options)));
    require_ok(run_maki(new_run(corpus, folder / "run", kind.options), on_ranks(2)));
    REQUIRE(checkpoints(folder / "run") == checkpoints(alone));
  }
}

TEST_CASE("ranks: options of the model, the optimizer and the numbers give the bytes of one process") {
  if (!has_mpi()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), base = folder / "base";
  require_ok(run_maki(new_run(corpus, base, kSmall)));
  const Arguments kinds[] = {{"--ngram-orders", "2,4", "--ngram-rows", "500", "--ngram-dropout", "0.1"},
                             {"--ngram-prior", "3"},
                             {"--optimizer", "muon"},
                             {"--precision", "bfloat16"},
                             {"--init-from", base, "--lora-rank", "2"}};
  for (const Arguments& kind : kinds) {
    INFO(kind[0] << " " << kind[1]);
    const bool tuned = kind[0] == "--init-from";
    const Arguments options = tuned ? kind + Arguments{"--grad-accum", "4", "--eval-batches", "2"} : kSmall + kind;
    const std::string name = kind[0].substr(2), alone = folder / (name + "-alone"), run = folder / name;
    require_ok(run_maki(new_run(corpus, alone, options)));
    require_ok(run_maki(new_run(corpus, run, options), on_ranks(3)));
    REQUIRE(checkpoints(run) == checkpoints(alone));
  }
}

TEST_CASE("ranks: each has the number of threads that was given, new and resumed") {
  if (!has_mpi()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  // A rank that took the number of its environment would refuse it.
  const RunOptions many = on_ranks(3, "test $rank = 0 || export OMP_NUM_THREADS=40000");
  require_ok(run_maki(new_run(corpus, run, kSmall), many));
  require_ok(run_maki({"train", "--resume", run, "--max-steps", "14"}, many));
}

TEST_CASE("ranks: a time limit is planned for all of them, and other numbers of ranks go on with that plan") {
  if (!has_mpi()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  const Finished finished =
      require_ok(run_maki({"train", corpus, "--out", run, "--minutes", "0.02", "--threads", "1"}, on_ranks(2)));
  REQUIRE(count_of("ranks  2; a step has 2 micro-batches", finished.err) == 1);
  REQUIRE(count_of("plan   ", finished.err) > 0);
  const int step = std::stoi(read_text(run + "/checkpoints/last").substr(5));
  REQUIRE(step > 0);
  const Arguments more = {"train", "--resume", run, "--max-steps", std::to_string(step + 2)};
  require_ok(run_maki(more, on_ranks(3)));
  require_ok(run_maki({"inspect", run, "--verify"}));
}

TEST_CASE("ranks: an error is told once, by rank 0, and ends all with its exit code") {
  if (!has_mpi()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  const auto refused = [&](const Arguments& arguments, int exit_code, const std::vector<std::string>& words) {
    INFO(fmt::format("{}", arguments.back()));
    require_one_sentence(run_maki(arguments, on_ranks(2)), exit_code, words);
  };
  refused({"train", corpus, "--outt", run}, 2, {"--outt", "--out"});
  refused({"train", corpus, "--rank-timeout", "0"}, 2, {"rank_timeout", "0.1"});
  refused({"train", folder / "absent.txt", "--out", run}, 3, {"absent.txt", "cannot be opened"});
  REQUIRE_FALSE(std::filesystem::exists(run));
  const Finished diverged =
      run_maki(new_run(corpus, run,
                       kSmall + Arguments{"--optimizer", "sgd", "--learning-rate", "1000", "--min-lr", "1000",
                                          "--grad-clip", "0", "--warmup-steps", "0"}),
               on_ranks(2));
  require_one_sentence(diverged, 5, {"diverged"});
  refused(new_run(corpus, run, kSmall), 2, {run, "--resume"});
}

TEST_CASE("ranks: CPUs of one arithmetic train together, and no others") {
  const std::vector<std::string> targets = maki::kernels::available_targets();
  const auto starts_as = [&](const std::string& target) { return "test $rank = 0 || export MAKI_TARGET=" + target; };
  const std::string_view here = maki::kernels::arithmetic_of(maki::kernels::target());
  if (targets.size() == 1) WARN("skipped: this build has one target");
  if (targets.size() == 1 || !has_mpi()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), one = folder / "one";
  require_ok(run_maki(new_run(corpus, one, kSmall)));
  for (const std::string& target : targets) {
    INFO(target);
    const Finished finished = run_maki(new_run(corpus, folder / target, kSmall), on_ranks(2, starts_as(target)));
    if (maki::kernels::arithmetic_of(target) == here) {
      require_ok(finished);
      REQUIRE(checkpoints(folder / target) == checkpoints(one));
    } else {
      require_one_sentence(finished, 2, {"rank 1", "arithmetic of this run, " + std::string(here), "MAKI_TARGET"});
    }
  }
}

TEST_CASE("ranks: all must have the same version of the program") {
  if (!has_mpi()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  std::string version = require_ok(run_maki({"--version"})).out;
  version.pop_back();
  const std::string changed = "Maki" + version.substr(4);
  std::string program = read_bytes(MAKI_BINARY);
  const std::size_t at = program.find(version);
  REQUIRE(at != std::string::npos);
  program.replace(at, changed.size(), changed);
  const std::filesystem::path other = folder.write("maki", program), module = "maki-mpi.so";
  std::filesystem::permissions(other, std::filesystem::perms::owner_all);
  std::filesystem::create_symlink(std::filesystem::path(MAKI_BINARY).parent_path() / module, folder / module.string());
  require_one_sentence(
      run_maki(new_run(corpus, run, kSmall), on_ranks(2, "test $rank = 0 || exec '" + other.string() + "' \"$@\"")), 2,
      {"must run the same version", "rank 0", version + ",", "rank 1", changed + ";"});
  REQUIRE_FALSE(std::filesystem::exists(run));
}

TEST_CASE("ranks: what no team can do is refused in a sentence") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  require_refused(run_maki({"train", corpus, "--out", run, "--rank-timeout", "5", "--max-steps", "1"}), 2,
                  {"rank_timeout", "mpirun"});
  for (const int rank : {0, 1}) {  // each says of its own command what is wrong
    for (const char* const verb : {"plan", "generate", "eval", "inspect", "report"})
      require_refused(run_maki({verb, corpus}, like_rank(rank)), 2, {verb, "one process", "2 were started"});
    require_refused(run_maki({"bench", "gemm", "64x64x64"}, like_rank(rank)), 2, {"bench gemm", "one process"});
    require_refused(run_maki({"evall"}, like_rank(rank)), 2, {"evall", "eval"});
  }
  REQUIRE(run_maki({"--version"}, like_rank_0()).exit_code == 0);
  REQUIRE(run_maki({"generate", "--help"}, like_rank_0()).exit_code == 0);
  // The module that has the MPI library lies beside the program.
  RunOptions without_module = like_rank_0();
  std::filesystem::copy_file(MAKI_BINARY, folder / "maki");
  without_module.launcher = {"sh", "-c", "exec '" + folder / "maki" + "' \"$@\""};
  require_refused(run_maki({"train", corpus, "--out", run}, without_module), 2, {"without MPI", "mpirun"});
  require_refused(run_maki({"bench", "network"}, without_module), 2, {"without MPI"});  // is for several processes
  folder.write("maki-mpi.so", "nothing");
  require_refused(run_maki({"train", corpus, "--out", run}, without_module), 2, {"maki-mpi.so", "install"});
  REQUIRE_FALSE(std::filesystem::exists(run));
}
