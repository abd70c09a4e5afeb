#include "train/app/limit_spinning.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <time.h>
#include <unistd.h>
#include <vector>

#include "data/io/os.h"

namespace maki {
namespace {

// Whether a variable says how threads wait, or binds them to cores.
bool is_choice_of_user(std::string_view variable) {
  static constexpr const char* kNames[] = {
      "GOMP_SPINCOUNT=", "KMP_BLOCKTIME=", "OMP_WAIT_POLICY=", "OMP_PROC_BIND=", "OMP_PLACES=", "GOMP_CPU_AFFINITY="};
  return std::ranges::any_of(kNames, [&](const char* name) { return variable.starts_with(name); });
}

#if !defined(__clang__)
// libgomp's own limit is 300,000 pause instructions, 13 ms on a CPU whose pause takes 140 cycles. With other work on
// the machine, speed collapses: at load 6 on two cores the quick start trained on 1,600 tokens per second, and with 43
// µs on 10,000. A thread that sleeps too early costs time as well: on two cores of an Intel Xeon whose pause takes 36
// cycles, a step of the quick start in bfloat16 takes 7.85 ms with a limit of 10 µs, 7.65 with 25 and 7.55 with 30;
// beside a second such run 15.2 ms with 10 µs, 17.9 with 20 and 20.9 with 30.
constexpr std::int64_t kSpinNanoseconds = 20'000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#else
  asm volatile("" ::: "memory");
#endif
}

std::int64_t nanoseconds() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

// How many pauses take kSpinNanoseconds: by the fastest of several measurements, because this thread may be
// interrupted.
std::int64_t spin_count() {
  constexpr std::int64_t kPauses = 64, kMeasurements = 5;  // 1 to 3 µs each: an interrupt rarely meets all
  std::int64_t fastest = kSpinNanoseconds;
  for (std::int64_t i = 0; i < kMeasurements; ++i) {
    const std::int64_t begin = nanoseconds();
    for (std::int64_t n = 0; n < kPauses; ++n) pause();
    fastest = std::min(fastest, nanoseconds() - begin);
  }
  return kSpinNanoseconds * kPauses / std::max<std::int64_t>(1, fastest);
}
#endif

}  // namespace

#if defined(__clang__)
void limit_spinning(char** /*argv*/, char** environment) {
  for (; *environment != nullptr; ++environment) {
    if (is_choice_of_user(*environment)) return;
  }
  // Before version 18, libomp knows milliseconds alone. On macOS it is not the compiler's, and newer.
#if defined(__APPLE__) || __clang_major__ >= 18
  setenv("KMP_BLOCKTIME", "20us", 1);
#else
  setenv("KMP_BLOCKTIME", "0", 1);
#endif
}
#else
void limit_spinning(char** argv, char** environment) {
  std::vector<char*> variables;
  for (; *environment != nullptr; ++environment) {
    if (is_choice_of_user(*environment)) return;
    variables.push_back(*environment);
  }
  constexpr std::string_view kName = "GOMP_SPINCOUNT=";
  std::array<char, 40> assignment = {};
  char* const number = std::copy(kName.begin(), kName.end(), assignment.begin());
  std::to_chars(number, assignment.end() - 1, spin_count());
  variables.insert(variables.end(), {assignment.data(), nullptr});
  // The link's own name would execute the emulator of a program that is emulated.
  const std::string program = os::program();
  execve(program.c_str(), argv, variables.data());
}
#endif

}  // namespace maki
