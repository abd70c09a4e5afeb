#include "data/dataset/pairs.h"

#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>

#include "data/text/error.h"

namespace maki {
namespace {

// The lines of a text, without their ends. A text that does not end with a newline has one line more than newlines.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(at + 1, text.size()));
  }
  return lines;
}

void require_text(std::string_view side, const std::string& file, std::size_t line) {
  check<CorpusError>(!side.empty(), "{}: line {} is empty; every line needs a text and its counterpart", file,
                     line + 1);
}

std::vector<LinePair> read_tsv(const std::string& name, std::string_view text) {
  std::vector<LinePair> pairs;
  for (const std::string_view line : lines_of(text)) {
    const std::size_t i = pairs.size(), tab = line.find('\t');
    require_text(line, name, i);
    check<CorpusError>(
        tab != std::string_view::npos && line.find('\t', tab + 1) == std::string_view::npos,
        "{}: line {} must have a source, one tab and a target; it has {} tabs (parallel text can also be "
        "given as two files)",
        name, i + 1, std::ranges::count(line, '\t'));
    pairs.push_back({line.substr(0, tab), line.substr(tab + 1)});
    check<CorpusError>(!pairs.back().source.empty() && !pairs.back().target.empty(),
                       "{}: line {} has an empty {}; every line needs a text and its counterpart", name, i + 1,
                       pairs.back().source.empty() ? "source" : "target");
  }
  return pairs;
}

std::vector<LinePair> read_parallel(const std::vector<std::string>& names, const std::vector<std::string_view>& texts) {
  const std::vector<std::string_view> source = lines_of(texts[0]), target = lines_of(texts[1]);
  check<CorpusError>(source.size() == target.size(),
                     "{} and {}: parallel files must have the same number of lines; got {} and {}", names[0], names[1],
                     source.size(), target.size());
  std::vector<LinePair> pairs;
  for (std::size_t i = 0; i < source.size(); ++i) {
    require_text(source[i], names[0], i);
    require_text(target[i], names[1], i);
    pairs.push_back({source[i], target[i]});
  }
  return pairs;
}

// Encodes the pairs of a dataset.
class PairEncoder {
 public:
  PairEncoder(const PairOptions& options, PairDataset& data) : options_(options), data_(data) {}

  TokenPairs encode(const std::vector<LinePair>& pairs, std::int64_t begin, std::int64_t end) {
    const PairTokenizers& tokenizers = data_.tokenizers;
    TokenPairs tokens(tokenizers.source->vocab_size(), tokenizers.target->vocab_size());
    for (std::int64_t i = begin; i < end; ++i) {
      const LinePair& pair = pairs[static_cast<std::size_t>(i)];
      const auto source = encode_side(*tokenizers.source, pair.source, "source", i);
      tokens.add(source, encode_side(*tokenizers.target, pair.target, "target", i));
    }
    return tokens;
  }

 private:
  std::vector<std::int32_t> encode_side(const Tokenizer& tokenizer, std::string_view line, const char* side,
                                        std::int64_t pair) {
    try {
      std::vector<std::int32_t> ids = encode_line(tokenizer, line, options_.unknown, data_.unknown);
      check<CorpusError>(std::ssize(ids) <= options_.max_tokens,
                         "may have at most {} tokens; it has {}; train with a larger --block-size, or remove the pair",
                         options_.max_tokens, ids.size());
      return ids;
    } catch (const CorpusError& error) {
      fail<CorpusError>("pair {}, {}: {}", pair + 1, side, error.what());
    }
  }

  const PairOptions& options_;
  PairDataset& data_;
};

}  // namespace

std::vector<LinePair> read_pairs(const Corpus& corpus) {
  check<CorpusError>(corpus.prepared == nullptr,
                     "{}: contains tokens; a model that translates or classifies learns from lines of text; name the "
                     "files of the text",
                     fmt::join(corpus.sources, " "));
  const std::vector<std::string_view> texts = file_texts(corpus);
  const std::vector<std::string>& sources = corpus.sources;
  check<CorpusError>(texts.size() <= 2 && sources.size() <= 2,
                     "corpus: parallel text is one file of source, tab and target per line, or two files whose lines "
                     "correspond; got {} files",
                     std::max(texts.size(), sources.size()));
  check<CorpusError>(sources.size() <= texts.size(), "{}: one of these parallel files is empty",
                     fmt::join(sources, " and "));
  check<CorpusError>(sources.size() != 1 || texts.size() == 1,
                     "{}: is a directory of {} files; name the file of the sources and then that of the targets",
                     fmt::join(sources, ""), texts.size());
  const auto name = [&](std::size_t i) { return i < sources.size() ? sources[i] : "corpus"; };
  if (texts.size() == 1) return read_tsv(name(0), texts[0]);
  return read_parallel({name(0), name(1)}, texts);
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

std::int64_t val_pair_count(std::int64_t pairs, double val_fraction) {
  check(val_fraction >= 0 && val_fraction < 1, "val_fraction: must be in [0, 1); got {}", val_fraction);
  if (val_fraction == 0) return 0;
  const std::int64_t count = std::max<std::int64_t>(1, std::llround(static_cast<double>(pairs) * val_fraction));
  check<CorpusError>(count < pairs,
                     "corpus: with {} of {} pairs for validation none is left for training; use more pairs, or a "
                     "smaller --val-fraction (0: no validation)",
                     count, pairs);
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
  PairEncoder encoder(options, data);
  data.train = encoder.encode(pairs, 0, train);
  data.val = encoder.encode(pairs, train, count);
  for (std::int64_t i = train; i < count; ++i) data.val_targets.emplace_back(pairs[static_cast<std::size_t>(i)].target);
  data.corpus_hash = corpus.hash;
  data.characters = corpus.characters;
  return data;
}

}  // namespace maki
