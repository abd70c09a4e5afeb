#include "train/run/config/models.h"

#include <algorithm>
#include <span>

#include "autograd/core/table.h"
#include "nn/models/linear.h"
#include "optim/muon.h"
#include "train/run/config/trained_parameters.h"

namespace maki {
namespace {

struct ModelKind {
  const char* name;
  std::span<const char* const> tasks;              // the first is the default
  const char *norm_order, *positions, *attention;  // the defaults
  bool carries_state;                              // from one batch to the next, if it has a memory
  std::unique_ptr<Model> (*make)(const Config& config, const VocabSizes& vocab, const Scope& scope);
};

constexpr const char *kWritesText[] = {"next_token"}, *kTranslates[] = {"translate"},
                     *kReadsText[] = {"masked", "classify"};

constexpr ModelKind kModelKinds[] = {
    {"gpt", kWritesText, "pre", "learned", "softmax", false,
     [](const Config& config, const VocabSizes& vocab, const Scope& scope) -> std::unique_ptr<Model> {
       return std::make_unique<GptModel>(scope, gpt_config(config, vocab.target));
     }},
    {"seq2seq", kTranslates, "post", "sinusoidal", "softmax", false,
     [](const Config& config, const VocabSizes& vocab, const Scope& scope) -> std::unique_ptr<Model> {
       return std::make_unique<Seq2SeqModel>(scope, seq2seq_config(config, vocab));
     }},
    {"linear", kWritesText, "pre", "learned", "elu", false,
     [](const Config& config, const VocabSizes& vocab, const Scope& scope) -> std::unique_ptr<Model> {
       const LinearConfig linear{gpt_config(config, vocab.target), parse_attention(config.attention)};
       return std::make_unique<LinearModel>(scope, linear);
     }},
    {"encoder", kReadsText, "pre", "learned", "softmax", false,
     [](const Config& config, const VocabSizes& vocab, const Scope& scope) -> std::unique_ptr<Model> {
       return std::make_unique<EncoderModel>(scope, encoder_config(config, vocab));
     }},
    {"transformer-xl", kWritesText, "pre", "sinusoidal", "softmax", true,
     [](const Config& config, const VocabSizes& vocab, const Scope& scope) -> std::unique_ptr<Model> {
       return std::make_unique<TransformerXlModel>(scope, transformer_xl_config(config, vocab.target));
     }},
};

constexpr Table kModels("model", kModelKinds);

NgramOptions ngram_options(const Config& c) {
  return {.orders = ngram_orders_named(c.ngram_orders), .rows = c.ngram_rows, .dropout = c.ngram_dropout};
}

}  // namespace

std::vector<std::string> model_names() { return kModels.names(); }

std::vector<std::string> tasks_of_model(const std::string& model) {
  const ModelKind& kind = kModels.row(model);
  return {kind.tasks.begin(), kind.tasks.end()};
}

void fill_open_fields(Config& config) {
  const ModelKind& kind = kModels.row(config.model);
  const auto fill = [](std::string& field, const char* value) {
    if (field.empty()) field = value;
  };
  fill(config.task, kind.tasks.front());
  fill(config.norm_order, kind.norm_order);
  fill(config.positions, kind.positions);
  fill(config.attention, kind.attention);
  if (config.momentum < 0) config.momentum = config.optimizer == "muon" ? MuonOptions().momentum : 0;
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

Seq2SeqConfig seq2seq_config(const Config& c, const VocabSizes& vocab) {
  return {.n_layer = c.n_layer,
          .n_head = c.n_head,
          .n_embd = c.n_embd,
          .source_vocab_size = c.share_vocabulary ? vocab.target : vocab.source,
          .vocab_size = vocab.target,
          .shared_embeddings = c.share_vocabulary,
          .tie_weights = c.tie_weights,
          .block_size = c.block_size,
          .dropout = c.dropout,
          .bias = c.bias,
          .activation = activation_named(c.activation),
          .norm_order = norm_order_named(c.norm_order),
          .norm = norm_kind_named(c.norm),
          .positions = positions_named(c.positions),
          .position_base = c.position_base,
          .ngram = ngram_options(c)};
}

EncoderConfig encoder_config(const Config& c, const VocabSizes& vocab) {
  return {.n_layer = c.n_layer,
          .n_head = c.n_head,
          .n_embd = c.n_embd,
          .block_size = c.block_size,
          .vocab_size = vocab.target,
          .classes = vocab.classes,
          .dropout = c.dropout,
          .bias = c.bias,
          .tie_weights = c.tie_weights,
          .activation = activation_named(c.activation),
          .norm_order = norm_order_named(c.norm_order),
          .norm = norm_kind_named(c.norm),
          .positions = positions_named(c.positions),
          .position_base = c.position_base,
          .ngram = ngram_options(c),
          .recompute_blocks = c.recompute_blocks};
}

TransformerXlConfig transformer_xl_config(const Config& c, std::int64_t vocab_size) {
  return {.n_layer = c.n_layer,
          .n_head = c.n_head,
          .n_embd = c.n_embd,
          .vocab_size = vocab_size,
          .block_size = c.block_size,
          .memory = c.memory,
          .dropout = c.dropout,
          .bias = c.bias,
          .tie_weights = c.tie_weights,
          .activation = activation_named(c.activation),
          .norm_order = norm_order_named(c.norm_order),
          .norm = norm_kind_named(c.norm),
          .position_base = c.position_base,
          .ngram = ngram_options(c),
          .ngram_prior = c.ngram_prior};
}

GptConfig gpt_config(const Config& c, std::int64_t vocab_size) {
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
          .ngram = ngram_options(c),
          .extras = {.qk_norm = c.qk_norm,
                     .zero_projections = c.zero_projections,
                     .conv_width = c.conv_width,
                     .input_skip = c.input_skip,
                     .value_residual = c.value_residual,
                     .branch_scales = c.branch_scales},
          .logit_cap = c.logit_cap,
          .ffn_width = c.ffn_width,
          .norm_epsilon = c.norm_epsilon,
          .ngram_prior = c.ngram_prior,
          .recompute_blocks = c.recompute_blocks,
          .n_kv_head = c.n_kv_head};
}

}  // namespace maki
