// Reads the tours (docs/tour.md, docs/tour.ja.md): their sections, their commands with the output that they show, and
// their links; and compares what they show with what a command printed.
//
// A block ```sh is a command, and the block ```text that follows it shows its output:
//   ```text           words and integers must be equal, other numbers within 10 % or two units of their last digit
//   ```text numbers   words must be equal; numbers may be any
//   ```text sample    the output may be any, but not empty
// A line "…" stands for any number of lines, and "…" at the end of a line for any end of that line. Where characters
// are separated by spaces, their number does not matter.
#pragma once

#include <string>
#include <vector>

namespace maki::tests {

struct TourBlock {
  std::size_t line = 0;  ///< of the command, counted from 1
  int section = 0;
  std::string command, expected, mode;
  std::size_t output_line = 0;  ///< of the first line of `expected`
};

struct TourLink {
  std::size_t line = 0;
  std::string text, target;
};

struct Tour {
  std::vector<int> sections;  ///< the numbers of the headings "## 1. …"
  std::vector<TourBlock> blocks;
  std::vector<TourLink> links;  ///< all but those to the web and within the page
};

/// Throws std::runtime_error, naming the line, for a command without output, a block of another kind, and a fence that
/// is not closed.
Tour read_tour(const std::string& markdown);

/// What differs between expected and printed output; empty if nothing does.
std::string difference(const std::string& expected, const std::string& printed, const std::string& mode);

/// What a page should show instead of `expected`, if a command prints something else now: what was printed, shortened
/// where the page was. Lines between two omissions stay as they are if none of them is printed any more.
std::string renewed(const std::string& expected, const std::string& printed, const std::string& mode);

/// What is wrong with a link of a page in `folder`; empty if nothing is. Its target must exist, and if the text is
/// code, as in [`embedding`](../autograd/ops.h), the target must contain all names that it consists of.
std::string defect(const TourLink& link, const std::string& folder);

}  // namespace maki::tests
