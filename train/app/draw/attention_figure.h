// Attention weights as heat maps, one for each head.
#pragma once

#include <cstdint>
#include <vector>

#include "train/app/draw/heat_map_grid.h"
#include "train/loop/attention_maps.h"

namespace maki {

/// The layers and heads that are shown, each counted from 0.
struct ChosenHeads {
  std::vector<std::int64_t> layers, heads;
};

/// The weights [T, S] of one head.
const double* attention_weights(const AttentionMaps& maps, std::int64_t layer, std::int64_t head);
/// One row of maps for each layer.
HeatMapGrid attention_grid(const LoadedModel& loaded, const AttentionMaps& maps, const ChosenHeads& chosen,
                           const Words& words);

}  // namespace maki
