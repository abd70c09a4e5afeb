// What a checkpoint says about its vocabularies and labels.
#include <iterator>

#include "autograd/core/check.h"
#include "data/dataset/labelled.h"
#include "data/ngram/ngram_trie.h"
#include "train/run/checkpoint.h"

namespace maki {

PairTokenizers load_tokenizers(const CheckpointState& state) {
  if (state.tokenizers.target != nullptr) return state.tokenizers;
  const std::shared_ptr<const Tokenizer> target = load_tokenizer(state.tokenizer);
  if (state.source_tokenizer.empty()) return {target, target};
  return {std::shared_ptr<const Tokenizer>(load_tokenizer(state.source_tokenizer)), target};
}

VocabSizes vocab_sizes(const CheckpointState& state) {
  if (!state.labels.empty()) return {state.vocab_size, 0, std::ssize(load_labels(state.labels))};
  if (state.source_tokenizer.empty()) return {state.vocab_size};
  return {state.vocab_size, load_tokenizers(state).source->vocab_size() + task_rule(state.config).special_ids};
}

PairTokenizers check_vocabulary(const CheckpointState& state) {
  const TaskRule& task = task_rule(state.config);
  check(state.source_tokenizer.empty() != has_source_vocabulary(state.config),
        "its section source_tokenizer must hold the tokenizer of the sources");
  const PairTokenizers tokenizers = load_tokenizers(state);
  const std::int64_t ids = tokenizers.target->vocab_size() + task.special_ids;
  check(ids == state.vocab_size, "its tokenizer has {} ids, but its model has {}", ids, state.vocab_size);
  if (task.labels) load_labels(state.labels);
  if (state.config.ngram_prior > 0) {
    const int order = load_ngram_trie(state.ngram_counts, ids).order();
    check(order == state.config.ngram_prior,
          "its n-gram counts are for n-grams of {}, but its model is for those of {}", order, state.config.ngram_prior);
  }
  if (!task.plain_text()) return tokenizers;
  const std::int64_t tokens = state.train_tokens + state.val_tokens;
  // A token is a character or at least a byte, or ends a document. A character has at most 4 bytes, and its normal form
  // at most 18 characters.
  constexpr std::int64_t kMaxBytes = 4, kMaxNormalized = 18;
  const bool normalized = tokenizers.target->normalization() != Normalization::none;
  const std::int64_t ends = tokenizers.target->end_of_text() ? state.characters : 0;
  const bool by_character = is_by_character(*tokenizers.target);
  const std::int64_t least = by_character ? state.characters : 0;
  const std::int64_t most = by_character ? least : state.characters * kMaxBytes * (normalized ? kMaxNormalized : 1);
  check(tokens >= least && tokens <= most + ends, "a text of {} characters cannot have {} tokens", state.characters,
        tokens);
  return tokenizers;
}

}  // namespace maki
