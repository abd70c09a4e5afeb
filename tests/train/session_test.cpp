// A session that begins or resumes a run: what it saves, in which order, and which files it trusts.
#include "train/loop/session.h"

#include <cerrno>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>

#include "data/io/error.h"
#include "tests/train/session_run.h"
#include "tests/train/text_trainer.h"
#include "train/app/begun_run.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Knows the names of open files.
struct NamedFiles : Unsynced {
  int open(const std::string& path, int flags, mode_t mode) override {
    const int descriptor = FileSystem::open(path, flags, mode);
    names[descriptor] = std::filesystem::path(path).filename();
    return descriptor;
  }
  std::map<int, std::string> names;
};

}  // namespace

TEST_CASE("an old checkpoint that cannot be deleted is reported once, and training continues") {
  struct Sticky : Unsynced {
    int unlink(const std::string& path) override {
      if (!contains(path, "step-00000010")) return FileSystem::unlink(path);
      errno = EPERM;
      return -1;
    }
  } sticky;
  SessionRun run;
  run.config.keep_last = 1;
  const std::string said = run.go_on(0, 40, sticky);
  INFO(said);
  const std::string note = "step-00000010.maki: cannot be deleted";
  REQUIRE(contains(said, note));
  REQUIRE_FALSE(contains(said.substr(said.find(note) + 1), note));
  REQUIRE(std::filesystem::exists(run.directory.checkpoint_file(10)));
  REQUIRE(std::filesystem::exists(run.directory.checkpoint_file(40)));
}

TEST_CASE("an old checkpoint is deleted only after the new one was read back, without a difference") {
  struct FailingDisk : NamedFiles {
    ssize_t read(int descriptor, void* bytes, std::size_t size) override {
      const ssize_t n = FileSystem::read(descriptor, bytes, size);
      if (n > 0 && names[descriptor].ends_with("step-00000020.maki.tmp")) static_cast<char*>(bytes)[n / 2] ^= 1;
      return n;
    }
  } failing;
  SessionRun run;
  run.config.keep_last = 1;
  const std::string said = error_message<CheckpointError>([&] { run.go_on(0, 40, failing); });
  REQUIRE(contains(said, "step-00000020.maki: could not be written (what was read back differs"));
  REQUIRE(run.directory.checkpoints() == std::vector<std::int64_t>{10});
  REQUIRE_FALSE(std::filesystem::exists(run.directory.checkpoint_file(20) + ".tmp"));
  REQUIRE(run.directory.last() == 10);
  REQUIRE(VerifiedCheckpoint(run.directory, run.directory.checkpoint_file(10)).state().step == 10);
  run.go_on(10, 40);
  REQUIRE(run.directory.last() == 40);
}

TEST_CASE("a run that was interrupted during its last sample writes that when it is resumed") {
  struct Watched : SessionListener {
    void on_eval(const EvalReport& report, bool) override { stops = report.step == 40; }
    void on_sample(std::int64_t step, const std::string&) override { samples.push_back(step); }
    bool stops = false;
    std::vector<std::int64_t> samples;
  } watched;
  SessionRun run;
  run.config.sample_interval = 20;
  {
    TextTrainer trainer(run.config, run.data);
    const auto stop = [&] { return watched.stops; };
    REQUIRE(Session(run.config, trainer, run.directory, watched, {.stop = stop}).train() == SessionEnd::interrupted);
  }
  REQUIRE(watched.samples == std::vector<std::int64_t>{20});
  REQUIRE_FALSE(is_finished(run.config, run.directory, 40));
  REQUIRE_FALSE(contains(run.go_on(40, 40), "training loss"));  // which was measured before
  const MetricsFile metrics(run.directory.metrics_file(), 40);
  REQUIRE(metrics.has_sample(40));
  REQUIRE(is_finished(run.config, run.directory, 40));
}

TEST_CASE("a run that was killed after its last evaluation gets its sample and its end when it is resumed") {
  SessionRun run;
  run.config.sample_interval = 20;
  run.go_on(0, 40);
  const std::string file = run.directory.metrics_file();
  std::string kept;
  std::istringstream lines(read_bytes(file));
  for (std::string line; std::getline(lines, line);) {
    const bool lost = line.starts_with(R"({"kind":"sample","step":40)") || line.starts_with(R"({"kind":"end")");
    if (!lost) kept += line + "\n";
  }
  write_bytes(file, kept);
  MetricsFile(file, 40).on_remark({Remark::Kind::session, 0, "of the session that was killed"});
  REQUIRE_FALSE(is_finished(run.config, run.directory, 40));
  REQUIRE_FALSE(contains(run.go_on(40, 40), "training loss"));  // which was measured before
  const MetricsFile metrics(file, 40);
  REQUIRE(metrics.has_sample(40));
  REQUIRE(metrics.history().remarks().back().text == "finished");
  REQUIRE(is_finished(run.config, run.directory, 40));
  run.measured({{40, 0.5}});  // without remarks, as files of older versions are
  REQUIRE(is_finished(run.config, run.directory, 40));
}

