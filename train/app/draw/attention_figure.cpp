#include "train/app/draw/attention_figure.h"

#include <fmt/format.h>
#include <limits>

#include "autograd/core/table.h"
#include "data/io/printable.h"

namespace maki {
namespace {

std::vector<std::string> labels_of(const std::vector<std::string>& tokens) {
  std::vector<std::string> labels;
  labels.reserve(tokens.size());
  for (const std::string& token : tokens) labels.push_back(token_label(token));
  return labels;
}

// What the figure says of each kind of attention.
struct KindWords {
  const char* name;
  const char *Words::*title, *Words::*queries;
};
constexpr KindWords kKindWordRows[] = {{"self", &Words::self_attention, &Words::query},
                                       {"encoder", &Words::of_encoder, &Words::query},
                                       {"decoder", &Words::of_decoder, &Words::query},
                                       {"cross", &Words::cross_attention, &Words::query_written}};
constexpr Table kKindWords("kind", kKindWordRows);

HeatMap map_of(const AttentionMaps& maps, std::int64_t layer, std::int64_t head, const Words& words) {
  const std::int64_t queries = std::ssize(maps.queries), keys = std::ssize(maps.keys);
  HeatMap map{.title = fmt::format(fmt::runtime(words.layer_and_head), layer, head),
              .rows = queries,
              .columns = keys,
              .values = {},
              .row_axis = {words.*kKindWords.row(maps.kind).queries, labels_of(maps.queries)},
              .column_axis = {words.key, labels_of(maps.keys)}};
  const double* const weights = attention_weights(maps, layer, head);
  map.values.assign(weights, weights + queries * keys);
  for (std::int64_t t = 0; maps.causal && t < queries; ++t) {
    for (std::int64_t s = t + 1; s < keys; ++s)
      map.values[static_cast<std::size_t>(t * keys + s)] = std::numeric_limits<double>::quiet_NaN();
  }
  return map;
}

}  // namespace

const double* attention_weights(const AttentionMaps& maps, std::int64_t layer, std::int64_t head) {
  const Tensor& all = maps.layers[static_cast<std::size_t>(layer)];
  return all.data<double>() + head * all.shape()[1] * all.shape()[2];
}

HeatMapGrid attention_grid(const LoadedModel& loaded, const AttentionMaps& maps, const ChosenHeads& chosen,
                           const Words& words) {
  HeatMapGrid grid{
      .title = words.attention_weights,
      .source = fmt::format(fmt::runtime(words.step_of_run), escape_unprintable(loaded.path), loaded.state.step),
      .subtitle = std::string(words.*kKindWords.row(maps.kind).title) + (maps.causal ? words.none_to_later : ""),
      .description = {},
      .scale_title = words.weight,
      .columns = std::ssize(chosen.heads),
      .maps = {},
      .scale = {},
      .words = &words};
  if (grid.columns == 1) grid.columns = 4;  // layers beside each other
  std::vector<double> all;
  for (const std::int64_t layer : chosen.layers) {
    for (const std::int64_t head : chosen.heads) {
      grid.maps.push_back(map_of(maps, layer, head, words));
      all.insert(all.end(), grid.maps.back().values.begin(), grid.maps.back().values.end());
    }
  }
  grid.scale = scale_of_weights(all);
  grid.description = fmt::format(fmt::runtime(words.description_of_weights), chosen.layers.size(), chosen.heads.size(),
                                 maps.queries.size(), maps.keys.size());
  return grid;
}

}  // namespace maki
