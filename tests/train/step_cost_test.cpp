// The model of what a step of a team costs: counts of what the ranks really send, and times.
#include "train/loop/team/step_cost.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "optim/clip.h"
#include "tests/catch.h"
#include "tests/threads.h"
#include "tests/train/every_small_model.h"
#include "train/loop/team/local_team.h"
#include "train/loop/team/range_sum.h"
#include "train/loop/trainer.h"

using namespace maki;
using namespace maki::tests;

namespace {

struct Sent {
  std::int64_t messages = 0, bytes = 0;
  Sent operator-(const Sent& other) const { return {messages - other.messages, bytes - other.bytes}; }
};

struct Measured {
  Sent busiest;        // in one step
  double seconds = 0;  // of one step, the mean of several
  StepWork work;
};

Config model_of(std::int64_t n_embd, std::int64_t n_layer, std::int64_t micro_batches) {
  Config config = small_model_config("gpt");
  config.n_embd = n_embd;
  config.n_layer = n_layer;
  config.grad_accum = micro_batches;
  return config;
}

// A model whose parameters have several blocks.
Config model_of_blocks(std::int64_t micro_batches) { return model_of(64, 3, micro_batches); }

// A model that two to four ranks exchange in several buckets.
Config model_of_buckets(std::int64_t micro_batches) { return model_of(128, 8, micro_batches); }

// Steps of a small model.
Measured measured(int ranks, const Config& config, const LocalTeamOptions& how, int timed_steps = 1) {
  Measured result;
  std::vector<Sent> sent(static_cast<std::size_t>(ranks)), before;
  LocalTeamOptions counted = how;
  counted.sent = [&](int rank, std::size_t bytes) {
    Sent& of_rank = sent[static_cast<std::size_t>(rank)];
    ++of_rank.messages;
    of_rank.bytes += static_cast<std::int64_t>(bytes);
  };
  const auto run = [&](int steps) {
    std::ranges::fill(sent, Sent());
    run_local_team(
        ranks,
        [&](Team& team) {
          const auto task = make_random_task(config, random_vocab_sizes(config, 11), 4 * config.grad_accum);
          Trainer trainer(config, *task, trainable_model(config, *task), true, team);
          if (!team.leads()) return trainer.follow();
          result.work = step_work(trainer.trainable(), config.grad_accum);
          const auto begin = std::chrono::steady_clock::now();
          for (int step = 0; step < steps; ++step) trainer.step();
          const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
          result.seconds = all.count() / steps;
        },
        counted);
  };
  run(timed_steps);
  before = sent;
  run(timed_steps + 1);
  for (std::size_t rank = 0; rank < sent.size(); ++rank) {
    const Sent step = sent[rank] - before[rank];
    result.busiest.messages = std::max(result.busiest.messages, step.messages);
    result.busiest.bytes = std::max(result.busiest.bytes, step.bytes);
  }
  return result;
}

constexpr NetworkSpeed kNone{.seconds_per_message = 0, .seconds_per_byte = 0};

// A row of the predictions in docs/scaling.md, without its numbers: workload, micro-batches, ranks.
std::string predicted_row(const std::string& workload, std::int64_t micro_batches, std::int64_t ranks) {
  const bool gpt2 = workload == "gpt2";
  const StepWork work{
      .trained = gpt2 ? 123'700'000 : 10'600'000,
      .layers = gpt2 ? FlatRange{4809 * kNormBlock, 15086 * kNormBlock} : FlatRange{16 * kNormBlock, 1289 * kNormBlock},
      .micro_batches = micro_batches,
      .seconds_per_micro_batch = gpt2 ? 0.515 : 0.721,
      .seconds_per_update = gpt2 ? 0.106 : 0.009};
  std::string row = fmt::format("| {} | {} | {} |", workload, micro_batches, ranks);
  for (const NetworkSpeed& speed : {NetworkSpeed(), NetworkSpeed{3e-6, 8 / 94e9}}) {
    const double seconds = step_cost(work, ranks, speed).seconds();
    row += fmt::format(" {:.3g} | {:.0f} % |", seconds, 100 * efficiency(work, ranks, speed));
    row += fmt::format(" {} |", useful_ranks(work, 4096, speed));
  }
  return row;
}

}  // namespace

