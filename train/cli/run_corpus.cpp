#include "train/cli/run_corpus.h"

#include <algorithm>
#include <filesystem>
#include <fmt/ranges.h>

#include "data/text/error.h"
#include "data/text/file.h"
#include "data/text/shell_quote.h"
#include "train/cli/progress.h"
#include "train/run/run_directory.h"

namespace maki {

CorpusOptions corpus_options(const Config& config) {
  return {.invalid = config.invalid_utf8 == "replace" ? InvalidUtf8::replace : InvalidUtf8::error,
          .encoding = config.encoding,
          .include = config.include,
          .exclude = config.exclude};
}

Corpus read_corpus(const std::vector<std::string>& sources, const CorpusOptions& options) {
  for (const std::string& source : sources) {
    const bool run = is_directory(source) && RunDirectory(source).exists();
    check(!run, "{}: is a run directory, not a text; continue the run with: maki train --resume {}", source,
          shell_quote(source));
  }
  Corpus corpus = load_corpus(sources, options);
  for (const std::string& note : corpus.notes) to_stderr("{}\n", note);
  return corpus;
}

Corpus reread_corpus(const Config& config, const std::string& hash) {
  Corpus corpus = read_corpus(config.corpus, corpus_options(config));
  join_files_if_known_as(corpus, hash);
  check<CorpusError>(
      corpus.hash == hash,
      "{}: is not the text of this run: its hash is {}, not {}; start a new run to train on another text",
      fmt::join(config.corpus, " "), corpus.hash, hash);
  return corpus;
}

std::vector<std::string> absolute_sources(std::vector<std::string> sources) {
  for (std::string& source : sources) {
    if (source == "-" || source.starts_with("@")) continue;
    std::error_code error;
    const std::filesystem::path path = std::filesystem::absolute(source, error);
    check<CorpusError>(!error, "{}: cannot be made an absolute path: {}", source, error.message());
    source = path.lexically_normal().string();
  }
  return sources;
}

std::vector<std::string> resume_sources(const std::string& run, const std::vector<std::string>& given,
                                        const std::vector<std::string>& stored) {
  if (!given.empty()) return given;
  check(!stored.empty(),
        "{0}: has no text of its own, because it was imported; name a CORPUS; to train this model on it: maki train "
        "CORPUS --init-from {0}",
        run);
  check<CorpusError>(std::ranges::find(stored, "-") == stored.end(),
                     "{}: the text of this run came from standard input; pass - again, with the same text", run);
  return stored;
}

}  // namespace maki
