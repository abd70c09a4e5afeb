#include "autograd/kernels/simd/target.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/ranges.h>
#include <hwy/detect_targets.h>
#include <iterator>
#include <utility>

#include "autograd/core/check.h"
#include "autograd/kernels/gemm/amx.h"

namespace maki::kernels {
namespace {

constexpr std::string_view kAmxName = "amx";

struct Target {
  std::string_view name;
  bool is_built;
  bool (*runs)();  // whether this CPU, and the system, can run it
};

// What Highway compiles these targets with. A CPU with AVX2, FMA and BMI2 has F16C, which clang cannot ask for.
#if HWY_ARCH_X86_64
bool has_sse4() {
  return __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
         __builtin_cpu_supports("aes");
}
bool has_avx2() {
  return has_sse4() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
bool has_avx3() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#else
bool has_sse4() { return false; }
bool has_avx2() { return false; }
bool has_avx3() { return false; }
#endif

// Best first, in the order of the tables of MAKI_TARGETS. The last is what every CPU of an architecture has: on ARM64
// NEON, elsewhere no SIMD, in whichever of two forms the compiler can build.
constexpr Target kTargets[] = {
    {"avx3", (HWY_TARGETS & HWY_AVX3) != 0, has_avx3},
    {"avx2", (HWY_TARGETS & HWY_AVX2) != 0, has_avx2},
    {"sse4", (HWY_TARGETS & HWY_SSE4) != 0, has_sse4},
    {HWY_ARCH_ARM_A64 ? "neon" : "floor", HWY_ARCH_ARM_A64 || (HWY_TARGETS & (HWY_SCALAR | HWY_EMU128)) != 0,
     [] { return true; }},
};

bool is_available(const Target& row) { return row.is_built && row.runs(); }

bool has_amx() { return is_available(kTargets[0]) && amx::available(); }

std::size_t place_in_use = 0;
bool amx_in_use = false;

std::string& environment() {
  static std::string value = [] {
    const char* text = std::getenv("MAKI_TARGET");
    return std::string(text != nullptr ? text : "");
  }();
  return value;
}

/// The target called `name`, of those that can be used; nullptr if there is none.
const Target* find(std::string_view name) {
  if (name == kAmxName) return has_amx() ? &kTargets[0] : nullptr;
  const auto row = std::ranges::find(kTargets, name, &Target::name);
  return row != std::end(kTargets) && is_available(*row) ? row : nullptr;
}

bool has_any() { return std::ranges::any_of(kTargets, is_available); }

/// Selects the target called `name`, or the best one if no target has that name. Returns whether one has.
bool apply(std::string_view name) {
  const Target* const wanted = find(name);
  const Target* const best = has_any() ? std::ranges::find_if(kTargets, is_available)
                                       : std::ranges::find_if(kTargets, &Target::is_built);  // which nothing may run
  place_in_use = static_cast<std::size_t>((wanted != nullptr ? wanted : best) - std::begin(kTargets));
  amx_in_use = wanted == nullptr ? has_amx() : name == kAmxName;
  return wanted != nullptr;
}

/// Applies MAKI_TARGET and returns whether it is valid and this CPU has a target. It must not throw, because it runs
/// before main(): target() and require_target() report an invalid value.
bool apply_environment() { return (apply(environment()) || environment().empty()) && has_any(); }

/// Applies MAKI_TARGET before main() and before the static initializers of the program, which may use the library:
/// priority 101 is the earliest that a program may use.
struct AtStart {
  AtStart() {
#if HWY_ARCH_X86_64
    __builtin_cpu_init();
#endif
    is_good = apply_environment();
  }
  bool is_good;
};
__attribute__((init_priority(101))) AtStart at_start;

[[noreturn]] void fail_unknown(std::string_view what, std::string_view name) {
  fail("{}: must be one of {}, and this CPU and build have only {}; got \"{}\"", what,
       HWY_ARCH_ARM_A64 ? "neon" : "amx, avx3, avx2, sse4, floor", fmt::join(available_targets(), ", "), name);
}

[[noreturn]] void fail_at_start() {
  check(has_any(),
        "this program was built for CPUs with {}, which this one lacks; build it on this machine, or without "
        "MAKI_HOST_ONLY",
        kTargets[place_in_use].name);
  fail_unknown("MAKI_TARGET", environment());
}

}  // namespace

void require_target() {
  if (!at_start.is_good) [[unlikely]]
    fail_at_start();
}

std::size_t target_place() { return place_in_use; }

std::string target() {
  require_target();
  return std::string(amx_in_use ? kAmxName : kTargets[place_in_use].name);
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
  for (const Target& row : kTargets) {
    if (is_available(row)) names.emplace_back(row.name);
  }
  return names;
}

void force_target(std::string_view name) {
  if (name.empty()) {
    at_start.is_good = apply_environment();
    return;
  }
  if (find(name) == nullptr) fail_unknown("force_target", name);
  apply(name);
}

}  // namespace maki::kernels
