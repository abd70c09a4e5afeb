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

TransformerConfig transformer_config(const Config& c, std::int64_t vocab_size) {
  return {.n_layer = c.n_layer,
          .n_head = c.n_head,
          .n_embd = c.n_embd,
          .block_size = c.block_size,
          .vocab_size = vocab_size,
          .dropout = c.dropout,
          .bias = c.bias,
          .tie_weights = c.tie_weights,
          .activation = activation_named(c.activation),
          .norm_order = norm_order_named(c.norm_order),
          .norm = norm_kind_named(c.norm),
          .positions = positions_named(c.positions),
          .position_base = c.position_base,
          .ngram = {.orders = ngram_orders_named(c.ngram_orders), .rows = c.ngram_rows, .dropout = c.ngram_dropout},
          .qk_norm = c.qk_norm,
          .zero_projections = c.zero_projections,
          .conv_width = c.conv_width,
          .ffn_width = c.ffn_width,
          .norm_epsilon = c.norm_epsilon,
          .ngram_prior = c.ngram_prior,
          .recompute_blocks = c.recompute_blocks,
          .n_kv_head = c.n_kv_head};
}

struct ModelKind {
  const char* name;
  Ability ability;                                 // whose tasks it learns
  const char *norm_order, *positions, *attention;  // the defaults
  bool carries_state;                              // from one batch to the next, if it has a memory
  std::unique_ptr<Model> (*make)(const Config& config, const VocabSizes& vocab, const Scope& scope);
  bool is_planned = false;
};

constexpr ModelKind kModelKinds[] = {
    {"gpt", Ability::writes_text, "pre", "learned", "softmax", false,
     [](const Config& config, const VocabSizes& vocab, const Scope& scope) -> std::unique_ptr<Model> {
       return std::make_unique<GptModel>(scope, transformer_config(config, vocab.target));
     },
     /*is_planned=*/true},
    {"seq2seq", Ability::translates, "post", "sinusoidal", "softmax", false,
     [](const Config& config, const VocabSizes& vocab, const Scope& scope) -> std::unique_ptr<Model> {
       const Seq2SeqConfig seq2seq{transformer_config(config, vocab.target),
                                   config.share_vocabulary ? vocab.target : vocab.source, config.share_vocabulary};
       return std::make_unique<Seq2SeqModel>(scope, seq2seq);
     }},
    {"linear", Ability::writes_text, "pre", "learned", "elu", false,
     [](const Config& config, const VocabSizes& vocab, const Scope& scope) -> std::unique_ptr<Model> {
       const LinearConfig linear{transformer_config(config, vocab.target), parse_attention(config.attention)};
       return std::make_unique<LinearModel>(scope, linear);
     },
     /*is_planned=*/true},
    {"encoder", Ability::reads_text, "pre", "learned", "softmax", false,
     [](const Config& config, const VocabSizes& vocab, const Scope& scope) -> std::unique_ptr<Model> {
       const EncoderConfig encoder{transformer_config(config, vocab.target), vocab.classes};
       return std::make_unique<EncoderModel>(scope, encoder);
     }},
    {"transformer-xl", Ability::writes_text, "pre", "sinusoidal", "softmax", true,
     [](const Config& config, const VocabSizes& vocab, const Scope& scope) -> std::unique_ptr<Model> {
       const TransformerXlConfig xl{transformer_config(config, vocab.target), config.memory};
       return std::make_unique<TransformerXlModel>(scope, xl);
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

void fill_open_fields(Config& config) {
  const ModelKind& kind = kModels.row(config.model);
  const auto fill = [](std::string& field, const char* value) {
    if (field.empty()) field = value;
  };
  fill(config.task, tasks_of_model(config.model).front().c_str());
  fill(config.norm_order, kind.norm_order);
  fill(config.positions, kind.positions);
  fill(config.attention, kind.attention);
  if (config.momentum < 0) config.momentum = optimizer_kind(config.optimizer).momentum.value_or(0);
  if (config.memory < 0) config.memory = kind.carries_state ? config.block_size : 0;
}

std::unique_ptr<Model> make_model(const Config& config, const VocabSizes& vocab, const Scope& scope) {
  const AdapterChoice adapters(config);
  std::unique_ptr<Model> model =
      kModels.row(config.model).make(config, vocab, adapters.any() ? scope.with_adapters(adapters.options()) : scope);
  adapters.require_matches();
  freeze_parameters(config, scope.store());
  model->precision = precision_named(config.precision);
  return model;
}

bool carries_state(const Config& config) { return kModels.row(config.model).carries_state && config.memory > 0; }

}  // namespace maki
