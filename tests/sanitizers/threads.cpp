// Two threads that OpenMP orders or, with the argument `race`, that nothing orders: ThreadSanitizer must report the
// second and, told by Archer what OpenMP orders, not the first.
#include <array>
#include <cstdio>
#include <omp.h>
#include <string_view>

int main(int argc, char** argv) {
  const bool races = argc > 1 && std::string_view(argv[1]) == "race";
  std::array<int, 2> written{}, read{};
#pragma omp parallel num_threads(2)
  {
    const auto here = static_cast<std::size_t>(omp_get_thread_num());
    for (int i = 0; i < 1000; ++i) {
      written[here] = i;
      if (!races) {
#pragma omp barrier
      }
      read[here] += written[1 - here];
      if (!races) {
#pragma omp barrier
      }
    }
  }
  std::printf("read %d and %d\n", read[0], read[1]);
}
