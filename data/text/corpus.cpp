#include "data/text/corpus.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fmt/ranges.h>

#include "data/builtin/exercises.h"
#include "data/builtin/stories.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/hash.h"
#include "data/io/shell_quote.h"
#include "data/io/utf8.h"
#include "data/text/corpus_file.h"
#include "data/text/directory.h"
#include "data/text/invisible.h"
#include "data/text/text_shape.h"

namespace maki {
namespace {

// A built-in corpus: its name, and the range (from 1 on) and default of the number that may follow it, as in
// "@stories-ja:50000".
struct Builtin {
  const char* name;
  const char* number;  // what the number is
  std::int64_t most, standard;
  void (*load)(Corpus& corpus, std::int64_t number);
};

void load_stories(Corpus& corpus, StoryLanguage language, std::int64_t characters) {
  StoryCorpus stories = make_stories(language, characters);
  corpus.text = std::move(stories.text);
  corpus.story_starts = std::move(stories.story_starts);
  corpus.entropy_per_char = stories.entropy_per_char;
}

constexpr Builtin kBuiltins[] = {
    {"@stories", "characters", 1'000'000'000, 2'000'000,
     [](Corpus& corpus, std::int64_t n) { load_stories(corpus, StoryLanguage::english, n); }},
    {"@stories-ja", "characters", 1'000'000'000, 2'000'000,
     [](Corpus& corpus, std::int64_t n) { load_stories(corpus, StoryLanguage::japanese, n); }},
    {"@copy", "letters", kMaxLetters, 20,
     [](Corpus& corpus, std::int64_t n) { corpus.text = make_exercise(Exercise::copy, n); }},
    {"@reverse", "letters", kMaxLetters, 20,
     [](Corpus& corpus, std::int64_t n) { corpus.text = make_exercise(Exercise::reverse, n); }},
    {"@addition", "digits", kMaxDigits, 3,
     [](Corpus& corpus, std::int64_t n) { corpus.text = make_exercise(Exercise::addition, n); }},
    {"@addition-backwards", "digits", kMaxDigits, 5,
     [](Corpus& corpus, std::int64_t n) { corpus.text = make_exercise(Exercise::addition_backwards, n); }},
};

std::vector<std::string> builtin_names() {
  std::vector<std::string> names;
  for (const Builtin& builtin : kBuiltins) names.emplace_back(builtin.name);
  return names;
}

Corpus load_builtin(const std::string& source) {
  const std::size_t colon = source.find(':');
  const auto* const found = std::ranges::find(kBuiltins, source.substr(0, colon), &Builtin::name);
  check<CorpusError>(
      found != std::end(kBuiltins),
      "{0}: the built-in corpora are {1}, optionally followed by :N for a size; for a file of this name, use ./{0}",
      source, fmt::join(builtin_names(), ", "));
  std::int64_t number = found->standard;
  if (colon != std::string::npos) {
    const char* const end = source.data() + source.size();
    const auto [stop, error] = std::from_chars(source.data() + colon + 1, end, number);
    check<CorpusError>(error == std::errc() && stop == end && number >= 1 && number <= found->most,
                       "{}: the number of {} must be between 1 and {}", source, found->number, found->most);
  }
  Corpus corpus;
  found->load(corpus, number);
  corpus.files = {source};
  return corpus;
}

Corpus load_files(const std::vector<std::string>& sources, const CorpusOptions& options) {
  Corpus corpus;
  const std::vector<std::string> files = list_corpus_files(sources, options, corpus.notes);
  std::size_t size = 0;
  for (const std::string& file : files) size += file_size(file);
  corpus.text.reserve(size);
  std::int64_t separators = 0;
  for (const std::string& file : files)
    read_listed_file(sources, file, [&] { separators += append_corpus_file(corpus, file, options); });
  note_on_separators(options.documents, separators, corpus.notes);
  return corpus;
}

}  // namespace

std::vector<std::string> list_corpus_files(const std::vector<std::string>& sources, const CorpusOptions& options,
                                           std::vector<std::string>& notes) {
  std::vector<std::string> files;
  std::optional<std::vector<PatternOption>> idle;  // patterns that no directory so far has a match for
  for (const std::string& source : sources) {
    check<CorpusError>(!source.starts_with("@"),
                       "{}: a built-in corpus cannot be combined with other sources; got {} sources", source,
                       sources.size());
    if (source == "-" || !is_directory(source)) {
      files.push_back(source);
      continue;
    }
    const DirectoryListing below = list_directory(
        source,
        {.include = options.include, .exclude = options.exclude, .zero_bytes = has_zero_bytes(options.encoding)});
    if (!idle) idle = below.idle;
    std::erase_if(*idle,
                  [&](const PatternOption& each) { return std::ranges::find(below.idle, each) == below.idle.end(); });
    const std::string skipped = below.describe_skipped();
    if (!skipped.empty()) {
      notes.push_back(fmt::format("{}: {} {} read; skipped: {}", source, below.files.size(),
                                  below.files.size() == 1 ? "file is" : "files are", skipped));
    }
    files.insert(files.end(), below.files.begin(), below.files.end());
  }
  for (const auto& [option, pattern] : idle.value_or(std::vector<PatternOption>()))
    notes.push_back(
        fmt::format("`{}` {}: matches nothing; name a file{}, or write its path as it is below the directory", option,
                    pattern, option == "exclude" ? " or folder" : ""));
  return files;
}

void read_listed_file(const std::vector<std::string>& sources, const std::string& file,
                      const std::function<void()>& read) {
  try {
    read();
  } catch (const CorpusError& error) {
    if (std::ranges::find(sources, file) != sources.end()) throw;
    std::string pattern = std::filesystem::path(file).filename().string();
    std::ranges::replace(pattern, '[', '?');  // which would begin a set
    fail<CorpusError>("{}; to leave it out: `exclude` {}", error.what(), shell_quote(pattern));
  }
}

std::string builtin_corpora() {
  return fmt::format("{} (a size may follow, as in {}:{})", fmt::join(builtin_names(), ", "), kBuiltins[0].name,
                     kBuiltins[0].standard / 2);
}

Corpus load_corpus(const std::vector<std::string>& sources, const CorpusOptions& options) {
  check<CorpusError>(!sources.empty(), "corpus: name a file, a directory, - or @stories");
  const bool builtin = sources.size() == 1 && sources[0].starts_with("@");
  check(options.encoding.empty() || !builtin, "encoding: applies to files only; the built-in corpora need none");
  options.documents.check_valid();
  check(!options.documents.any() || !builtin,
        "documents: are found in files only; omit `documents`, `document_separator` and `json_field` for a built-in "
        "corpus");
  Corpus corpus = builtin ? load_builtin(sources[0]) : load_files(sources, options);
  corpus.sources = sources;
  check<CorpusError>(!corpus.text.empty(), "{}: is empty; name a file that contains text", fmt::join(sources, " "));
  if (!options.lines && !options.documents.any())
    note_on_records(file_texts(corpus).front(), corpus.files.front(), corpus.notes);
  if (!builtin) {
    InvisibleCharacters invisible;
    for (const std::string_view text : file_texts(corpus)) {
      invisible.begin_text();
      invisible.add(text);
    }
    invisible.describe(corpus.notes, options.lines, options.encoding);
  }
  corpus.characters = count_code_points(corpus.text);
  corpus.hash = corpus_hash(hash128_hex(corpus.text), corpus.joins, corpus.documents);
  return corpus;
}

std::vector<std::string_view> file_texts(const Corpus& corpus) {
  std::vector<std::string_view> texts;
  std::size_t begin = 0;
  const auto add = [&](std::size_t end) {
    texts.push_back(std::string_view(corpus.text).substr(begin, end - begin));
    begin = end;
  };
  for (const std::size_t join : corpus.joins) add(join);
  add(corpus.text.size());
  return texts;
}

std::vector<std::string_view> document_texts(const Corpus& corpus) {
  if (corpus.documents.empty()) return file_texts(corpus);
  std::vector<std::string_view> texts;
  for (std::size_t i = 0; i < corpus.documents.size(); ++i) {
    const std::size_t begin = corpus.documents[i];
    const std::size_t end = i + 1 < corpus.documents.size() ? corpus.documents[i + 1] : corpus.text.size();
    texts.push_back(std::string_view(corpus.text).substr(begin, end - begin));
  }
  return texts;
}

DocumentSplit::DocumentSplit(double val_fraction) : val_fraction_(val_fraction) {
  check(val_fraction >= 0 && val_fraction < 1, "val_fraction: must be in [0, 1); got {}", val_fraction);
}

bool DocumentSplit::is_validation(std::int64_t characters) {
  characters_ += characters;
  const double missing = static_cast<double>(characters_) * val_fraction_ - static_cast<double>(validating_);
  const bool chosen = val_fraction_ > 0 && 2 * missing >= static_cast<double>(characters);
  if (chosen) validating_ += characters;
  return chosen;
}

std::string corpus_hash(const std::string& text_hash, const std::vector<std::size_t>& joins,
                        const std::vector<std::size_t>& documents) {
  if (documents.empty() && joins.empty()) return text_hash;
  Hash128 hash;  // of numbers that would be long as one text
  hash.add(text_hash);
  if (!documents.empty()) hash.add(" documents");
  for (const std::size_t start : documents.empty() ? joins : documents) hash.add(fmt::format(" {}", start));
  return to_hex(hash.value());
}

SplitText split_text(const Corpus& corpus, double val_fraction, Normalization form) {
  SplitText split;
  if (!corpus.documents.empty()) {
    DocumentSplit documents(val_fraction);
    for (const std::string_view text : document_texts(corpus))
      (documents.is_validation(count_code_points(text)) ? split.val : split.train).push_back(text);
    return split;
  }
  check(val_fraction >= 0 && val_fraction < 1, "val_fraction: must be in [0, 1); got {}", val_fraction);
  std::int64_t characters = 0, validating = 0;  // of the files so far: all characters, and those for validation
  for (const std::string_view text : file_texts(corpus)) {
    const std::int64_t own = count_code_points(text);
    characters += own;
    const auto share = static_cast<std::int64_t>(std::llround(static_cast<double>(characters) * val_fraction));
    std::size_t at = val_fraction == 0 ? text.size() : byte_offset(text, own - (share - validating));
    at = next_normal_cut(text, at, form);
    validating = share;
    if (val_fraction > 0 && !corpus.story_starts.empty()) {
      const auto next = std::ranges::lower_bound(corpus.story_starts, at);
      at = next == corpus.story_starts.end() ? corpus.story_starts.back() : *next;
    }
    if (at > 0) split.train.push_back(text.substr(0, at));
    if (at < text.size()) split.val.push_back(text.substr(at));
  }
  return split;
}

}  // namespace maki
