#include "train/run_corpus.h"

#include <algorithm>
#include <filesystem>

#include "data/error.h"

namespace maki {

std::vector<std::string> absolute_sources(std::vector<std::string> sources) {
  for (std::string& source : sources) {
    if (source == "-" || source.starts_with("@")) continue;
    std::error_code error;
    const std::filesystem::path path = std::filesystem::absolute(source, error);
    check<CorpusError>(!error, "{}: its place cannot be found: {}", source, error.message());
    source = path.lexically_normal().string();
  }
  return sources;
}

std::vector<std::string> sources_again(const std::string& run, const std::vector<std::string>& given,
                                       const std::vector<std::string>& stored) {
  if (!given.empty()) return given;
  check<CorpusError>(std::ranges::find(stored, "-") == stored.end(),
                     "{}: its text came from standard input; give - again, with the same text", run);
  return stored;
}

}  // namespace maki
