#include "data/dataset/labelled.h"

#include <algorithm>
#include <functional>
#include <set>

#include "autograd/core/check.h"
#include "autograd/core/philox.h"
#include "data/io/error.h"
#include "data/tokenizer/normalization.h"

namespace maki {
namespace {

// The space before each text is that of encode_line().
std::shared_ptr<const Tokenizer> new_tokenizer(const std::vector<LinePair>& lines,
                                               const std::vector<bool>& for_validation,
                                               const LabelledOptions& options) {
  std::string learned, others;
  for (std::size_t i = 0; i < lines.size(); ++i)
    ((for_validation[i] ? others : learned) += ' ').append(lines[i].source) += '\n';
  return make_tokenizer(options.tokenizer_kind, {{learned}, {others}}, options.tokenizer_options);
}

std::string without_spaces_around(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// Labels are normalized as the texts are, so that one that is written in two ways is one class.
std::vector<std::string> distinct_labels(const std::vector<LinePair>& lines, Normalization form) {
  std::set<std::string> labels, shown;
  for (const LinePair& line : lines) labels.insert(normalize(line.target, form));
  for (const std::string& label : labels) {
    check<CorpusError>(
        shown.insert(without_spaces_around(label)).second,
        "labels: must differ in more than spaces around them; there are several of \"{}\"; remove the spaces",
        truncate_for_message(without_spaces_around(label)));
  }
  check<CorpusError>(labels.size() >= 2, "labels: a classifier needs at least two different labels; got only {}",
                     labels.empty() ? "none" : *labels.begin());
  return {labels.begin(), labels.end()};
}

[[noreturn]] void refuse_line(const Corpus& corpus, const LinePair& line, const std::string& reason) {
  const LinePlace place = place_of(corpus, line.source);
  fail<CorpusError>("{}: line {}: {}", place.file, place.number, reason);
}

std::int32_t class_of(const std::vector<std::string>& labels, const Corpus& corpus, const LinePair& line,
                      Normalization form) {
  const std::string normalized = normalize(line.target, form);
  const auto found = std::ranges::lower_bound(labels, normalized);
  if (found == labels.end() || *found != normalized)
    refuse_line(corpus, line,
                fmt::format("its label must be one of the {} that the model knows; got {}", labels.size(),
                            truncate_for_message(line.target)));
  return static_cast<std::int32_t>(found - labels.begin());
}

std::vector<std::int32_t> encode_text(const Tokenizer& tokenizer, const Corpus& corpus, const LinePair& line,
                                      std::int64_t max_tokens) {
  const auto unknown = tokenizer.unknown(line.source);
  if (!unknown.empty()) refuse_line(corpus, line, unknown_sentence(tokenizer.vocab_size(), unknown));
  std::vector<std::int32_t> ids = tokenizer.encode_line(line.source);
  if (std::ssize(ids) > max_tokens)
    refuse_line(corpus, line,
                fmt::format("a text may have at most {} tokens; it has {}; train with a larger `block_size`, or remove "
                            "the line",
                            max_tokens, ids.size()));
  return ids;
}

// Cuts the lines into `val` stretches of almost the same length, and chooses one line of each at random: so every label
// has about its share even if the lines are sorted by label, or labels alternate at a fixed distance. The stream's seed
// is 0 for all runs, so the choice is a function of `count` and `val`.
std::vector<bool> validation_lines(std::int64_t count, std::int64_t val) {
  const RandomStream stream(0, RandomPurpose::validation);
  std::vector<bool> chosen(static_cast<std::size_t>(count));
  for (std::int64_t k = 0; k < val; ++k) {
    const std::int64_t begin = k * count / val, end = (k + 1) * count / val;
    const auto at = stream.below(static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(end - begin));
    chosen[static_cast<std::size_t>(begin) + at] = true;
  }
  return chosen;
}

}  // namespace

std::string save_labels(const std::vector<std::string>& labels) {
  std::string saved;
  for (const std::string& label : labels) (saved += label) += '\n';
  return saved;
}

std::vector<std::string> load_labels(std::string_view saved) {
  std::vector<std::string> labels;
  while (!saved.empty()) {
    const std::size_t end = saved.find('\n');
    check<CorpusError>(end != 0 && end != std::string_view::npos, "labels: each must be a line that is not empty");
    labels.emplace_back(saved.substr(0, end));
    saved.remove_prefix(end + 1);
  }
  const bool ascending = std::ranges::adjacent_find(labels, std::greater_equal<>()) == labels.end();
  check<CorpusError>(labels.size() >= 2 && ascending,
                     "labels: there must be at least two, different and in ascending order; got {}", labels.size());
  return labels;
}

LabelledDataset make_labelled_dataset(const Corpus& corpus, const LabelledOptions& options) {
  const std::vector<LinePair> lines = read_pairs(corpus, PairKind::labels);
  const auto count = std::ssize(lines);
  const std::vector<bool> for_validation =
      validation_lines(count, val_pair_count(count, options.val_fraction, PairKind::labels));
  LabelledDataset data;
  data.tokenizer = options.tokenizer ? options.tokenizer : new_tokenizer(lines, for_validation, options);
  const Normalization form = options.tokenizer_options.normalization;
  data.labels = options.labels.empty() ? distinct_labels(lines, form) : options.labels;
  data.train = data.val = TokenPairs(data.tokenizer->vocab_size(), std::ssize(data.labels));
  for (std::int64_t i = 0; i < count; ++i) {
    const LinePair& line = lines[static_cast<std::size_t>(i)];
    const std::int32_t label = class_of(data.labels, corpus, line, form);
    (for_validation[static_cast<std::size_t>(i)] ? data.val : data.train)
        .add(encode_text(*data.tokenizer, corpus, line, options.max_tokens), std::span(&label, 1));
  }
  data.corpus_hash = corpus.hash;
  data.characters = corpus.characters;
  return data;
}

}  // namespace maki
