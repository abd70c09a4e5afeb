#include "autograd/kernels/simd/target.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/kernels/broadcast.h"
#include "autograd/kernels/column_sum.h"
#include "autograd/kernels/cross_entropy.h"
#include "autograd/kernels/dropout.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/gemm/gemm.h"
#include "autograd/kernels/norm.h"
#include "autograd/kernels/optimizer.h"
#include "autograd/kernels/peak.h"
#include "autograd/kernels/reduce.h"
#include "autograd/kernels/rms_norm.h"
#include "autograd/kernels/rotary.h"
#include "autograd/kernels/short_conv.h"
#include "autograd/kernels/softmax.h"
#include "autograd/kernels/swiglu.h"
#include "tests/catch.h"

namespace maki::kernels {
namespace {

#ifdef MAKI_HOST_ONLY
constexpr bool kHostOnly = true;
#else
constexpr bool kHostOnly = false;
#endif

#if defined(__aarch64__)
constexpr const char *kLast = "neon", *kRule = "must be one of neon, and";
#else
constexpr const char *kLast = "floor", *kRule = "must be one of amx, avx3, avx2, sse4, floor, and";
#endif

TEST_CASE("target: the list ends with the target of every CPU, and each target in it can be forced", "[target]") {
  const std::vector<std::string> names = available_targets();
  REQUIRE_FALSE(names.empty());
  if (!kHostOnly) REQUIRE(names.back() == kLast);
  std::cout << "targets:";
  for (const std::string& name : names) {
    force_target(name);
    REQUIRE(target() == name);
    REQUIRE(available_targets() == names);
    std::cout << ' ' << name;
  }
  force_target("");
  std::cout << ", in use " << target() << '\n';
  const char* forced = std::getenv("MAKI_TARGET");
  REQUIRE(target() == (forced != nullptr && *forced != 0 ? forced : names.front()));
}

TEST_CASE("target: the arithmetic of each target has a name", "[target]") {
  for (const std::string& name : available_targets()) REQUIRE_FALSE(arithmetic_of(name).empty());
  REQUIRE(arithmetic_of("avx3") == arithmetic_of("avx2"));
  REQUIRE(arithmetic_of("neon") == arithmetic_of("avx2"));
  REQUIRE(arithmetic_of("floor") == arithmetic_of("sse4"));
  REQUIRE(arithmetic_of("sse4") != arithmetic_of("avx2"));
  REQUIRE(arithmetic_of("amx") != arithmetic_of("avx3"));
  REQUIRE(arithmetic_of("avx").empty());
}

TEST_CASE("target: kernels are compiled for these targets and no others, whichever Highway is installed", "[target]") {
  for (const std::string& name : available_targets())
    REQUIRE(std::string(kRule).find(" " + name + ",") != std::string::npos);
}

TEST_CASE("target: an unknown name is rejected and does not change the target", "[target]") {
  const std::string before = target();
  for (const char* name : {"avx", "AVX2", "avx2 ", "best"}) {
    std::string sentence;
    try {
      force_target(name);
    } catch (const Error& error) {
      sentence = error.what();
    }
    REQUIRE(sentence.find(kRule) != std::string::npos);
    REQUIRE(sentence.find(name) != std::string::npos);
    REQUIRE(target() == before);
  }
}

/// Whether body() throws for an invalid MAKI_TARGET.
template <class Body>
bool refuses(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return std::string(error.what()).find("MAKI_TARGET: must be one of") == 0;
  }
  return false;
}

/// Hidden, because it needs an invalid MAKI_TARGET; the next test runs it in a process that has one.
TEMPLATE_TEST_CASE("target: kernels reject an invalid MAKI_TARGET", "[.bad_target]", float, double) {
  using T = TestType;
  std::vector<T> x(64), y(64);
  double scratch[64];
  const Sink<T> into{y.data(), false};
  const RandomStream stream(1, RandomPurpose::test, "target");
  const std::int32_t targets[] = {1, 2};
  CHECK(refuses([&] { unary_forward(UnaryOp::exp, 8, x.data(), y.data()); }));
  CHECK(refuses([&] { unary_backward(UnaryOp::exp, 8, x.data(), x.data(), into); }));
  CHECK(refuses([&] { scale(8, x.data(), T{2}, into); }));
  CHECK(refuses([&] { binary(BinaryOp::add, plan_broadcast({8}, {8}, {8}), x.data(), x.data(), into); }));
  CHECK(refuses([&] { sum(plan_reduction({8}, 1), x.data(), 1, scratch, into); }));
  CHECK(refuses([&] { sum(plan_reduction({4, 2}, 1), x.data(), 1, scratch, into); }));
  CHECK(refuses([&] { sum_of_products(2, 4, x.data(), x.data(), into); }));
  CHECK(refuses([&] { add_gated(2, 4, x.data(), x.data(), x.data(), y.data()); }));
  CHECK(refuses([&] { column_sum(2, 4, x.data(), 4, into); }));
  CHECK(refuses([&] { dropout(8, x.data(), 0.5, stream, into); }));
  CHECK(refuses([&] { sgd_step<T>({}, 8, x.data(), y.data(), nullptr); }));
  CHECK(refuses([&] { adam_step<T>({}, 8, x.data(), y.data(), y.data() + 8, y.data() + 16); }));
  CHECK(refuses([&] { sum_of_squares(8, x.data(), scratch); }));
  CHECK(refuses([&] { softmax_forward(2, 4, x.data(), y.data()); }));
  CHECK(refuses([&] { layer_norm_forward<T>(2, 4, x.data(), nullptr, nullptr, 1e-5, y.data(), y.data() + 8); }));
  CHECK(refuses([&] { rms_norm_forward<T>(2, 4, x.data(), nullptr, 1e-5, y.data(), y.data() + 8); }));
  CHECK(refuses([&] { rms_norm_heads_forward<T>({2, 4, 2, 2}, x.data(), x.data(), 1e-5, y.data(), y.data() + 8); }));
  CHECK(refuses([&] { short_conv_forward<T>({1, 2, 4, 2}, x.data(), nullptr, x.data(), y.data()); }));
  CHECK(refuses([&] { swiglu_forward(2, 4, x.data(), y.data()); }));
  CHECK(refuses([&] { rotary({1, 2, 4, 1, 4}, Turn::forward, x.data(), x.data(), into); }));
  CHECK(refuses([&] { cross_entropy_forward({2, 4, targets, -1, 0}, x.data(), y.data(), scratch); }));
  CHECK(refuses([&] { gemm<T>({.m = 1, .n = 1, .k = 1}, {}); }));
  CHECK(refuses([&] { pack_b<T>({.n = 1, .k = 1, .b = x.data(), .ldb = 1}, y.data()); }));
  CHECK(refuses([&] { fma_flop_per_round<T>(); }));
  CHECK(refuses([&] { run_fma_chains<T>(1); }));
}

#if defined(__linux__)
TEST_CASE("target: no kernel runs on a target other than the one that MAKI_TARGET names", "[target]") {
  const auto run_on = [](const std::string& target) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    return std::system(
        ("MAKI_TARGET=" + target + " " MAKI_EMULATOR " '" + self + "' '[.bad_target]' >/dev/null").c_str());
  };
  REQUIRE(run_on("none") == 0);
  REQUIRE(run_on(available_targets().back()) != 0);
}
#endif

}  // namespace
}  // namespace maki::kernels
