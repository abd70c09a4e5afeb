#include "train/loop/eval_report.h"

#include <fmt/format.h>

#include "data/io/number.h"

namespace maki {

ReportLine measure_extent(const std::string& what, const SampledLoss& sampled) {
  const std::string share = sampled.taken < sampled.batches
                                ? fmt::format(" ({} of {} batches, {})", sampled.taken, sampled.batches,
                                              sampled.first ? "the first ones" : "spread evenly")
                                : "";
  return {"text",
          fmt::format("{}, {}{}", what, pluralize(sampled.loss.targets, "target"), share),
          {{"targets", sampled.loss.targets}, {"batches", sampled.taken}, {"batches_of_text", sampled.batches}}};
}

}  // namespace maki
