#include "data/dataset/dataset.h"

#include <fmt/ranges.h>

#include "data/text/error.h"
#include "data/text/utf8.h"

namespace maki {

std::int64_t count_code_points(const std::vector<std::string_view>& pieces) {
  std::int64_t count = 0;
  for (const std::string_view piece : pieces) count += count_code_points(piece);
  return count;
}

Tokens encode_pieces(const Tokenizer& tokenizer, const std::vector<std::string_view>& pieces) {
  Tokens tokens(tokenizer.vocab_size());
  std::size_t bound = 0;
  for (const std::string_view piece : pieces) bound += tokenizer.token_bound(piece);
  tokens.reserve(bound);
  for (const std::string_view piece : pieces) {
    tokens.begin_piece();
    tokenizer.encode(piece, tokens);
  }
  return tokens;
}

Dataset make_dataset(const Corpus& corpus, double val_fraction, std::int64_t block_size,
                     const std::string& tokenizer_kind, std::shared_ptr<const Tokenizer> tokenizer,
                     const TokenizerOptions& tokenizer_options) {
  Dataset data;
  if (tokenizer) {
    const auto unknown = tokenizer->unknown(corpus.text);
    check<CorpusError>(unknown.empty(), "{}", unknown_sentence(tokenizer->vocab_size(), unknown));
  }
  const SplitText split = split_text(corpus, val_fraction);
  data.tokenizer = tokenizer ? std::move(tokenizer)
                             : std::shared_ptr<const Tokenizer>(
                                   make_tokenizer(tokenizer_kind, {split.train, split.val}, tokenizer_options));
  data.corpus_hash = corpus.hash;
  data.characters = corpus.characters;
  data.train = encode_pieces(*data.tokenizer, split.train);
  data.val = encode_pieces(*data.tokenizer, split.val);
  const auto require = [&](const char* side, const Tokens& tokens) {
    check<CorpusError>(static_cast<std::int64_t>(tokens.size()) >= block_size + 1,
                       "{}: the {} text must have at least block_size + 1 = {} tokens; it has {} of {} in total; use "
                       "more text, a smaller --block-size or another --val-fraction (0: no validation)",
                       fmt::join(corpus.sources, " "), side, block_size + 1, tokens.size(),
                       data.train.size() + data.val.size());
  };
  require("training", data.train);
  if (val_fraction > 0) require("validation", data.val);
  if (corpus.entropy_per_char) {
    const bool all = data.val.empty();
    data.best_possible_loss = *corpus.entropy_per_char *
                              static_cast<double>(count_code_points(all ? split.train : split.val)) /
                              static_cast<double>(all ? data.train.size() : data.val.size());
  }
  return data;
}

}  // namespace maki
