// Buckets: the parts of a flat gradient that the ranks of a team exchange one after the other. Weights of hidden layers
// are created in the order in which a forward pass uses them, so the backward pass completes their gradients from the
// last to the first, and one bucket is on its way while the next is computed. Each bucket is divided among all ranks,
// so that none of them waits for another's.
#pragma once

#include <cstdint>
#include <vector>

#include "optim/optimizer.h"

namespace maki {

/// The elements of the flat gradient that the backward pass completes one by one, in blocks of kNormBlock elements: the
/// weights after the embeddings, which a forward pass uses first, and before the vectors, of which each layer has some.
/// Empty if they are too few, or if the optimizer updates any parameter as a whole.
FlatRange gradients_of_layers(const Optimizer& optimizer);

/// The buckets of a flat gradient of `trained` elements, in the order of their exchange: those of the `layers` from the
/// last to the first, then the others. Only one if that range is empty, or if the messages to each rank would be short.
std::vector<FlatRange> exchange_buckets(FlatRange layers, std::int64_t trained, std::int64_t bytes_of_one, int ranks);

}  // namespace maki
