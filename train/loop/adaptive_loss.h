// What `maki eval --adapt` measures: the loss on a text of which every part is learned as soon as it has been
// predicted, by the network and by counts. It is no measure of what was learned in training alone, and is never
// compared with the ordinary loss under the same name.
#pragma once

#include <optional>

#include "data/dataset/dataset.h"
#include "train/loop/eval_report.h"
#include "train/loop/online_learner.h"

namespace maki {

struct AdaptiveOptions {
  AdaptOptions network;
  bool counts = true;  ///< also count while reading, and mix the network with the counts
};

/// Means over the targets of a text, in nats per token; 0 without targets.
struct AdaptiveLoss {
  double network = 0;
  std::optional<double> counts, mixed;  ///< unless AdaptiveOptions::counts is off
  /// Tokens that were predicted (all but the first of each piece), windows that were read, and tokens of a window.
  std::int64_t targets = 0, windows = 0, window = 0;
};

/// Reads the validation text of the data in order. The counts have read the training text before, if the data have one
/// (of a text of more than 4 Mi tokens, that many at its end). The result is nullopt if `stop` is
/// requested. Throws DivergedError, and Error as OnlineLearner does.
std::optional<AdaptiveLoss> adaptive_loss(const LoadedModel& loaded, const Dataset& data,
                                          const AdaptiveOptions& options, const StopRequest& stop = {});

/// Lines and facts about it. `own`: the counts had read the training text of the run; it only changes the wording.
/// `tokens_per_character` is that of the text, for losses in nats per character.
std::vector<ReportLine> measure_adapting(const AdaptiveLoss& loss, const AdaptiveOptions& options, bool own,
                                         double tokens_per_character);

}  // namespace maki
