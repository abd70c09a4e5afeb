// The losses of a run over its steps as lines of text: on a terminal while it trains, and in `maki inspect`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/run/history.h"

namespace maki {

struct CurveStyle {
  std::size_t columns = 80;  ///< the longest line
  std::size_t rows = 8;      ///< of the plot; two further lines are its axis
  bool utf8 = true;          ///< braille characters; else ASCII
};

struct CurveSubject {
  const RunHistory& history;
  std::int64_t max_steps = 0;                               ///< the right end of the axis
  std::optional<double> best_possible_loss = std::nullopt;  ///< a line across the plot, as counting alone
};

/// The smoothed training loss as a line, validation losses as circles, what counting alone reaches and the best
/// possible loss as dashed lines that are named at the right; counting with the part of the text that it covers, where
/// that of the circles is another. The plot leaves out the beginning of a run, whose losses would make all others look
/// alike. Empty if there are fewer than two training losses, or if the style has too little space.
std::vector<std::string> draw_curve(const CurveSubject& subject, const CurveStyle& style);

}  // namespace maki
