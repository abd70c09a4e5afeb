#include "train/app/arithmetic.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>

#include "autograd/core/check.h"
#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/simd/target.h"
#include "train/app/progress.h"

namespace maki {
namespace {

// What Config::arithmetic leaves out, because most runs have nothing else.
constexpr std::string_view kUsual = "fused";
constexpr std::string_view kBetween = ", ";

// An earlier version recorded only "amx" or "avx3, AVX512_BF16", in Config::target, and its runs may continue anywhere.
// Empty for any other run.
std::string recorded_by_an_earlier_version(const std::string& target) {
  const std::size_t comma = target.find(kBetween);
  if (comma != std::string::npos) return target.substr(comma + kBetween.size());
  const std::string_view arithmetic = kernels::arithmetic_of(target);
  return arithmetic == kUsual ? "" : std::string(arithmetic);
}

// Whether the user has chosen the target, which is then kept.
bool is_target_given() {
  const char* const given = std::getenv("MAKI_TARGET");
  return given != nullptr && *given != '\0';
}

// Each name once, so that the list stays short however often a run changes machines; the newest is the last.
std::string with_newest(const std::string& all, const std::string& newest) {
  std::string names;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find(kBetween, at), all.size());
    const std::string name = all.substr(at, end - at);
    if (name != newest) names += name + std::string(kBetween);
    at = end + kBetween.size();
  }
  return names + newest;
}

}  // namespace

std::string arithmetic_here(Precision precision) {
  const std::string_view instructions = kernels::bf16_instructions();
  if (precision == Precision::bfloat16 && !instructions.empty()) return std::string(instructions);
  return std::string(kernels::arithmetic_of(kernels::target()));
}

std::string arithmetic_text(const Config& config) {
  return config.arithmetic.empty() ? std::string(kUsual) : config.arithmetic;
}

std::string newest_arithmetic(const Config& config) {
  const std::string all = arithmetic_text(config);
  const std::size_t at = all.rfind(kBetween);
  return at == std::string::npos ? all : all.substr(at + kBetween.size());
}

void begin_arithmetic(Config& config) {
  config.arithmetic = arithmetic_here(config.precision);
  if (config.arithmetic == kUsual) config.arithmetic.clear();
}

bool use_arithmetic(std::string_view arithmetic, Precision precision) {
  if (arithmetic_here(precision) == arithmetic) return true;
  if (is_target_given()) return false;
  for (const std::string& target : kernels::available_targets()) {
    kernels::force_target(target);
    if (arithmetic_here(precision) == arithmetic) return true;
  }
  kernels::force_target("");
  return false;
}

void keep_arithmetic(Config& config, const std::string& ran_on, bool any) {
  const std::string here = arithmetic_here(config.precision), all = arithmetic_text(config);
  const std::string earlier = config.arithmetic.empty() ? recorded_by_an_earlier_version(ran_on) : "";
  const std::string before = earlier.empty() ? newest_arithmetic(config) : earlier;
  if (!earlier.empty()) begin_arithmetic(config);
  if (before == here) return;
  if (any || !earlier.empty()) {
    if (earlier.empty()) config.arithmetic = with_newest(all, here);
    return say(
        fmt::format("this run continues in the arithmetic {} instead of {}: its results stay correct but differ in "
                    "the last bits",
                    here, before));
  }
  const std::string best = kernels::target();
  check(use_arithmetic(before, config.precision),
        "arithmetic: the steps of this run were computed in {}, which this machine, with {}, does not have: results "
        "would stay correct but differ in the last bits; to continue in {}, add `any_arithmetic`{}",
        before, is_target_given() ? fmt::format("MAKI_TARGET set to {}", best) : best, here,
        is_target_given() ? "; else unset MAKI_TARGET, and another target is tried" : "");
  say(
      fmt::format("this run continues with {} instead of {}, in the arithmetic of its steps so far; "
                  "--any-arithmetic would take the best",
                  kernels::target(), best));
}

}  // namespace maki
