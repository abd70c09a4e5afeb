#include "data/corpus.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/ranges.h>

#include "data/error.h"
#include "data/file.h"
#include "data/hash.h"
#include "data/stories.h"
#include "data/utf8.h"

namespace maki {
namespace {

constexpr std::int64_t kStoryCharacters = 2'000'000, kMostStoryCharacters = 1'000'000'000;

void append_text(Corpus& corpus, const std::string& name, std::string bytes, InvalidUtf8 policy) {
  if (const auto bad = invalid_utf8(bytes)) {
    const bool utf16 = bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF");
    check<CorpusError>(policy == InvalidUtf8::replace || !utf16,
                       "{}: text must be UTF-8; this begins with the mark of UTF-16 (byte 0); convert it: iconv -f "
                       "UTF-16 -t UTF-8",
                       name);
    check<CorpusError>(policy == InvalidUtf8::replace,
                       "{}: text must be UTF-8; byte {} is not; convert it, or have such bytes replaced by "
                       "--invalid-utf8 replace",
                       name, *bad);
    bytes = replace_invalid_utf8(bytes);
  }
  if (corpus.text.empty()) {
    corpus.text = std::move(bytes);  // the usual single file is never copied
  } else {
    corpus.text += bytes;
  }
}

// "@stories-ja:50000"
Corpus load_stories(const std::string& source) {
  const std::size_t colon = source.find(':');
  const std::string name = source.substr(0, colon);
  check<CorpusError>(name == "@stories" || name == "@stories-ja",
                     "{0}: the built-in corpora are @stories and @stories-ja, with :CHARS for a size; a file of this "
                     "name is ./{0}",
                     source);
  std::int64_t characters = kStoryCharacters;
  if (colon != std::string::npos) {
    const char* const end = source.data() + source.size();
    const auto [stop, error] = std::from_chars(source.data() + colon + 1, end, characters);
    check<CorpusError>(error == std::errc() && stop == end && characters >= 1 && characters <= kMostStoryCharacters,
                       "{}: the number of characters must be between 1 and {}", source, kMostStoryCharacters);
  }
  StoryCorpus stories = make_stories(name == "@stories" ? StoryLanguage::english : StoryLanguage::japanese, characters);
  Corpus corpus;
  corpus.text = std::move(stories.text);
  corpus.story_starts = std::move(stories.story_starts);
  corpus.entropy_per_char = stories.entropy_per_char;
  return corpus;
}

Corpus load_files(const std::vector<std::string>& sources, InvalidUtf8 policy) {
  Corpus corpus;
  for (const std::string& source : sources) {
    check<CorpusError>(!source.starts_with("@"), "{}: the built-in stories stand alone; got {} sources", source,
                       sources.size());
    if (source == "-") {
      append_text(corpus, "standard input", read_standard_input(), policy);
    } else if (is_directory(source)) {
      for (const std::string& file : files_below(source)) append_text(corpus, file, read_file(file), policy);
    } else {
      append_text(corpus, source, read_file(source), policy);
    }
  }
  return corpus;
}

}  // namespace

Corpus load_corpus(const std::vector<std::string>& sources, InvalidUtf8 policy) {
  check<CorpusError>(!sources.empty(), "corpus: give a file, a directory, - or @stories");
  const bool stories = sources.size() == 1 && sources[0].starts_with("@");
  Corpus corpus = stories ? load_stories(sources[0]) : load_files(sources, policy);
  corpus.sources = sources;
  check<CorpusError>(!corpus.text.empty(), "{}: is empty; there is nothing to learn from", fmt::join(sources, " "));
  corpus.characters = count_code_points(corpus.text);
  corpus.hash = hash_hex(corpus.text);
  return corpus;
}

std::size_t split_offset(const Corpus& corpus, double val_fraction) {
  check(val_fraction >= 0 && val_fraction < 1, "val_fraction: must be in [0, 1); got {}", val_fraction);
  if (val_fraction == 0) return corpus.text.size();
  const auto kept = corpus.characters -
                    static_cast<std::int64_t>(std::llround(static_cast<double>(corpus.characters) * val_fraction));
  const std::size_t offset = byte_offset(corpus.text, kept);
  if (corpus.story_starts.empty()) return offset;
  const auto next = std::ranges::lower_bound(corpus.story_starts, offset);
  return next == corpus.story_starts.end() ? corpus.story_starts.back() : *next;
}

}  // namespace maki
