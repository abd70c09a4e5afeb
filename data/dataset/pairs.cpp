#include "data/dataset/pairs.h"

#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>

#include "data/dataset/columns.h"
#include "data/io/error.h"
#include "data/text/text_shape.h"

namespace maki {
namespace {

// What the two sides of a pair, and pairs, are called in errors.
struct PairWords {
  const char *source, *target, *both, *two_files, *many;
};

const PairWords& words_of(PairKind kind) {
  static constexpr PairWords kTranslation = {"source", "target", "a source and its target", "parallel text", "pairs"},
                             kLabels = {"text", "label", "a text and its label", "texts and labels", "lines"};
  return kind == PairKind::labels ? kLabels : kTranslation;
}

void require_text(std::string_view side, const std::string& file, std::size_t line, const PairWords& words) {
  check<CorpusError>(!side.empty(), "{}: line {} is empty; every line needs {}", file, line + 1, words.both);
}

void append_tsv(std::vector<LinePair>& pairs, const std::string& name, std::string_view text, PairKind kind) {
  const PairWords& words = words_of(kind);
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    const auto tabs = std::ranges::count(line, '\t');
    require_text(line, name, i, words);
    check<CorpusError>(
        tabs == 1,
        "{}: line {} must have a {}, one tab and its {}; it has {} tabs ({} can also be given as two files){}", name,
        i + 1, words.source, words.target, tabs, words.two_files, column_advice(line, kind, name));
    const std::size_t tab = line.find('\t');
    pairs.push_back({line.substr(0, tab), line.substr(tab + 1)});
    check<CorpusError>(!pairs.back().source.empty() && !pairs.back().target.empty(),
                       "{}: line {} has an empty {}; every line needs {}", name, i + 1,
                       pairs.back().source.empty() ? words.source : words.target, words.both);
  }
}

// Whether every line has one tab.
bool is_tsv(std::string_view text) {
  const auto has_one = [](std::string_view line) { return std::ranges::count(line, '\t') == 1; };
  return std::ranges::all_of(lines_of(text), has_one);
}

std::vector<LinePair> read_parallel(const std::vector<std::string>& names, const std::vector<std::string_view>& texts,
                                    const PairWords& words) {
  const std::vector<std::string_view> source = lines_of(texts[0]), target = lines_of(texts[1]);
  check<CorpusError>(source.size() == target.size(),
                     "{} and {}: parallel files must have the same number of lines; got {} and {}", names[0], names[1],
                     source.size(), target.size());
  std::vector<LinePair> pairs;
  for (std::size_t i = 0; i < source.size(); ++i) {
    require_text(source[i], names[0], i, words);
    require_text(target[i], names[1], i, words);
    pairs.push_back({source[i], target[i]});
  }
  return pairs;
}

void require_parallel(std::size_t files, const std::vector<std::string>& sources, const PairWords& words) {
  check<CorpusError>(files <= 2 && sources.size() <= 2,
                     "corpus: must be one file with a {}, a tab and its {} in every line, or two files whose lines "
                     "correspond; got {} files, and not every line has one tab",
                     words.source, words.target, std::max(files, sources.size()));
  check<CorpusError>(sources.size() <= files, "{}: one of these parallel files is empty", fmt::join(sources, " and "));
  check<CorpusError>(sources.size() != 1 || files == 1,
                     "{}: is a directory of {} files; name the file of the {}s and then that of the {}s",
                     fmt::join(sources, ""), files, words.source, words.target);
}

// Of the files that are not empty.
std::string file_name(const Corpus& corpus, std::size_t i) {
  const auto& names = corpus.files.size() == corpus.joins.size() + 1 ? corpus.files : corpus.sources;
  return i < names.size() ? names[i] : "corpus";
}

// Encodes the pairs of a dataset.
class PairEncoder {
 public:
  PairEncoder(const Corpus& corpus, const PairOptions& options, PairDataset& data)
      : corpus_(corpus), options_(options), data_(data) {}

  TokenPairs encode(const std::vector<LinePair>& pairs, std::int64_t begin, std::int64_t end) {
    const PairTokenizers& tokenizers = data_.tokenizers;
    TokenPairs tokens(tokenizers.source->vocab_size(), tokenizers.target->vocab_size());
    for (std::int64_t i = begin; i < end; ++i) {
      const LinePair& pair = pairs[static_cast<std::size_t>(i)];
      const auto source = encode_side(*tokenizers.source, pair.source, "source");
      tokens.add(source, encode_side(*tokenizers.target, pair.target, "target"));
    }
    return tokens;
  }

 private:
  std::vector<std::int32_t> encode_side(const Tokenizer& tokenizer, std::string_view line, const char* side) {
    try {
      std::vector<std::int32_t> ids = encode_line(tokenizer, line, options_.unknown, data_.unknown);
      check<CorpusError>(std::ssize(ids) <= options_.max_tokens,
                         "may have at most {} tokens; it has {}; train with a larger `block_size`, or remove the pair",
                         options_.max_tokens, ids.size());
      return ids;
    } catch (const CorpusError& error) {
      const LinePlace place = place_of(corpus_, line);
      fail<CorpusError>("{}: pair {}, {}: {}", place.file, place.number, side, error.what());
    }
  }

  const Corpus& corpus_;
  const PairOptions& options_;
  PairDataset& data_;
};

}  // namespace

