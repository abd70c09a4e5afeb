// What the models of other programs can express.
#include <fmt/ranges.h>

#include "autograd/core/check.h"
#include "train/run/config/field_effects.h"
#include "train/run/convert/hugging_face.h"

namespace maki {
namespace {

void require(const Config& config, const std::vector<Condition>& list, const std::string& target) {
  for (const Condition& each : list) {
    const std::string value = value_text(config, each.needs);
    check(each.allows(value),
          "export: {} needs {} = {}; the model has {}; `format` safetensors writes any model under maki's own names",
          target, each.needs, fmt::join(each.values, " or "), value);
  }
}

// Both models.
const std::vector<Condition>& common() {
  static const std::vector<Condition> list = {
      {"model", {"gpt"}},         {"task", {"next_token"}}, {"norm_order", {"pre"}}, {"attention", {"softmax"}},
      {"ngram_orders", {"none"}}, {"ngram_prior", {"0"}},   {"qk_norm", {"false"}},  {"conv_width", {"0"}}};
  return list;
}

}  // namespace

void require_gpt2(const Config& config, const std::string& target) {
  require(config, common(), target);
  require(config,
          {{"norm", {"layer"}},
           {"positions", {"learned"}},
           {"n_kv_head", {"0", std::to_string(config.n_head)}},
           {"activation", {"gelu", "gelu_tanh", "relu", "relu_squared", "silu"}}},
          target);
}

void require_llama(const Config& config, const std::string& target) {
  require(config, common(), target);
  require(config, {{"norm", {"rms"}}, {"positions", {"rotary"}}, {"activation", {"swiglu"}}}, target);
}

}  // namespace maki
