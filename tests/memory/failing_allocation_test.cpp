// Each allocation of a step, a save and a load fails once. What fails says so with std::bad_alloc and leaves nothing
// half done and no memory in use: the same, tried again, ends with the same bytes.
#include <new>

#include "autograd/core/storage.h"
#include "tests/files.h"
#include "tests/memory/allocations.h"
#include "tests/train/small_checkpoint.h"
#include "tests/train/small_data.h"
#include "train/run/verified_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

Config trained_config(const std::string& optimizer = "adamw") {
  Config config = smallest_config();
  config.n_embd = config.block_size = 8;
  config.n_layer = 2;
  config.dropout = 0.1;
  config.grad_accum = 2;
  config.optimizer = optimizer;
  return config;
}

Dataset small_dataset(const Config& config) { return dataset_of(seeded_text(100, "abcdefg"), config); }

void save(const std::string& path, TextTrainer& trainer, const Dataset& data) {
  Unsynced fs;
  write_checkpoint(fs, path, state_after(trainer.steps(), trainer.config(), data), trainer.store(), trainer.optimizer(),
                   trainer.carried());
}

// Carries out `action` with allocation 0 failing, then 1, and so on, until none is left to fail, and each time what
// comes `after` it. Returns how many there are.
template <class Action, class After>
int fail_each(const Action& action, const After& after) {
  for (int n = 0;; ++n) {
    INFO("allocation " << n);
    bool thrown = false;
    fail_allocation(n);
    try {
      action();
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
    const bool failed = has_failed();
    REQUIRE((failed || !thrown));
    after(thrown);
    if (!failed) return n;
  }
}

// Does that twice and requires that the second time, when everything that a process allocates once is there, no
// failure leaves an allocation behind. Returns how many there are.
template <class Action, class After>
int fail_each_without_leak(const Action& action, const After& after) {
  const int allocations = fail_each(action, after);
  const long living = living_allocations();
  REQUIRE(fail_each(action, after) == allocations);
  REQUIRE(living_allocations() == living);
  return allocations;
}

}  // namespace

TEST_CASE("wherever memory runs out in a step, the step can be repeated and ends with the same bytes") {
  const TemporaryFolder folder;
  for (const std::string optimizer : {"adamw", "muon", "sgd"}) {
    INFO(optimizer);
    const Config config = trained_config(optimizer);
    const Dataset data = small_dataset(config);
    TextTrainer straight(config, data);
    for (int i = 0; i < 3; ++i) straight.step();
    save(folder / "straight", straight, data);
    std::optional<TextTrainer> trainer;
    const auto begin = [&] {
      trainer.reset();
      storage_pool::trim();  // so that the step does not find the blocks of the one before it
      trainer.emplace(config, data);
    };
    begin();
    const int allocations =
        fail_each_without_leak([&] { trainer->step(); },
                               [&](bool thrown) {
                                 REQUIRE(trainer->steps() == !thrown);
                                 while (trainer->steps() < 3) trainer->step();
                                 save(folder / "repeated", *trainer, data);
                                 REQUIRE((read_bytes(folder / "repeated") == read_bytes(folder / "straight")));
                                 begin();
                               });
    REQUIRE(allocations > 50);
  }
}

TEST_CASE("wherever memory runs out while a checkpoint is saved, it or the old one is there, and no other file") {
  const TemporaryFolder folder;
  const Config config = trained_config();
  const Dataset data = small_dataset(config);
  TextTrainer trainer(config, data);
  trainer.step();
  save(folder / "a", trainer, data);
  const std::string old = read_bytes(folder / "a");
  trainer.step();
  save(folder / "expected", trainer, data);
  const std::string expected = read_bytes(folder / "expected");
  std::filesystem::remove(folder / "expected");
  const int allocations = fail_each_without_leak([&] { save(folder / "a", trainer, data); },
                                                 [&](bool thrown) {
                                                   REQUIRE_FALSE(std::filesystem::exists(folder / "a.tmp"));
                                                   const std::string now = read_bytes(folder / "a");
                                                   REQUIRE((now == expected || (thrown && now == old)));
                                                 });
  REQUIRE(allocations > 100);
}

TEST_CASE("wherever memory runs out while a checkpoint is loaded, nothing is lost but the attempt") {
  const TemporaryFolder folder;
  const Config config = trained_config();
  const Dataset data = small_dataset(config);
  {
    TextTrainer trainer(config, data);
    trainer.step();
    save(folder / "a", trainer, data);
  }
  const std::string saved = read_bytes(folder / "a");
  std::optional<TextTrainer> trainer;
  const auto load = [&] {
    trainer.reset();
    const VerifiedCheckpoint from(folder / "a");
    trainer.emplace(from.state().config, data, /*initial_values=*/false);
    trainer->restore(from);
  };
  const auto look = [&](bool thrown) {
    if (!thrown) save(folder / "again", *trainer, data);
    if (!thrown) REQUIRE((read_bytes(folder / "again") == saved));
    REQUIRE((read_bytes(folder / "a") == saved));
    trainer.reset();
  };
  const int allocations = fail_each_without_leak(load, look);
  REQUIRE(allocations > 50);
}
