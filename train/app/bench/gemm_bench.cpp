#include "train/app/bench/gemm_bench.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/core/philox.h"
#include "autograd/kernels/gemm/plan.h"

namespace maki {
namespace {

// Products with at most this many entries are verified whole, larger ones at this many random entries, which find an
// error in a thousandth of the entries in 98 of 100 cases.
constexpr std::int64_t kVerifiedEntries = 4096;

// Uniform in [-1, 1).
Tensor random_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::test, "gemm");
  Tensor x = empty({rows, cols}, DType::float32);
  float* const data = x.data<float>();
  parallel_ranges(x.numel(), 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      data[i] = static_cast<float>(static_cast<double>(stream.bits(static_cast<std::uint64_t>(i))) * 0x1p-31 - 1);
  });
  return x;
}

// x as bfloat16, to nearest, ties to even. For finite numbers that are not subnormal, as random_matrix() makes them.
float to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000);
}

}  // namespace

std::string GemmShape::transpose() const { return std::string(a_transposed ? "T" : "N") + (b_transposed ? "T" : "N"); }

GemmShape parse_gemm_shape(const std::string& text, const std::string& transpose) {
  check(transpose == "NN" || transpose == "NT" || transpose == "TN" || transpose == "TT",
        "transpose: must be NN, NT, TN or TT; got {}", transpose);
  GemmShape shape{.a_transposed = transpose[0] == 'T', .b_transposed = transpose[1] == 'T'};
  const char *at = text.data(), *const end = at + text.size();
  bool good = true;
  for (std::int64_t* const extent : {&shape.m, &shape.n, &shape.k}) {
    const auto [next, error] = std::from_chars(at, end, *extent);
    good = good && error == std::errc() && *extent >= 1 && *extent <= 1'000'000;
    at = next;
    if (extent != &shape.k) good = good && at != end && *at++ == ',';
    if (!good) break;
  }
  check(good && at == end, "gemm: a product must be M,N,K, three whole numbers from 1 to 1000000; got {}",
        truncate_for_message(text));
  return shape;
}

GemmBench::GemmBench(const GemmShape& s, bool packed, Precision precision)
    : shape_(s),
      a_(random_matrix(s.a_transposed ? s.k : s.m, s.a_transposed ? s.m : s.k, 1)),
      b_(random_matrix(s.b_transposed ? s.n : s.k, s.b_transposed ? s.k : s.n, 2)),
      c_(empty({s.m, s.n}, DType::float32)) {
  gemm_ = {.m = s.m, .n = s.n, .k = s.k, .a = a(), .lda = lda(), .a_transposed = s.a_transposed};
  gemm_.b = b();
  gemm_.ldb = ldb();
  gemm_.b_transposed = s.b_transposed;
  gemm_.c = c();
  gemm_.ldc = s.n;
  gemm_.recorded = true;  // on AMX tiles where training uses them
  gemm_.rounds_operands = precision == Precision::bfloat16;
  if (packed) {
    packed_ = empty({kernels::packed_size(gemm_)}, DType::float32);
    kernels::pack_b(gemm_, packed_.data<float>());
    gemm_.b_packed = packed_.data<float>();
  }
  scratch_bytes_ = kernels::gemm_scratch_bytes(gemm_);
  scratch_ = Storage(scratch_bytes_);
  spoil();
}

void GemmBench::run() { kernels::gemm(gemm_, std::span(scratch_.data(), static_cast<std::size_t>(scratch_bytes_))); }

bool GemmBench::on_tiles() const { return kernels::gemm_kernels(gemm_).tile.is_amx; }

void GemmBench::spoil() { std::ranges::fill(c_.values<float>(), std::numeric_limits<float>::quiet_NaN()); }

void GemmBench::verify(const char* who) const {
  const std::int64_t m = shape_.m, n = shape_.n;
  if (m * n <= kVerifiedEntries) {
    for (std::int64_t i = 0; i < m * n; ++i) verify_entry(who, i / n, i % n);
    return;
  }
  for (const std::int64_t i : {std::int64_t{0}, m - 1}) {
    for (const std::int64_t j : {std::int64_t{0}, n - 1}) verify_entry(who, i, j);
  }
  const RandomStream stream(3, RandomPurpose::test, "gemm samples");
  for (std::uint64_t sample = 0; sample < kVerifiedEntries; ++sample) {
    verify_entry(who, static_cast<std::int64_t>(stream.below(2 * sample, static_cast<std::uint64_t>(m))),
                 static_cast<std::int64_t>(stream.below(2 * sample + 1, static_cast<std::uint64_t>(n))));
  }
}

void GemmBench::verify_entry(const char* who, std::int64_t i, std::int64_t j) const {
  const auto operand = [&](const float* x) { return static_cast<double>(gemm_.rounds_operands ? to_bf16(*x) : *x); };
  double sum = 0, magnitude = 0;
  for (std::int64_t p = 0; p < shape_.k; ++p) {
    const double term = operand(a() + (shape_.a_transposed ? p * lda() + i : i * lda() + p)) *
                        operand(b() + (shape_.b_transposed ? j * ldb() + p : p * ldb() + j));
    sum += term;
    magnitude += std::abs(term);
  }
  // Each of K partial sums, none larger than the magnitude, is rounded; errors of both signs add up like √K, not K.
  const double epsilon = std::numeric_limits<float>::epsilon();
  const double allowed = (4 + std::sqrt(static_cast<double>(shape_.k))) * epsilon * magnitude;
  const auto got = static_cast<double>(c_.data<float>()[i * shape_.n + j]);
  check<std::logic_error>(
      std::abs(got - sum) <= allowed,
      "gemm: {} computed {:.9g} in row {}, column {} of the product {},{},{} {}; the correct value is {:.9g}", who, got,
      i, j, shape_.m, shape_.n, shape_.k, shape_.transpose(), sum);
}

}  // namespace maki
