// What libFuzzer calls. The environment variable MAKI_FUZZ_TARGET names the target. If the first argument is a folder,
// the seeds of the target are written into it before libFuzzer reads it.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/fuzz.h"

namespace {

const maki::fuzz::Target* chosen = nullptr;

const maki::fuzz::Target* find_target(const char* name) {
  for (const maki::fuzz::Target& target : maki::fuzz::targets()) {
    if (name != nullptr && std::string_view(target.name) == name) return &target;
  }
  std::fprintf(stderr, "MAKI_FUZZ_TARGET must name one of these targets:");
  for (const maki::fuzz::Target& target : maki::fuzz::targets()) std::fprintf(stderr, " %s", target.name);
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  chosen = find_target(std::getenv("MAKI_FUZZ_TARGET"));
  if (*argc < 2 || !std::filesystem::is_directory((*argv)[1])) return 0;
  int number = 0;
  for (const std::string& seed : chosen->seeds()) {
    std::ofstream file(std::string((*argv)[1]) + "/seed-" + std::to_string(number++), std::ios::binary);
    file << seed;
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    maki::fuzz::try_input(*chosen, std::string(reinterpret_cast<const char*>(data), size));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  return 0;
}
