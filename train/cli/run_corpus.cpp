#include "train/cli/run_corpus.h"

#include <algorithm>
#include <filesystem>
#include <fmt/ranges.h>

#include "data/dataset/dataset.h"
#include "data/dataset/foreign_tokens.h"
#include "data/text/error.h"
#include "data/text/file.h"
#include "data/text/shell_quote.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/cli/progress.h"
#include "train/config/configured_tokenizer.h"
#include "train/run/run_directory.h"

namespace maki {
namespace {

// What `maki prepare` left beside token files of another program, or null.
std::shared_ptr<const Tokenizer> tokenizer_beside(const std::string& source) {
  const std::filesystem::path path(source);
  const std::string file = ((is_directory(source) ? path : path.parent_path()) / kOwnTokenizerFile).string();
  if (!file_exists(file)) return nullptr;
  return read_tokenizer(file);
}

}  // namespace

CorpusOptions corpus_options(const Config& config) {
  return {.invalid = config.invalid_utf8 == "replace" ? InvalidUtf8::replace : InvalidUtf8::error,
          .encoding = config.encoding,
          .include = config.include,
          .exclude = config.exclude,
          .documents = {
              .files = config.documents, .separator = config.document_separator, .json_field = config.json_field}};
}

Corpus read_corpus(const std::vector<std::string>& sources, const CorpusOptions& options) {
  for (const std::string& source : sources) {
    const bool run = is_directory(source) && RunDirectory(source).exists();
    check(!run, "{}: is a run directory, not a text; continue the run with: maki train --resume {}", source,
          shell_quote(source));
  }
  if (auto prepared = prepared_corpus(sources)) return std::move(*prepared);
  Corpus corpus = load_corpus(sources, options);
  for (const std::string& note : corpus.notes) to_stderr("{}\n", note);
  return corpus;
}

std::shared_ptr<const Tokenizer> adopt_prepared(Corpus& corpus, const ConfigFlags& flags,
                                                std::shared_ptr<const Tokenizer> tokenizer, Config& config) {
  static constexpr const char* kChosen[] = {"--tokenizer",  "--vocab-size",   "--normalize",         "--invalid-utf8",
                                            "--encoding",   "--include",      "--exclude",           "--documents",
                                            "--json-field", "--val-fraction", "--document-separator"};
  std::int64_t asked = 0;  // as in a run on the text
  const bool is_whole = corpus.prepared->tokenizer != nullptr;
  if (!is_whole && tokenizer == nullptr) tokenizer = tokenizer_beside(corpus.sources.front());
  for (const std::string& option : flags.given()) {
    if (!is_whole && option == "--val-fraction") continue;
    check(std::ranges::find(kChosen, option) == std::end(kChosen),
          "{}: is fixed in {}, which contains tokens and no text; omit it, or use the text itself", option,
          corpus.prepared->path);
  }
  if (is_whole) {
    config.val_fraction = corpus.prepared->facts.val_fraction;
    if (tokenizer == nullptr) {
      tokenizer = corpus.prepared->tokenizer;
      asked = corpus.prepared->facts.vocab_limit;
    }
  } else if (tokenizer != nullptr) {
    corpus.prepared = with_tokenizer(*corpus.prepared, tokenizer, config.val_fraction);
    corpus.characters = corpus.prepared->facts.characters;
  }
  check<CorpusError>(tokenizer != nullptr,
                     "{}: contains token ids, but not what they mean; name the tokenizer that made them with "
                     "--tokenizer-file, or the files of the text itself",
                     corpus.prepared->path);
  describe_tokenizer(*tokenizer, config);
  if (asked > 0) config.vocab_size = asked;
  return tokenizer;
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
        "{0}: does not name the text of its training, because it was imported, or exported without it; name a CORPUS; "
        "to train this model on it: maki train CORPUS --init-from {0}",
        run);
  check<CorpusError>(std::ranges::find(stored, "-") == stored.end(),
                     "{}: the text of this run came from standard input; pass - again, with the same text", run);
  return stored;
}

}  // namespace maki
