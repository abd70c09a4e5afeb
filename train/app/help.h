// The help of the program and of its verbs, as a reader sees it on a terminal.
#pragma once

#include <cstddef>
#include <memory>

namespace CLI {
class FormatterBase;
}  // namespace CLI

namespace maki {

/// The width of help in columns: COLUMNS of the environment if that is a whole number above 0, else the width of the
/// terminal to which standard output (or, through a pager, standard error) goes, else 80.
std::size_t help_columns();

/// Formats help in lines of at most `columns` columns, but at least 20. Lines break at spaces, and those of names also
/// after a comma or a bar, as in "gelu|relu"; only a single longer word exceeds the width.
std::shared_ptr<CLI::FormatterBase> make_help_formatter(std::size_t columns);

}  // namespace maki
