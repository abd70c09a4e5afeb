#include "autograd/kernels/simd/target.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include "autograd/core/check.h"
#include "tests/catch.h"

namespace maki::kernels {
namespace {

TEST_CASE("target: the list ends with floor, and each target in it can be forced", "[target]") {
  const std::vector<std::string> names = available_targets();
  REQUIRE_FALSE(names.empty());
  REQUIRE(names.back() == "floor");
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
  REQUIRE(target() == (forced != nullptr ? forced : names.front()));
}

#if defined(__x86_64__)
TEST_CASE("target: kernels are compiled for these targets and no others, whichever Highway is installed", "[target]") {
  for (const std::string& name : available_targets()) {
    INFO(name);
    const bool known = name == "amx" || name == "avx3" || name == "avx2" || name == "sse4" || name == "floor";
    REQUIRE(known);
  }
}
#endif

TEST_CASE("target: an unknown name is refused and does not change the target", "[target]") {
  const std::string before = target();
  for (const char* name : {"avx", "AVX2", "avx2 ", "best"}) {
    std::string sentence;
    try {
      force_target(name);
    } catch (const Error& error) {
      sentence = error.what();
    }
    REQUIRE(sentence.find("must be one of amx, avx3, avx2, sse4, floor") != std::string::npos);
    REQUIRE(sentence.find(name) != std::string::npos);
    REQUIRE(target() == before);
  }
}

}  // namespace
}  // namespace maki::kernels
