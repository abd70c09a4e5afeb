#include "autograd/kernels/target.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <fmt/ranges.h>
#include <hwy/highway.h>

#include "autograd/core/check.h"

namespace maki::kernels {
namespace {

constexpr std::int64_t kFloor = HWY_SCALAR | HWY_EMU128;  // whichever of the two the compiler can build

std::string name_of(std::int64_t bit) {
  std::string name = (bit & kFloor) != 0 ? "floor" : hwy::TargetName(bit);
  std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

/// What this CPU can run of what was built, as a mask. In Highway's masks a lower bit is a better target.
std::int64_t available_mask() {
  static const std::int64_t mask = [] {
    hwy::SetSupportedTargetsForTest(0);
    return (hwy::SupportedTargets() & HWY_TARGETS) | (HWY_TARGETS & kFloor);
  }();
  return mask;
}

/// From the target called `name` downwards; 0 where there is none of that name.
std::int64_t mask_from(std::string_view name) {
  const std::int64_t all = available_mask();
  for (std::int64_t rest = all; rest != 0; rest &= rest - 1) {
    const std::int64_t best = rest & -rest;
    if (name_of(best) == name) return rest;
  }
  return 0;
}

std::string& environment() {
  static std::string value = [] {
    const char* text = std::getenv("MAKI_TARGET");
    return std::string(text != nullptr ? text : "");
  }();
  return value;
}

/// Applies MAKI_TARGET before main(). A bad value cannot throw here: target() and require_target() say it.
bool apply_environment() {
  const std::int64_t mask = environment().empty() ? available_mask() : mask_from(environment());
  hwy::SetSupportedTargetsForTest(mask != 0 ? mask : available_mask());
  return mask != 0;
}

bool environment_is_good = apply_environment();

void check_known(bool known, std::string_view what, std::string_view name) {
  check(known, "{}: must be one of avx3, avx2, sse4, floor, and this CPU has {}; got \"{}\"", what,
        fmt::join(available_targets(), ", "), name);
}

}  // namespace

void require_target() {
  if (!environment_is_good) [[unlikely]]
    check_known(false, "MAKI_TARGET", environment());
}

std::string target() {
  require_target();
  const std::int64_t usable = hwy::SupportedTargets() & available_mask();
  return name_of(usable & -usable);
}

std::vector<std::string> available_targets() {
  std::vector<std::string> names;
  for (std::int64_t rest = available_mask(); rest != 0; rest &= rest - 1) names.push_back(name_of(rest & -rest));
  return names;
}

void force_target(std::string_view name) {
  if (name.empty()) {
    environment_is_good = apply_environment();
    return;
  }
  const std::int64_t mask = mask_from(name);
  check_known(mask != 0, "force_target", name);
  hwy::SetSupportedTargetsForTest(mask);
}

}  // namespace maki::kernels
