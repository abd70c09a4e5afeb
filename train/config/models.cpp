#include "train/config/models.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "autograd/core/check.h"
#include "nn/models/linear.h"

namespace maki {
namespace {

struct ModelKind {
  const char* name;
  std::unique_ptr<Model> (*make)(const Config& config, std::int64_t vocab_size, const Scope& scope);
};

constexpr ModelKind kKinds[] = {
    {"gpt",
     [](const Config& config, std::int64_t vocab_size, const Scope& scope) -> std::unique_ptr<Model> {
       return std::make_unique<GptModel>(scope, gpt_config(config, vocab_size));
     }},
    {"linear",
     [](const Config& config, std::int64_t vocab_size, const Scope& scope) -> std::unique_ptr<Model> {
       const LinearConfig linear{gpt_config(config, vocab_size), parse_attention(attention_of(config))};
       return std::make_unique<LinearModel>(scope, linear);
     }},
};

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const ModelKind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

std::unique_ptr<Model> make_model(const Config& config, std::int64_t vocab_size, const Scope& scope) {
  const auto* const kind = std::ranges::find(kKinds, config.model, &ModelKind::name);
  check(kind != std::end(kKinds), "model: must be one of {}; got {}", fmt::join(model_names(), ", "), config.model);
  return kind->make(config, vocab_size, scope);
}

std::string attention_of(const Config& config) {
  if (!config.attention.empty()) return config.attention;
  return config.model == "linear" ? "elu" : "softmax";
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
          .position_base = c.position_base};
}

}  // namespace maki