TEST_CASE("measurements are made durable before the checkpoint that they belong to") {
  struct Watched : NamedFiles {
    int fsync(int descriptor) override {
      if (contains(names[descriptor], "metrics.jsonl")) events.emplace_back("metrics");
      return 0;
    }
    int rename(const std::string& from, const std::string& to) override {
      if (to.ends_with("/last")) events.emplace_back("last");
      return FileSystem::rename(from, to);
    }
    std::vector<std::string> events;
  } fs;
  SessionRun run;
  run.go_on(0, 20, fs);
  REQUIRE(std::ranges::count(fs.events, "last") == 3);
  for (std::size_t i = 0; i < fs.events.size(); ++i) {
    if (fs.events[i] == "last") REQUIRE((i > 0 && fs.events[i - 1] == "metrics"));
  }
  REQUIRE(fs.events.back() == "metrics");  // the last evaluation
}

TEST_CASE("the changes of layers are those of the last step before an evaluation alone") {
  struct Watch : SessionListener {
    explicit Watch(Trainer& of) : trainer(of) {}
    void on_step(const StepReport&, double) override {
      const Tensor& values = trainer.store().values();
      older = newer;
      newer.clear();
      for (std::int64_t i = 0; i < values.numel(); ++i) newer.push_back(values.at(i));
    }
    void on_layers(std::int64_t step, const std::vector<LayerReport>& layers) override {
      double changed = 0, reported = 0;
      for (std::size_t i = 0; i < newer.size(); ++i) changed += (newer[i] - older[i]) * (newer[i] - older[i]);
      for (const LayerReport& layer : layers) reported += layer.norm * layer.norm * layer.update * layer.update;
      REQUIRE(changed > 0);
      REQUIRE(std::sqrt(reported) == Approx(std::sqrt(changed)).epsilon(1e-6));
      steps.push_back(step);
    }
    Trainer& trainer;
    std::vector<double> older, newer;
    std::vector<std::int64_t> steps;
  };
  Config config = tens();
  config.max_steps = 24;
  const Dataset data = dataset_of(abc(), config);
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  TextTrainer trainer(config, data);
  Watch watch(trainer);
  REQUIRE(Session(config, trainer, run, watch, {}).train() == SessionEnd::finished);
  REQUIRE(watch.steps == std::vector<std::int64_t>{10, 20, 24});
}

TEST_CASE("an evaluation is recorded only after everything that follows from it is done") {
  struct NoBest : FileSystem {
    int rename(const std::string& from, const std::string& to) override {
      if (!to.ends_with("/best")) return FileSystem::rename(from, to);
      errno = EIO;
      return -1;
    }
  } no_best;
  SessionRun run;
  TextTrainer trainer(run.config, run.data);
  const RunDirectory failing(run.directory.path(), no_best);
  SessionListener silent;
  const std::string said =
      error_message<CheckpointError>([&] { Session(run.config, trainer, failing, silent).train(); });
  REQUIRE(contains(said, "checkpoints/best"));
  REQUIRE_FALSE(contains(read_bytes(run.directory.metrics_file()), "{\"kind\":\"eval\",\"step\":10,"));
  run.go_on(0, 10);
  REQUIRE(contains(read_bytes(run.directory.metrics_file()), "{\"kind\":\"eval\",\"step\":10,"));
  REQUIRE(run.directory.best().has_value());
}

TEST_CASE("a checkpoint of this step that is not resumable, or of another run, is written again") {
  SessionRun run;
  run.go_on(0, 20);
  const std::string path = run.directory.checkpoint_file(20), good = read_bytes(path);
  Config other = run.config;
  other.seed = 7;
  Sections sections = sections_of(path);
  section(sections, "tensors")[1] = 'v';
  const TemporaryFolder elsewhere;
  const auto text_of_another = [](CheckpointState& s) {
    s.step = 20;
    s.corpus_hash.front() = 'f';
  };
  for (const std::string& bad : {std::string("torn"), good.substr(0, good.size() - 1),
                                 read_bytes(write_sections(elsewhere / "forged.maki", sections)),
                                 read_bytes(write_smallest(
                                     elsewhere / "other.maki", [](CheckpointState& s) { s.step = 20; }, other)),
                                 read_bytes(write_smallest(elsewhere / "text.maki", text_of_another, run.config)),
                                 read_bytes(run.directory.checkpoint_file(10))}) {
    write_bytes(path, bad);
    run.go_on(10, 20);
    REQUIRE(read_bytes(path) == good);
  }
}

