// How the parameters of a model are named and laid out in the files of other programs: a table in the file of each
// format.
// Writing weights (weights.h) works for every table; reading, for those without Form::rotary_pairs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace maki {

/// How a parameter of maki is laid out elsewhere. Weights of linear maps are [out, in] in maki.
enum class Form : std::uint8_t {
  same,
  transposed,  ///< [in, out], as in the Conv1D of GPT-2
  /// In each head of D rows, those that are rotated together follow each other: 0, D/2, 1, D/2 + 1, … Only written.
  rotary_pairs,
};

/// A row of a table.
struct NameRule {
  /// In maki; {} is the number of a block, and the row stands for all blocks. Unless it ends in .weight, it is a layer,
  /// and the row stands for its weight and then its bias.
  const char* parameter;
  const char* stored = nullptr;  ///< in the format; null: the same
  Form form = Form::same;        ///< of the weight
  /// `stored` is part number `part` of `parts` equal ones that are stacked along the first axis of the parameter. Three
  /// parts are q, k and v; see expand().
  int part = 0, parts = 1;
  /// The rows belong to tokens: files may have more of them, which pad the vocabulary.
  bool by_token = false;
};

/// A rule for one tensor.
struct NamePair {
  std::string parameter, stored;
  Form form = Form::same;
  /// `stored` is the parts from number `part` on, `count` of `parts` equal ones. q‖k‖v has parts of the size of k, of
  /// which q is several.
  int part = 0, parts = 1;
  bool by_token = false;
  int count = 1;
};

/// The rules with the numbers of the blocks, in the order of the rows: a row that stands for all blocks becomes a rule
/// for each of the n_layer blocks, before those of the next row. In q‖k‖v, q is heads_per_kv_head times as large as k
/// and v.
std::vector<NamePair> expand(std::span<const NameRule> rules, std::int64_t n_layer, std::int64_t heads_per_kv_head = 1);

}  // namespace maki
