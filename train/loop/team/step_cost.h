// What a step of a team costs (gradient_sum.h): who computes what, what the ranks send each other, and how long both
// take. Counts are exact; times are a model of few numbers, which docs/scaling.md compares with measurements.
#pragma once

#include <cstdint>

#include "train/run/trainable_model.h"

namespace maki {

/// How long messages take: a rank sends one after the other, and each takes the first number and, for each of its
/// bytes, the second. `maki bench network` measures both. The defaults are for Ethernet with 10 Gbit/s, of which frames
/// and headers leave 9.4.
struct NetworkSpeed {
  double seconds_per_message = 30e-6;
  double seconds_per_byte = 8 / 9.4e9;
};

/// The work of a step, whoever does it.
struct StepWork {
  std::int64_t trained = 1;            ///< numbers in the flat gradient; tables of n-grams are not part of this model
  FlatRange layers = {};               ///< of these, what is exchanged during the backward pass (buckets.h)
  std::int64_t bytes_of_one = 4;       ///< of such a number
  std::int64_t micro_batches = 1;      ///< of all ranks together
  double seconds_per_micro_batch = 0;  ///< on one rank
  double seconds_per_update = 0;       ///< of all parameters, on one rank
};

/// The work of a step of a model, without times.
StepWork step_work(const TrainableModel& model, std::int64_t micro_batches);

struct StepCost {
  std::int64_t micro_batches = 0;  ///< of the rank that has most
  std::int64_t gradients = 0;      ///< that a rank holds at once, as roots of subtrees and beside them
  std::int64_t messages = 0;       ///< that the busiest rank sends; no rank receives more bytes than it sends
  std::int64_t bytes = 0;          ///< in these messages
  std::int64_t buffer_bytes = 0;   ///< in which a rank adds what it receives
  double compute_seconds = 0;
  double network_seconds = 0;  ///< in which no rank computes

  double seconds() const { return compute_seconds + network_seconds; }
};
/// Counts are exact if the optimizer treats all elements alike, as all but Muon do. Requires: 1 <= ranks <= 2^20, and
/// the numbers of `work` are at least 1, its times at least 0.
StepCost step_cost(const StepWork& work, std::int64_t ranks, const NetworkSpeed& speed = {});

/// The time of a step on one rank, as a part of the time that all ranks together spend on it: 1 if none is lost.
double efficiency(const StepWork& work, std::int64_t ranks, const NetworkSpeed& speed);

/// Up to how many ranks more of them pay: the largest power of two, at most `most`, whose step is shorter than that of
/// half as many ranks by kWorthDoubling at least. 1 if there is none.
std::int64_t useful_ranks(const StepWork& work, std::int64_t most, const NetworkSpeed& speed);
inline constexpr double kWorthDoubling = 0.1;

}  // namespace maki