std::vector<LinePair> read_pairs(const Corpus& corpus, PairKind kind) {
  check<CorpusError>(corpus.prepared == nullptr,
                     "{}: contains tokens; a model that translates or classifies learns from lines of text; name the "
                     "files of the text",
                     fmt::join(corpus.sources, " "));
  const std::vector<std::string_view> texts = file_texts(corpus);
  const std::vector<std::string>& sources = corpus.sources;
  const auto name = [&](std::size_t i) { return file_name(corpus, i); };
  std::vector<LinePair> pairs;
  std::vector<FileOfLines> files;
  if (texts.size() == 1 ? sources.size() <= 1 : std::ranges::all_of(texts, is_tsv)) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      files.push_back({name(i), pairs.size()});
      append_tsv(pairs, name(i), texts[i], kind);
    }
  } else {
    require_parallel(texts.size(), sources, words_of(kind));
    files.push_back({name(0), 0});
    pairs = read_parallel({name(0), name(1)}, texts, words_of(kind));
  }
  check_columns(pairs, kind, files);
  return pairs;
}

LinePlace place_of(const Corpus& corpus, std::string_view line) {
  const auto at = static_cast<std::size_t>(line.data() - corpus.text.data());
  const auto next = std::ranges::upper_bound(corpus.joins, at);
  const std::size_t begin = next == corpus.joins.begin() ? 0 : *std::prev(next);
  const std::string_view before = std::string_view(corpus.text).substr(begin, at - begin);
  return {file_name(corpus, static_cast<std::size_t>(next - corpus.joins.begin())),
          1 + std::ranges::count(before, '\n')};
}

void TokenPairs::add(std::span<const std::int32_t> source, std::span<const std::int32_t> target) {
  source_.append(source);
  target_.append(target);
  source_ends_.push_back(static_cast<std::int64_t>(source_.size()));
  target_ends_.push_back(static_cast<std::int64_t>(target_.size()));
}

std::int64_t TokenPairs::begin(const Ends& ends, std::int64_t i) {
  return i == 0 ? 0 : ends[static_cast<std::size_t>(i - 1)];
}
std::int64_t TokenPairs::length(const Ends& ends, std::int64_t i) {
  return ends[static_cast<std::size_t>(i)] - begin(ends, i);
}
std::vector<std::int32_t> TokenPairs::ids(const Tokens& tokens, const Ends& ends, std::int64_t i) {
  return tokens.view().ids(static_cast<std::size_t>(begin(ends, i)), static_cast<std::size_t>(length(ends, i)));
}

PairTokenizers make_pair_tokenizers(std::span<const LinePair> pairs, std::size_t train, const std::string& kind,
                                    bool shared, const TokenizerOptions& options) {
  struct Texts {
    std::string source, target;
  };
  // The space before each line is that of encode_line(): the first word of a line is one with a space before it.
  const auto join = [shared](std::span<const LinePair> part) {
    Texts texts;
    for (const LinePair& pair : part) {
      (texts.source += ' ').append(pair.source) += '\n';
      ((shared ? texts.source : texts.target) += ' ').append(pair.target) += '\n';
    }
    return texts;
  };
  const Texts learned = join(pairs.first(train)), others = join(pairs.subspan(train));
  const std::shared_ptr<const Tokenizer> first = make_tokenizer(kind, {{learned.source}, {others.source}}, options);
  if (shared) return {first, first};
  return {first, make_tokenizer(kind, {{learned.target}, {others.target}}, options)};
}

std::vector<std::int32_t> encode_line(const Tokenizer& tokenizer, std::string_view line, Unknown policy,
                                      std::int64_t& unknown) {
  const KnownText known = known_text(tokenizer, {line}, policy);
  unknown += known.unknown;
  return tokenizer.encode_line(known.pieces[0]);
}

std::int64_t val_pair_count(std::int64_t pairs, double val_fraction, PairKind kind) {
  check(val_fraction >= 0 && val_fraction < 1, "val_fraction: must be in [0, 1); got {}", val_fraction);
  if (val_fraction == 0) return 0;
  const std::int64_t count = std::max<std::int64_t>(1, std::llround(static_cast<double>(pairs) * val_fraction));
  check<CorpusError>(count < pairs,
                     "corpus: with {0} of {1} {2} for validation none is left for training; use more {2}, or a smaller "
                     "`val_fraction` (0: no validation)",
                     count, pairs, words_of(kind).many);
  return count;
}

PairDataset make_pair_dataset(const Corpus& corpus, const PairOptions& options) {
  const std::vector<LinePair> pairs = read_pairs(corpus);
  const auto count = static_cast<std::int64_t>(pairs.size());
  const std::int64_t train = options.validate_all ? 0 : count - val_pair_count(count, options.val_fraction);
  PairDataset data;
  data.tokenizers = options.tokenizers.source
                        ? options.tokenizers
                        : make_pair_tokenizers(pairs, static_cast<std::size_t>(options.validate_all ? count : train),
                                               options.tokenizer, options.shared_vocabulary, options.tokenizer_options);
  PairEncoder encoder(corpus, options, data);
  data.train = encoder.encode(pairs, 0, train);
  data.val = encoder.encode(pairs, train, count);
  const Normalization form = data.tokenizers.target->normalization();
  for (std::int64_t i = train; i < count; ++i)
    data.val_targets.push_back(normalize(pairs[static_cast<std::size_t>(i)].target, form));
  data.corpus_hash = corpus.hash;
  data.characters = corpus.characters;
  return data;
}

}  // namespace maki
