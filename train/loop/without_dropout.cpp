#include "train/loop/without_dropout.h"

#include <algorithm>

#include "train/run/config/models.h"

namespace maki {

ModelWithoutDropout::ModelWithoutDropout(const LoadedModel& loaded) : store(loaded.store.dtype()) {
  Config config = loaded.state.config;
  config.dropout = config.ngram_dropout = 0;
  model = make_model(config, vocab_sizes(loaded.state), Scope(store));
  if (!loaded.state.ngram_counts.empty()) model->as_generator()->use_prior(loaded.generator().prior());
  store.seal_uninitialized();
  dispatch(store.dtype(),
           [&]<class T>() { std::ranges::copy(loaded.store.values().values<T>(), store.values().data<T>()); });
  store.mark_changed();
}

}  // namespace maki
