#include "train/run/convert/names.h"

#include <fmt/format.h>
#include <string_view>

namespace maki {
namespace {

NamePair pair_of(const NameRule& rule, const std::string& suffix, std::int64_t block, int share) {
  constexpr int kQkv = 3;  // parts of a packed parameter q‖k‖v
  NamePair pair{fmt::format(fmt::runtime(rule.parameter), block) + suffix,
                fmt::format(fmt::runtime(rule.stored != nullptr ? rule.stored : rule.parameter), block) + suffix,
                suffix == ".bias" ? Form::same : rule.form,
                rule.part,
                rule.parts,
                rule.by_token};
  if (rule.parts != kQkv) return pair;
  pair.parts = share + 2;
  pair.part = rule.part == 0 ? 0 : share + rule.part - 1;
  pair.count = rule.part == 0 ? share : 1;
  return pair;
}

}  // namespace

std::vector<NamePair> expand(std::span<const NameRule> rules, std::int64_t n_layer, std::int64_t heads_per_kv_head) {
  std::vector<NamePair> pairs;
  for (const NameRule& rule : rules) {
    const std::string_view name = rule.parameter;
    const std::int64_t blocks = name.find("{}") == std::string_view::npos ? 1 : n_layer;
    const std::vector<std::string> layer = {".weight", ".bias"}, weight = {""};
    for (const std::string& suffix : name.ends_with(".weight") ? weight : layer) {
      for (std::int64_t i = 0; i < blocks; ++i)
        pairs.push_back(pair_of(rule, suffix, i, static_cast<int>(heads_per_kv_head)));
    }
  }
  return pairs;
}

}  // namespace maki
