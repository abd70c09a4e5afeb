#include "autograd/kernels/simd/target.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <fmt/ranges.h>
#include <hwy/highway.h>
#include <iterator>
#include <utility>

#include "autograd/core/check.h"
#include "autograd/kernels/gemm/amx.h"

namespace maki::kernels {
namespace {

// The target without SIMD: whichever of the two the compiler can build.
constexpr std::int64_t kFloorTarget = HWY_SCALAR | HWY_EMU128;

constexpr std::string_view kAmxName = "amx";

std::string name_of(std::int64_t bit) {
  if (HWY_ARCH_ARM_A64) return "neon";  // newer versions of Highway tell CPUs with AES from those without
  std::string name = (bit & kFloorTarget) != 0 ? "floor" : hwy::TargetName(bit);
  std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

/// The targets that were built and that this CPU can run, as a mask. In Highway's masks a lower bit is a better target.
std::int64_t available_mask() {
  // Every ARM64 CPU has NEON, but Highway 1.0.3 asks for AES as well, which a Raspberry Pi 4 lacks and no kernel uses.
  if (HWY_ARCH_ARM_A64) return HWY_TARGETS;
  static const std::int64_t mask = [] {
    hwy::SetSupportedTargetsForTest(0);
    return (hwy::SupportedTargets() & HWY_TARGETS) | (HWY_TARGETS & kFloorTarget);
  }();
  return mask;
}

bool has_amx() {
#if HWY_ARCH_X86_64
  return (available_mask() & (HWY_AVX3 | (HWY_AVX3 - 1))) != 0 && amx::available();
#else
  return false;
#endif
}

bool amx_in_use = false;

/// The mask of the target called `name` and of all targets below it; 0 if no target has that name.
std::int64_t mask_from(std::string_view name) {
  const std::int64_t all = available_mask();
  if (name == kAmxName && has_amx()) return all;
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

/// Selects the target called `name`, or the best one if no target has that name. Returns whether one has.
bool apply(std::string_view name) {
  const std::int64_t mask = mask_from(name);
  hwy::SetSupportedTargetsForTest(mask != 0 ? mask : available_mask());
  amx_in_use = mask == 0 ? has_amx() : name == kAmxName;
  return mask != 0;
}

/// Applies MAKI_TARGET and returns whether it is valid and this CPU has a target. It must not throw, because it runs
/// before main(): target() and require_target() report an invalid value.
bool apply_environment() { return (apply(environment()) || environment().empty()) && available_mask() != 0; }

/// Applies MAKI_TARGET before main() and before the static initializers of the program, which may use the library:
/// priority 101 is the earliest that a program may use.
struct AtStart {
  bool is_good = apply_environment();
};
__attribute__((init_priority(101))) AtStart at_start;

[[noreturn]] void fail_unknown(std::string_view what, std::string_view name) {
  fail("{}: must be one of {}, and this CPU and build have only {}; got \"{}\"", what,
       HWY_ARCH_ARM_A64 ? "neon" : "amx, avx3, avx2, sse4, floor", fmt::join(available_targets(), ", "), name);
}

[[noreturn]] void fail_at_start() {
  check(available_mask() != 0,
        "this program was built for CPUs with {}, which this one lacks; build it on this machine, or without "
        "MAKI_HOST_ONLY",
        name_of(HWY_TARGETS & -HWY_TARGETS));
  fail_unknown("MAKI_TARGET", environment());
}

}  // namespace

void require_target() {
  if (!at_start.is_good) [[unlikely]]
    fail_at_start();
}

std::string target() {
  require_target();
  if (amx_in_use) return std::string(kAmxName);
  const std::int64_t usable = hwy::SupportedTargets() & available_mask();
  return name_of(usable & -usable);
}

std::string_view arithmetic_of(std::string_view target) {
  constexpr std::pair<std::string_view, std::string_view> kArithmetic[] = {{kAmxName, "amx"},   {"avx3", "fused"},
                                                                           {"avx2", "fused"},   {"neon", "fused"},
                                                                           {"sse4", "unfused"}, {"floor", "unfused"}};
  const auto row = std::ranges::find(kArithmetic, target, &std::pair<std::string_view, std::string_view>::first);
  return row == std::end(kArithmetic) ? std::string_view() : row->second;
}

bool uses_amx() { return amx_in_use; }

std::vector<std::string> available_targets() {
  std::vector<std::string> names;
  if (has_amx()) names.emplace_back(kAmxName);
  for (std::int64_t rest = available_mask(); rest != 0; rest &= rest - 1) names.push_back(name_of(rest & -rest));
  return names;
}

void force_target(std::string_view name) {
  if (name.empty()) {
    at_start.is_good = apply_environment();
    return;
  }
  if (mask_from(name) == 0) fail_unknown("force_target", name);
  apply(name);
}

}  // namespace maki::kernels
