#include "train/run/trainable_model.h"

#include "train/run/config/configured_optimizer.h"
#include "train/run/config/models.h"

namespace maki {

TrainableModel::TrainableModel(const Config& config, const MakeModel& make)
    : store(config.dtype),
      model(make(Scope(store))),
      optimizer(make_optimizer(config, store)),
      carried(*model, config.grad_accum, config.batch_size) {
  store.assign_offsets();
}

TrainableModel::TrainableModel(const Config& config, const VocabSizes& vocab)
    : TrainableModel(config, [&](const Scope& scope) { return make_model(config, vocab, scope); }) {}

}  // namespace maki
