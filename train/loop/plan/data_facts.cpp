#include "train/loop/plan/data_facts.h"

#include <algorithm>
#include <string_view>

#include "data/dataset/dataset.h"
#include "data/dataset/pairs.h"
#include "data/dataset/token_file.h"
#include "data/io/utf8.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/word_tokenizer.h"
#include "train/loop/plan/text_facts.h"
#include "train/run/config/configured_tokenizer.h"
#include "train/run/config/tasks.h"

namespace maki {
namespace {

std::int64_t size_of_text(const Corpus& corpus) {
  if (!corpus.prepared) return std::ssize(corpus.text);
  const TokenFileFacts& facts = corpus.prepared->facts;
  return facts.bytes > 0 ? facts.bytes : facts.train_tokens + facts.val_tokens;
}

// Only a short text is made tokens of before the plan is complete. A document may be shorter than a context.
std::optional<std::int64_t> fewest_tokens(const Corpus& corpus, const Config& config,
                                          const std::shared_ptr<const Tokenizer>& tokenizer) {
  constexpr double kLongPart = 16'384;  // bytes, which are more tokens than any context that a plan chooses
  const double val = config.val_fraction, shorter = val > 0 ? std::min(val, 1 - val) : 1;
  const bool is_known = !corpus.prepared || corpus.prepared->tokenizer || tokenizer;
  if (!is_known || config.respect_documents || shorter * static_cast<double>(size_of_text(corpus)) >= kLongPart)
    return std::nullopt;
  const Dataset data =
      make_dataset(corpus, val, /*block_size=*/0, config.tokenizer, tokenizer, tokenizer_options(config));
  return static_cast<std::int64_t>(val > 0 ? std::min(data.train.size(), data.val.size()) : data.train.size());
}

}  // namespace

std::int64_t DataFacts::most_tokens(const std::string& kind) const {
  constexpr std::int64_t kSpaceAndEnd = 2;  // the space that is put before the first word, and the end of the line
  const TokenizerKind& row = tokenizer_kind(kind);
  // A vocabulary whose size is limited spells what it lacks by bytes.
  const bool by_bytes = row.vocabulary == Vocabulary::bytes || row.has_limit;
  return (by_bytes ? longest_bytes : longest_characters) + kSpaceAndEnd;
}

DataFacts data_facts(const Corpus& corpus, const Config& config, const std::shared_ptr<const Tokenizer>& tokenizer) {
  DataFacts facts{.bytes = size_of_text(corpus)};
  const TaskRule& rule = task_rule(config);
  if (rule.plain_text()) {
    facts.fewest_tokens = fewest_tokens(corpus, config, tokenizer);
    return facts;
  }
  const Normalization form = parse_normalization(config.normalize);
  std::string source, target;
  const auto add = [&](std::string& column, std::string_view line) {
    const std::string text = normalize(line, form);
    facts.longest_bytes = std::max(facts.longest_bytes, std::ssize(text));
    facts.longest_characters = std::max(facts.longest_characters, count_code_points(text));
    column.append(text) += '\n';
  };
  for (const LinePair& pair : read_pairs(corpus, rule.labels ? PairKind::labels : PairKind::translation)) {
    add(source, pair.source);
    if (!rule.labels) add(target, pair.target);
    ++facts.lines;
  }
  const auto has_few_words = [](std::string_view text) { return new_word_share(text) <= kFewNewWords; };
  if (has_few_words(source) && has_few_words(target)) facts.tokenizer = "word";
  return facts;
}

}  // namespace maki
