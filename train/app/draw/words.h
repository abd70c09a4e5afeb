// The words of pictures and of what stands for them in a terminal, in every language that can be chosen for them.
#pragma once

#include <string>
#include <vector>

namespace maki {

/// Texts with {} are formats of fmt; their arguments are the same in every language, and in this order.
struct Words {
  const char* name;  ///< of the language: a tag of BCP 47

  // Attention weights.
  const char *attention_weights, *layer_and_head, *query, *query_written, *key, *weight;
  const char* step_of_run;  ///< path, step
  const char *self_attention, *of_encoder, *of_decoder, *cross_attention, *none_to_later;
  const char* description_of_weights;  ///< layers, heads, tokens of queries and of keys

  // Sinusoidal positions.
  const char *sinusoidal_positions, *encoding, *dot_products, *position_i, *position_j, *column;
  const char* summary_of_positions;  ///< base, width, number of positions
  const char* description_of_positions;
  const char *wavelength_of_pair, *pair, *wavelength_axis, *wavelengths, *two_columns, *one_column;

  // Maps in a terminal.
  const char *shows_first, *shows_largest, *block_of_numbers, *rows, *below, *up_to;
};

/// The names of the languages: "en" and "ja".
std::vector<std::string> languages();
/// Throws Error, suggesting the nearest name, for an unknown language.
const Words& words_in(const std::string& language);

}  // namespace maki
