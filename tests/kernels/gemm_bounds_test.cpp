// GEMM reads and writes nothing beyond its arrays: each ends where the process may not read.
#include <sys/mman.h>
#include <unistd.h>

#include "tests/kernels/gemm_case.h"

namespace maki::kernels {
namespace {

/// `count` numbers, after the last of which there is no memory.
template <class T>
class AtTheEnd {
 public:
  AtTheEnd(std::int64_t count, std::uint64_t seed) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)),
               bytes = static_cast<std::size_t>(count) * sizeof(T);
    const std::size_t used = (bytes + page - 1) / page * page;
    size_ = used + page;
    memory_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory_ != MAP_FAILED);
    auto* const begin = static_cast<std::byte*>(memory_);
    REQUIRE(::mprotect(begin + used, page, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(begin + used - bytes);
    std::ranges::copy(numbers<T>(count, seed), data_);
  }
  ~AtTheEnd() { ::munmap(memory_, size_); }
  AtTheEnd(const AtTheEnd&) = delete;
  AtTheEnd& operator=(const AtTheEnd&) = delete;
  T* data() const { return data_; }

 private:
  std::size_t size_ = 0;
  void* memory_ = nullptr;
  T* data_ = nullptr;
};

template <class T>
void multiply_at_the_end(std::int64_t m, std::int64_t n, std::int64_t k) {
  const AtTheEnd<T> a(m * k, 1), b(k * n, 2), bias(n, 3), c(m * n, 4);
  for (int i = 0; i < 32; ++i) {
    const Variant v = variant(i);
    Gemm<T> g{.m = m, .n = n, .k = k, .a = a.data(), .lda = v.a_transposed ? m : k, .a_transposed = v.a_transposed};
    g.b = b.data();
    g.ldb = v.b_transposed ? k : n;
    g.b_transposed = v.b_transposed;
    g.c = c.data();
    g.ldc = n;
    g.beta = v.beta;
    if (v.with_bias) g.bias = bias.data();
    if (std::is_same_v<T, float> && v.packed) g.rounds_operands = true;
    INFO(m << ", " << n << ", " << k << ", variant " << i);
    run(g);
  }
}

}  // namespace

TEST_CASE("gemm: reads and writes nothing beyond its arrays") {
  on_every_target_with_amx([] {
    for (const int team : {1, 2}) {
      const ThreadsScope threads(team);
      for (const std::int64_t size : {1, 5, 15, 17, 33, 47, 65}) {
        multiply_at_the_end<float>(size, 70 - size, 40 + size);
        multiply_at_the_end<double>(70 - size, size, 20 + size);
      }
      // Whole tiles, which no buffer keeps from what follows C.
      for (const std::int64_t size : {16, 32, 48}) {
        multiply_at_the_end<float>(size, 64 - size, 32 + size);
        multiply_at_the_end<double>(size, 64 - size, size);
      }
      multiply_at_the_end<float>(131, 77, 530);
      multiply_at_the_end<float>(530, 131, 77);
    }
  });
}

}  // namespace maki::kernels