TEST_CASE("the model counts the messages and bytes that the busiest rank sends in a step") {
  const ThreadsScope one(1);
  const auto compare = [](const Config& config, int ranks) {
    INFO(config.n_layer << " layers, " << config.grad_accum << " micro-batches, " << ranks << " ranks");
    const Measured step = measured(ranks, config, {});
    const StepCost cost = step_cost(step.work, ranks);
    REQUIRE(cost.messages == (ranks == 1 ? 0 : step.busiest.messages));
    REQUIRE(cost.bytes == (ranks == 1 ? 0 : step.busiest.bytes));
    REQUIRE((cost.buffer_bytes == 0) == (ranks == 1));
  };
  for (const std::int64_t micro_batches : {1, 3, 8, 13}) {
    for (const int ranks : {1, 2, 3, 5, 8}) compare(model_of_blocks(micro_batches), ranks);
  }
  for (const std::int64_t micro_batches : {1, 6}) {
    for (const int ranks : {2, 3, 4}) compare(model_of_buckets(micro_batches), ranks);
  }
}

TEST_CASE("a step over a slow network takes at least as long as the model says") {
  const ThreadsScope one(1);
  const LocalTeamOptions slow{.speed = {.seconds_per_message = 1e-4, .seconds_per_byte = 1e-7}};
  const Measured step = measured(4, model_of_blocks(4), slow, /*timed_steps=*/3);
  const double least = step_cost(step.work, 4, slow.speed).network_seconds;
  REQUIRE(least > 0.04);
  REQUIRE(step.seconds > 0.9 * least);
}

TEST_CASE("measured steps over slow networks beside the model", "[.][scaling]") {
  const ThreadsScope one(1);
  const double alone = measured(1, model_of_blocks(8), {}, 10).seconds;
  for (const NetworkSpeed speed : {NetworkSpeed{2e-3, 0}, NetworkSpeed{0, 4e-7}, NetworkSpeed{1e-3, 2e-7}}) {
    for (const int ranks : {2, 4, 8}) {
      for (const std::int64_t micro_batches : {8, 12}) {
        const Measured step = measured(ranks, model_of_blocks(micro_batches), {.speed = speed}, 5);
        const StepCost cost = step_cost(step.work, ranks, speed);
        WARN(fmt::format(
            "{:.4g} s per message, {:.3g} s per byte, {} ranks, {} micro-batches: {} messages, {} bytes, "
            "model {:.1f} ms, measured {:.1f} ms ({:.2f}); alone {:.1f} ms",
            speed.seconds_per_message, speed.seconds_per_byte, ranks, micro_batches, cost.messages, cost.bytes,
            1e3 * cost.network_seconds, 1e3 * step.seconds, step.seconds / cost.network_seconds, 1e3 * alone));
      }
    }
  }
}

// Of a model that is exchanged in buckets, on two cores: the time of a micro-batch is that over a network that takes
// none.
TEST_CASE("measured steps whose exchange is hidden behind the backward pass beside the model", "[.][scaling]") {
  const ThreadsScope one(1);
  Config config = model_of_buckets(2);
  config.block_size = 64;
  config.batch_size = 8;
  Measured free = measured(2, config, {}, 20);
  for (const double part : {0.25, 0.5, 1.0, 2.0}) {  // of the step, which all bytes of the network take
    const double bytes = static_cast<double>(step_cost(free.work, 2).bytes);
    const NetworkSpeed speed{0, part * free.seconds / bytes};
    const Measured step = measured(2, config, {.speed = speed}, 20);
    StepWork work = step.work;
    const double hidden_nothing = step_cost(work, 2, speed).network_seconds;
    work.seconds_per_micro_batch = free.seconds;
    const StepCost cost = step_cost(work, 2, speed);
    WARN(
        fmt::format("{} bytes: without a network {:.1f} ms; network {:.1f} ms, of which {:.1f} ms show; model {:.1f} "
                    "ms, measured {:.1f} ms ({:.2f})",
                    cost.bytes, 1e3 * free.seconds, 1e3 * hidden_nothing, 1e3 * cost.network_seconds,
                    1e3 * cost.seconds(), 1e3 * step.seconds, step.seconds / cost.seconds()));
  }
}

TEST_CASE("the predictions of docs/scaling.md are those of the model") {
  std::ifstream file(std::string(MAKI_SOURCE_DIR) + "/docs/scaling.md");
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| gpt2 |") && !line.starts_with("| baby |")) continue;
    std::istringstream words(line);
    std::string bar, workload;
    std::int64_t micro_batches = 0, ranks = 0;
    words >> bar >> workload >> bar >> micro_batches >> bar >> ranks;
    REQUIRE(line == predicted_row(workload, micro_batches, ranks));
    ++rows;
  }
  REQUIRE(rows == 8);
}

