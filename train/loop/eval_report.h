// What `maki eval` reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/loop/facts.h"

namespace maki {

struct MeanLoss {
  double mean;  ///< nats per target; NaN without targets
  std::int64_t targets;
};

/// A mean loss over some of the batches of a part, as mean_loss() chooses them.
struct SampledLoss {
  MeanLoss loss;
  std::int64_t taken, batches;  ///< how many of how many
  bool first = false;           ///< the first ones, not spread evenly over the part
};

/// A line of text for people, and facts for programs. Either may be empty.
struct ReportLine {
  std::string label, text;
  Facts facts = {};
};
/// The number of targets and batches that a loss covers; `what` says of which data.
ReportLine measure_extent(const std::string& what, const SampledLoss& sampled);

/// How a task that writes sequences searches for them.
struct MeasureOptions {
  std::int64_t beam_size = 1;   ///< 1: greedy
  double length_penalty = 0.6;  ///< see BeamOptions
};

}  // namespace maki
