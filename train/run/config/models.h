// The kinds of models that can be trained: the values of the training field `model`. Adding one touches its own file
// and the table in models.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/model.h"
#include "nn/scope.h"
#include "train/run/config/config.h"
#include "train/run/config/tasks.h"

namespace maki {

std::vector<std::string> model_names();
/// The tasks that a kind of model can learn, of which the first is the default. Throws Error for an unknown kind.
std::vector<std::string> tasks_of_model(const std::string& model);

/// The models of which plans choose the parts (train/loop/plan).
std::vector<std::string> planned_models();

/// The model that a configuration describes, with vocabularies of these sizes; its parameters, and those of adapters,
/// are created below `scope`, and those that are not trained are frozen (train/run/config/trained_parameters.h). Throws
/// Error if the configuration is not valid for this kind of model, and what trained_parameters.h says; parameters may
/// have been created by then.
std::unique_ptr<Model> make_model(const Config& config, const VocabSizes& vocab, const Scope& scope);
/// Whether that model carries a state from one batch to the next (Model::make_carried()). Throws Error for an unknown
/// kind. Requires: fill_open_fields().
bool carries_state(const Config& config);

}  // namespace maki
