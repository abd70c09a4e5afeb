// Runs of a team: its checkpoints are those of a process alone, whatever happens to messages, ranks and the text, and
// whatever number of ranks goes on.
#include <atomic>
#include <limits>

#include "data/io/error.h"
#include "tests/catch.h"
#include "tests/threads.h"
#include "tests/train/small_checkpoint.h"
#include "tests/train/small_data.h"
#include "train/loop/language_model_task.h"
#include "train/loop/session.h"
#include "train/loop/team/local_team.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::int64_t kSteps = 4;

Config team_config() {
  Config config = smallest_config();
  config.val_fraction = 0.2;
  config.grad_accum = 5;
  config.max_steps = kSteps;
  config.checkpoint_interval = config.eval_interval = 2;
  config.keep_last = 10;
  config.counting = false;
  return config;
}

struct Silent final : SessionListener {};

// A run on one text, continued by teams of any size.
struct TeamRun {
  TeamRun() : data(dataset_of(seeded_text(600, "abcdefgh"), config)) { directory.create(); }

  // Continues from the newest checkpoint, as a resume does.
  SessionEnd go_on(int ranks, const LocalTeamOptions& how = {}, const std::function<bool(int rank)>& stops = {}) {
    std::vector<std::string> notes;
    std::optional<VerifiedCheckpoint> from;
    if (directory.exists() && !directory.checkpoints().empty()) from.emplace(newest_intact(directory, notes));
    auto end = SessionEnd::already_ended;
    run_local_team(
        ranks,
        [&](Team& team) {
          const LanguageModelTask task(config, data);
          Trainer trainer(config, task, trainable_model(config, task), !from, team);
          const StopRequest stop([&] { return stops && stops(team.rank()); });
          if (!team.leads()) return trainer.follow(stop);
          if (from) trainer.restore(*from);
          Silent listener;
          end =
              Session(config, trainer, directory, listener, {.stop = stop, .resumed = from ? &*from : nullptr}).train();
        },
        how);
    return end;
  }
  std::string last() const { return read_bytes(directory.checkpoint_file(kSteps)); }

  TemporaryFolder folder;
  Unsynced files;
  Config config = team_config();
  Dataset data;
  RunDirectory directory{folder / "run", files};
};

std::string checkpoint_of_one() {
  TeamRun run;
  run.go_on(1);
  return run.last();
}

// How many messages each rank of three sends in a run.
std::vector<std::uint64_t> messages_sent() {
  std::vector<std::atomic<std::uint64_t>> counts(3);
  TeamRun().go_on(3, {.deliver = [&](int rank, std::uint64_t n) {
                    counts[static_cast<std::size_t>(rank)] = n + 1;
                    return Delivery::usual;
                  }});
  return {counts.begin(), counts.end()};
}

// One message of one rank is delivered like this.
LocalTeamOptions with(int rank, std::uint64_t n, Delivery how, std::chrono::milliseconds patience) {
  return {.patience = patience,
          .deliver = [=](int of, std::uint64_t k) { return of == rank && k == n ? how : Delivery::usual; },
          .delay = std::chrono::milliseconds(1)};
}

// Calls act(rank, n) for every so many of the messages that the ranks of a run send.
void for_messages(std::uint64_t every, const std::function<void(int rank, std::uint64_t n)>& act) {
  const std::vector<std::uint64_t> sent = messages_sent();
  for (int rank = 0; rank < 3; ++rank) {
    REQUIRE(sent[static_cast<std::size_t>(rank)] > 20);
    for (std::uint64_t n = 0; n < sent[static_cast<std::size_t>(rank)]; n += every) {
      INFO("message " << n << " of rank " << rank);
      act(rank, n);
    }
  }
}

