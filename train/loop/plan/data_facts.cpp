#include "train/loop/plan/data_facts.h"

#include <algorithm>
#include <string_view>

#include "data/dataset/pairs.h"
#include "data/dataset/token_file.h"
#include "data/io/utf8.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/word_tokenizer.h"
#include "train/loop/plan/text_facts.h"
#include "train/run/config/tasks.h"

namespace maki {
namespace {

std::int64_t size_of_text(const Corpus& corpus) {
  if (!corpus.prepared) return std::ssize(corpus.text);
  const TokenFileFacts& facts = corpus.prepared->facts;
  return facts.bytes > 0 ? facts.bytes : facts.train_tokens + facts.val_tokens;
}

}  // namespace

std::int64_t DataFacts::most_tokens(const std::string& kind) const {
  constexpr std::int64_t kSpaceAndEnd = 2;  // the space that is put before the first word, and the end of the line
  const TokenizerKind& row = tokenizer_kind(kind);
  // A vocabulary whose size is limited spells what it lacks by bytes.
  const bool by_bytes = row.vocabulary == Vocabulary::bytes || row.has_limit;
  return (by_bytes ? longest_bytes : longest_characters) + kSpaceAndEnd;
}

DataFacts data_facts(const Corpus& corpus, const Config& config) {
  DataFacts facts{.bytes = size_of_text(corpus)};
  const TaskRule& rule = task_rule(config);
  if (rule.plain_text()) return facts;
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