TEST_CASE("a resume reads no checkpoint but its own and the best, each of them once before its numbers are loaded") {
  struct CountedReads : NamedFiles {
    ssize_t pread(int descriptor, void* bytes, std::size_t size, off_t offset) override {
      const ssize_t n = FileSystem::pread(descriptor, bytes, size, offset);
      const std::lock_guard guard(lock);
      read[names[descriptor]] += n;
      return n;
    }
    int rename(const std::string& from, const std::string& to) override {
      if (to.ends_with(".maki")) written.push_back(std::filesystem::path(to).filename());
      return FileSystem::rename(from, to);
    }
    std::mutex lock;
    std::map<std::string, std::int64_t> read;
    std::vector<std::string> written;
  } fs;
  Config config = tens();
  config.n_embd = 64;  // so that the numbers are nearly all of the file
  config.learning_rate = config.min_lr = 0.001;
  SessionRun run(config);
  run.go_on(0, 30);
  run.measured({{10, 0.25}, {20, 0.5}, {30, 0.75}});
  run.directory.set_best({10, 0.25});
  run.go_on(30, 40, fs);
  const auto size = static_cast<double>(std::filesystem::file_size(run.directory.checkpoint_file(30)));
  const auto times = [&](const char* name) { return static_cast<double>(fs.read[name]) / size; };
  REQUIRE(times("step-00000010.maki") == Approx(1).epsilon(0.02));
  REQUIRE(times("step-00000030.maki") == Approx(2).epsilon(0.02));
  for (const char* name : {"step-00000000.maki", "step-00000020.maki", "step-00000040.maki"}) {
    REQUIRE(fs.read.count(name) == 0);
  }
  REQUIRE(fs.written == std::vector<std::string>{"step-00000040.maki"});
}

TEST_CASE("the time and the tokens of a run are those of all its sessions") {
  struct Watch : SessionListener {
    void on_log(const StepReport& report, double, double elapsed_seconds) override {
      tokens = report.tokens;
      seconds = elapsed_seconds;
    }
    std::int64_t tokens = 0;
    double seconds = 0;
  } watch;
  SessionRun run;
  run.go_on(0, 20);
  write_bytes(run.directory.metrics_file(), R"({"kind":"train","step":20,"loss":1.0,"elapsed_seconds":1e6})"
                                            "\n");
  TextTrainer trainer(run.config, run.data);
  const VerifiedCheckpoint from(run.directory, run.directory.checkpoint_file(20));
  trainer.restore(from);
  run.config.max_steps = 30;
  Session(run.config, trainer, run.directory, watch, {.resumed = &from}).train();
  REQUIRE(watch.tokens == 30 * 2);
  REQUIRE(watch.seconds >= 1e6);
}

TEST_CASE("a new run begins without measurements, whatever its directory contains") {
  SessionRun run;
  run.measured({{0, 0.5}});
  run.go_on(0, 10);
  REQUIRE_FALSE(contains(read_bytes(run.directory.metrics_file()), ":0.5}"));
}

TEST_CASE("values, moments or a loss that are not finite are never saved") {
  using Corrupt = std::function<void(Trainer&)>;
  const std::vector<std::pair<const char*, Corrupt>> corruptions = {
      {"values", [](Trainer& t) { t.store().values().data<float>()[3] = NAN; }},
      {"exp_avg ", [](Trainer& t) { t.optimizer().moments()[0].values.data<float>()[1] = -INFINITY; }},
      {"exp_avg_sq", [](Trainer& t) { t.optimizer().moments()[1].values.data<float>()[1] = NAN; }},
      {"forward pass", [](Trainer& t) {  // logits of 1e48
         float* const values = t.store().values().data<float>();
         for (std::int64_t i = 0; i < 6; ++i) values[i] = i % 2 == 0 ? 1e18f : -1e18f;
         REQUIRE(t.store().find("wte.weight").offset() == 0);
         for (std::int64_t i = 0; i < 2; ++i) values[t.store().find("ln_f.weight").offset() + i] = 1e30f;
         t.store().mark_changed();
       }}};
  for (const auto& [what, corrupt] : corruptions) {
    SessionRun run;
    run.config.checkpoint_interval = 1;
    TextTrainer trainer(run.config, run.data);
    trainer.step();
    trainer.require_finite();
    corrupt(trainer);
    SessionListener silent;
    const std::string said =
        error_message<DivergedError>([&] { Session(run.config, trainer, run.directory, silent).train(); });
    INFO(what << ": " << said);
    REQUIRE(contains(said, what));
    REQUIRE(run.directory.checkpoints().empty());
  }
}
