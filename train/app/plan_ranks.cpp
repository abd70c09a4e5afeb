#include "train/app/plan_ranks.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "autograd/core/check.h"
#include "data/io/number.h"
#include "train/app/describe_run.h"
#include "train/app/shared_run.h"
#include "train/loop/estimate.h"

namespace maki {
namespace {

constexpr std::int64_t kMostRanks = 65536;

// 1, 2, 4, … and all.
std::vector<std::int64_t> shown_ranks(std::int64_t ranks) {
  std::vector<std::int64_t> list;
  for (std::int64_t n = 1; n < ranks; n *= 2) list.push_back(n);
  list.push_back(ranks);
  return list;
}

std::string advice(std::int64_t useful, std::int64_t ranks, std::int64_t micro_batches) {
  if (2 * useful > ranks) return fmt::format("It pays to start all {}.", pluralize(ranks, "rank"));
  return fmt::format(
      "It pays to start {}; a step of {} is less than {:.0f}% shorter. More micro-batches occupy more "
      "ranks (--grad-accum, now {}).",
      pluralize(useful, "rank"), 2 * useful, 100 * kWorthDoubling, micro_batches);
}

}  // namespace

RankOptions::RankOptions(const Command& command) : command_(command) {
  command.add_number("--ranks", ranks_, 1, kMostRanks,
                     "number of processes that are to train together, as mpirun -n RANKS maki train starts them");
  command.add_number("--latency", latency_, 0, 1e6, "MICROSECONDS",
                     "time that each message between ranks takes, however short it is, as maki bench network measures "
                     "it; needs --ranks");
  command.add_number("--bandwidth", bandwidth_, 1e-6, 1e6, "GBIT",
                     "gigabits that a rank sends per second, as maki bench network measures them; needs --ranks");
}

NetworkSpeed RankOptions::network() const {
  for (const char* const option : {"--latency", "--bandwidth"}) {
    check(ranks_ > 1 || !command_.given(option), "{}: is about the network between ranks; add --ranks, or omit it",
          option);
  }
  return {.seconds_per_message = 1e-6 * latency_, .seconds_per_byte = 8e-9 / bandwidth_};
}

Config RankStepTimer::divided(Config config) const { return divided_among_ranks(std::move(config), flags_, ranks_); }

StepTime RankStepTimer::time_step(const Config& config, const VocabSizes& vocab) {
  vocab_ = vocab;
  Config own = divided(config);
  const StepCost cost = step_cost(step_work(TrainableModel(own, vocab), own.grad_accum), ranks_, network_);
  own.grad_accum = cost.micro_batches;
  StepTime time = MeasuredStepTimer().time_step(own, vocab);
  time.seconds += cost.network_seconds;
  time.idle_seconds += cost.network_seconds;
  return time;
}

// A step of three micro-batches takes as long as one of one micro-batch, and two micro-batches.
StepWork RankStepTimer::measured_work(const Config& config, std::int64_t length) {
  StepWork work = step_work(TrainableModel(config, *vocab_), config.grad_accum);
  const auto seconds = [&](std::int64_t micro_batches) {
    Config timed = config;
    timed.block_size = length;
    timed.grad_accum = micro_batches;
    return MeasuredStepTimer().time_step(timed, *vocab_).seconds;
  };
  const double one = seconds(1), three = seconds(3);
  work.seconds_per_micro_batch = std::clamp((three - one) / 2, 0.1 * one, one);
  work.seconds_per_update = one - work.seconds_per_micro_batch;
  return work;
}

void RankStepTimer::add_ranks(const Plan& plan, Report& report) {
  if (ranks_ == 1) return;
  const Config config = divided(plan.config);
  const StepWork work = measured_work(config, plan.usual_length);
  const TrainableModel model(config, *vocab_);
  const double flop = flop_per_token(*model.model, model.store, plan.usual_length) *
                      static_cast<double>(plan.usual_length * config.batch_size);  // of a micro-batch
  report.text(fmt::format("\nA step has {} of {}. What a rank has of it, and how long it takes:\n",
                          config.grad_accum == 1 ? "1 micro-batch" : fmt::format("{} micro-batches", config.grad_accum),
                          pluralize(config.batch_size, "sequence")));
  report.text(fmt::format("{:>5} {:>13} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10}", "ranks", "micro-batches", "GFLOP",
                          "memory", "MB sent", "messages", "ms", "network", "efficiency"));
  Json rows = Json::array();
  std::string parts;
  for (const std::int64_t ranks : shown_ranks(ranks_)) {
    const StepCost cost = step_cost(work, ranks, network_);
    MemoryNeed memory = memory_needed(config, model, *vocab_, ranks);
    add_counts(config, plan.train_tokens, memory);
    if (ranks == ranks_) parts = describe(memory);
    const double gflop = 1e-9 * flop * static_cast<double>(cost.micro_batches),
                 used = efficiency(work, ranks, network_);
    report.text(fmt::format("{:5} {:13} {:8.2f} {:>9} {:9.2f} {:9} {:9.1f} {:8.0f}% {:9.0f}%", ranks,
                            cost.micro_batches, gflop, format_bytes(memory.total()),
                            1e-6 * static_cast<double>(cost.bytes), cost.messages, 1e3 * cost.seconds(),
                            100 * cost.network_seconds / cost.seconds(), 100 * used));
    rows.push_back({{"ranks", ranks},
                    {"micro_batches", cost.micro_batches},
                    {"gflop", gflop},
                    {"memory_bytes", memory.total()},
                    {"moments_bytes", memory.moments},
                    {"buffers_bytes", memory.buffers},
                    {"gradients_bytes", memory.gradients},
                    {"bytes_sent", cost.bytes},
                    {"messages_sent", cost.messages},
                    {"compute_seconds", cost.compute_seconds},
                    {"network_seconds", cost.network_seconds},
                    {"efficiency", used}});
  }
  const std::int64_t useful = useful_ranks(work, ranks_, network_);
  report.text(fmt::format("\nmemory of each of {} ranks: {}", ranks_, parts))
      .text(fmt::format("A rank receives no more than it sends. {}", advice(useful, ranks_, config.grad_accum)))
      .add("grad_accum", config.grad_accum)
      .add("batch_size", config.batch_size)
      .add("seconds_per_micro_batch", work.seconds_per_micro_batch)
      .add("seconds_per_update", work.seconds_per_update)
      .add("ranks", rows)
      .add("useful_ranks", useful);
  if (!config.ngram_orders.empty())
    report.text("The rows of n-gram tables, which ranks send as well, are not counted.");
}

}  // namespace maki