// Rank 0 must notice, and not leave it to a rank that waits for rank 0; only the last message is missed by another
// alone.
void lose_messages(std::uint64_t every) {
  const ThreadsScope one(1);
  const std::string expected = checkpoint_of_one();
  for_messages(every, [&](int rank, std::uint64_t n) {
    TeamRun run;
    LocalTeamOptions how = with(rank, n, Delivery::lost, std::chrono::milliseconds(200));
    how.patience_of_leader = std::chrono::milliseconds(5);
    REQUIRE_THROWS_AS(run.go_on(3, how), RankError);
    run.go_on(1 + static_cast<int>(n % 4));
    REQUIRE(run.last() == expected);
  });
}

void disturb_messages(std::uint64_t every) {
  const ThreadsScope one(1);
  const std::string expected = checkpoint_of_one();
  for_messages(every, [&](int rank, std::uint64_t n) {
    TeamRun run;
    run.go_on(3, with(rank, n, n % 2 == 0 ? Delivery::twice : Delivery::late, std::chrono::hours(1)));
    REQUIRE(run.last() == expected);
  });
}

}  // namespace

TEST_CASE("a message that is lost ends the run in one sentence, and any number of ranks resumes it to the same bytes") {
  lose_messages(/*every=*/7);
}

TEST_CASE("a message that is repeated or late changes no byte") { disturb_messages(/*every=*/7); }

TEST_CASE("of all messages of a run, each is lost, repeated or late", "[.every-message]") {
  lose_messages(1);
  disturb_messages(1);
}

TEST_CASE("a request to any rank stops all of them at the same step, also within an evaluation") {
  const ThreadsScope one(1);
  const std::string expected = checkpoint_of_one();
  for (int rank = 0; rank < 3; ++rank) {
    std::uint64_t longest = std::numeric_limits<std::uint64_t>::max();
    for (std::uint64_t n = 0; n < longest; ++n) {
      INFO("request " << n << " of rank " << rank);
      TeamRun run;
      std::uint64_t asked = 0;
      const SessionEnd end = run.go_on(3, {}, [&](int of) { return of == rank && asked++ >= n; });
      if (end == SessionEnd::finished) longest = n;  // it was asked less often
      run.go_on(2);
      REQUIRE(run.last() == expected);
    }
    REQUIRE(longest > 8);
  }
}

TEST_CASE("an evaluation that is to be completed does not heed what other ranks were asked") {
  const ThreadsScope one(1);
  TeamRun run;
  run_local_team(2, [&](Team& team) {
    const LanguageModelTask task(run.config, run.data);
    Trainer trainer(run.config, task, trainable_model(run.config, task), true, team);
    if (!team.leads()) return trainer.follow([] { return true; });
    REQUIRE(trainer.evaluate({}, /*whole=*/true).has_value());
    REQUIRE_FALSE(trainer.evaluate([] { return false; }).has_value());
    REQUIRE_FALSE(trainer.step([] { return false; }).has_value());
    REQUIRE(trainer.step().has_value());
  });
}

TEST_CASE("an error of one rank ends the run, and is told with the rank") {
  const ThreadsScope one(1);
  TeamRun run;
  std::string told;
  const Config& config = run.config;
  run_local_team(2, [&](Team& team) {
    const LanguageModelTask task(config, run.data);
    Trainer trainer(config, task, trainable_model(config, task), true, team);
    if (!team.leads()) {
      team.announce_failure(3, "the disk is gone");
      return;
    }
    try {
      trainer.step();
    } catch (const RankError& error) {
      told = fmt::format("{} {}", error.exit_code, error.what());
    }
  });
  REQUIRE(told == "3 rank 1: the disk is gone");
}

TEST_CASE("a text that a rank cannot read any more is saved before it is told") {
  const ThreadsScope one(1);
  for (const bool fails_at_leader : {false, true}) {
    run_local_team(3, [&](Team& team) {
      const bool fails = team.leads() == fails_at_leader && team.rank() != 2;
      const auto call = [&] {
        return all_go_on(team, false, fails ? std::optional<std::string>("text is gone") : std::nullopt);
      };
      REQUIRE_THROWS_AS(call(), CorpusError);
      REQUIRE(all_go_on(team, false, std::nullopt));
      REQUIRE_FALSE(all_go_on(team, team.rank() == 1, std::nullopt));
    });
  }
}