TEST_CASE("gradients are exchanged in chunks that stay in a cache, of which as many are under way as memory allows") {
  const auto chunks = [](std::int64_t bytes_of_one, std::int64_t subtrees, std::int64_t longest_part) {
    const ChunkSize size = chunk_size(bytes_of_one, subtrees, longest_part);
    return std::vector<std::int64_t>{size.elements, size.at_once};
  };
  using Chunks = std::vector<std::int64_t>;
  constexpr std::int64_t kLong = 1 << 30;
  REQUIRE(chunks(4, 4, kLong) == Chunks{131'072, 8});  // 2 MiB of all subtrees, 16 MiB at once
  REQUIRE(chunks(8, 4, kLong) == Chunks{65'536, 8});
  REQUIRE(chunks(4, 4, 1024) == Chunks{1024, 1024});
  REQUIRE(chunks(4, 64, kLong) == Chunks{32'768, 2});  // messages of 128 KiB
  REQUIRE(chunks(4, 4096, kLong) == Chunks{4096, 2});  // 64 MiB of all subtrees
  REQUIRE(chunks(4, 4, 0) == Chunks{1, 1 << 20});
}

TEST_CASE("gradients that a rank holds follow the tree of its micro-batches") {
  const auto held = [](std::int64_t micro_batches, std::int64_t ranks) {
    return step_cost({.micro_batches = micro_batches}, ranks).gradients;
  };
  // The sums of 1, 2, 4, … micro-batches, the gradient that is computed and, but for the last, the next one.
  REQUIRE(held(1, 1) == 1);
  REQUIRE(held(2, 1) == 2);
  REQUIRE(held(3, 1) == 3);
  REQUIRE(held(4, 1) == 3);
  REQUIRE(held(8, 1) == 4);
  REQUIRE(held(8, 8) == 1);
  REQUIRE(held(8, 4) == 2);
  REQUIRE(held(16, 2) == 4);
  REQUIRE(held(1, 5) == 1);
  REQUIRE(held(21, 3) == 5);  // the second rank has 7, {8…13} and {7}, of which 4 + 2 are whole subtrees
}

TEST_CASE("times are those of the formulas") {
  const StepWork work{
      .trained = 1 << 20, .micro_batches = 8, .seconds_per_micro_batch = 0.5, .seconds_per_update = 0.4};
  REQUIRE(step_cost(work, 1).seconds() == Approx(8 * 0.5 + 0.4));
  const StepCost cost = step_cost(work, 4, {.seconds_per_message = 1e-3, .seconds_per_byte = 1e-8});
  REQUIRE(cost.micro_batches == 2);
  REQUIRE(cost.compute_seconds == Approx(2 * 0.5 + 0.1));
  // A quarter of the gradient to each of three, in two chunks, and a quarter of the values.
  REQUIRE(cost.messages == 3 * 7);
  REQUIRE(cost.buffer_bytes == 2 * 4 * (1 << 19));  // of four subtrees
  REQUIRE(static_cast<double>(cost.bytes) == Approx(2 * 3 * (1 << 20)).epsilon(0.001));
  REQUIRE(cost.network_seconds == Approx(21e-3 + 1e-8 * static_cast<double>(cost.bytes)));
  REQUIRE(efficiency(work, 1, {}) == 1);
  REQUIRE(efficiency(work, 4, kNone) == Approx(1));
}

TEST_CASE("more ranks pay as long as doubling them makes a step a tenth shorter") {
  const StepWork work{.trained = 1 << 20, .micro_batches = 8, .seconds_per_micro_batch = 0.1};
  REQUIRE(useful_ranks(work, 1024, kNone) == 8);  // no more than there are micro-batches
  REQUIRE(useful_ranks(work, 7, kNone) == 4);
  REQUIRE(useful_ranks(work, 1, kNone) == 1);
  REQUIRE(useful_ranks(work, 1024, {.seconds_per_message = 0, .seconds_per_byte = 1e-3}) == 1);
  // A step takes 0.8 s on one rank, and 0.4, 0.2 and 0.1 s and what the network takes on 2, 4 and 8.
  REQUIRE(useful_ranks(work, 1024, {.seconds_per_message = 0, .seconds_per_byte = 5e-8}) == 4);
}
