#include "tests/fuzz/foreign_models.h"

#include "train/run/config/models.h"

namespace maki::fuzz {

void load_model(const ForeignModel& model) {
  Config config = model.config;
  config.task = "next_token";
  ParameterStore store;
  const std::unique_ptr<Model> network = make_model(config, {model.vocab_size}, Scope(store));
  check_weights(model.stored, model.names, model.rules, store);
  store.seal_uninitialized();
  load_weights(model.stored, model.names, model.rules, store);
}

}  // namespace maki::fuzz
