#include "train/run/config/models.h"

#include <algorithm>

#include "autograd/core/table.h"
#include "nn/models/encoder.h"
#include "nn/models/linear.h"
#include "nn/models/seq2seq.h"
#include "nn/models/transformer_xl.h"
#include "optim/make_optimizer.h"
#include "train/run/config/field_effects.h"
#include "train/run/config/trained_parameters.h"

namespace maki {
namespace {

struct ModelKind {
  const char* name;
  Ability ability;       // whose tasks it learns
  NormOrder norm_order;  // the defaults
  Positions positions;
  const char* attention;
  bool carries_state;  // from one batch to the next, if it has a memory
  // The vocab_size of the configuration is vocab.target.
  std::unique_ptr<Model> (*make)(const Config& config, const VocabSizes& vocab, const Scope& scope);
  bool is_planned = false;
};

constexpr ModelKind kModelKinds[] = {
    {"gpt", Ability::writes_text, NormOrder::pre, Positions::learned, "softmax", false,
     [](const Config& config, const VocabSizes&, const Scope& scope) -> std::unique_ptr<Model> {
       return std::make_unique<GptModel>(scope, config);
     },
     /*is_planned=*/true},
    {"seq2seq", Ability::translates, NormOrder::post, Positions::sinusoidal, "softmax", false,
     [](const Config& config, const VocabSizes& vocab, const Scope& scope) -> std::unique_ptr<Model> {
       const Seq2SeqConfig seq2seq{config, config.share_vocabulary ? vocab.target : vocab.source,
                                   config.share_vocabulary};
       return std::make_unique<Seq2SeqModel>(scope, seq2seq);
     }},
    {"linear", Ability::writes_text, NormOrder::pre, Positions::learned, "elu", false,
     [](const Config& config, const VocabSizes&, const Scope& scope) -> std::unique_ptr<Model> {
       return std::make_unique<LinearModel>(scope, LinearConfig{config, parse_attention(config.attention)});
     },
     /*is_planned=*/true},
    {"encoder", Ability::reads_text, NormOrder::pre, Positions::learned, "softmax", false,
     [](const Config& config, const VocabSizes& vocab, const Scope& scope) -> std::unique_ptr<Model> {
       return std::make_unique<EncoderModel>(scope, EncoderConfig{config, vocab.classes});
     }},
    {"transformer-xl", Ability::writes_text, NormOrder::pre, Positions::sinusoidal, "softmax", true,
     [](const Config& config, const VocabSizes&, const Scope& scope) -> std::unique_ptr<Model> {
       return std::make_unique<TransformerXlModel>(scope, TransformerXlConfig{config, config.memory});
     }},
};

constexpr Table kModels("model", kModelKinds);

}  // namespace

std::vector<std::string> model_names() { return kModels.names(); }

std::vector<std::string> tasks_of_model(const std::string& model) {
  return tasks_where([&kind = kModels.row(model)](const TaskRule& task) { return task.needs == kind.ability; });
}

std::vector<std::string> planned_models() {
  std::vector<std::string> names;
  for (const ModelKind& kind : kModelKinds) {
    if (kind.is_planned) names.emplace_back(kind.name);
  }
  return names;
}

void leave_open(Config& config) {
  config.open = {"task", "norm_order", "positions", "attention", "memory", "momentum"};
}

void fill_open_fields(Config& config) {
  const ModelKind& kind = kModels.row(config.model);
  const auto fill = [&](const char* name, auto& field, const auto& value) {
    if (config.open.erase(name) > 0) field = value;
  };
  fill("task", config.task, tasks_of_model(config.model).front());
  fill("norm_order", config.norm_order, kind.norm_order);
  fill("positions", config.positions, kind.positions);
  fill("attention", config.attention, kind.attention);
  fill("memory", config.memory, kind.carries_state ? config.block_size : 0);
  fill("momentum", config.momentum, optimizer_kind(config.optimizer).momentum.value_or(0));
}

std::unique_ptr<Model> make_model(const Config& config, const VocabSizes& vocab, const Scope& scope) {
  const AdapterChoice adapters(config);
  Config sized = config;
  sized.vocab_size = vocab.target;
  std::unique_ptr<Model> model =
      kModels.row(config.model).make(sized, vocab, adapters.any() ? scope.with_adapters(adapters.options()) : scope);
  adapters.require_matches();
  freeze_parameters(config, scope.store());
  model->precision = config.precision;
  return model;
}

bool carries_state(const Config& config) { return kModels.row(config.model).carries_state && config.memory > 0; }

}  // namespace maki
