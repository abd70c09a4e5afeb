// What a program asks of the route /api/inside, and the answer. Knows neither the network nor how a text is read.
#pragma once

#include <string>
#include <string_view>

#include "train/loop/look_inside.h"

namespace maki {

struct InsideRequest {
  std::string model, text;
  InsideOptions options;
};

/// The most tokens that a request may want for each prediction.
inline constexpr std::int64_t kMaxInsideTop = 20;

/// Reads a body such as {"model": "shakespeare", "text": "To be", "layer": 0, "head": 0, "top": 5, "temperature": 1},
/// of which the first two fields must be there. Throws Error, with the name of the field, for a body that is no such
/// object, a field of another type, an unknown field, and a number out of range; what depends on the model, and that
/// the text is not empty and the temperature not 0, look_inside() checks.
InsideRequest parse_inside_request(std::string_view body);

/// What look_inside() showed, as one line of JSON with the fields of the route; numbers read back to the same float32,
/// and bytes that are not UTF-8 are replaced. Of vectors of width C, the first 16 numbers. Requires: `inside` is of
/// this model and these options.
std::string inside_json(const InsideRequest& request, const LoadedModel& loaded, const InsideModel& inside);

}  // namespace maki
