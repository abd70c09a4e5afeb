#include "train/loop/tasks.h"

#include <fmt/ranges.h>
#include <utility>

#include "autograd/core/check.h"
#include "autograd/core/table.h"
#include "data/dataset/dataset.h"
#include "data/dataset/token_file.h"
#include "data/io/error.h"
#include "train/loop/language_model_task.h"
#include "train/loop/masked_task.h"
#include "train/loop/random_dataset.h"
#include "train/loop/taught_task.h"
#include "train/run/config/configured_tokenizer.h"

namespace maki {

// Each in its own file.
extern const TaskKind kTranslate, kClassify;

namespace {

// As `maki eval` counts them: those of the text, before it is normalized.
std::int64_t validation_characters(const Corpus& corpus, const Config& c, const Dataset& data) {
  if (data.prepared) return data.prepared->facts.val_characters;
  return count_code_points(split_text(corpus, c.val_fraction, data.tokenizer->normalization()).val);
}

// Tasks on plain text, LanguageModelTask and MaskedTask, have the same data.
template <class TextTask>
std::unique_ptr<Task> text_task(const Config& c, const Corpus& corpus, const PairTokenizers& tokenizers) {
  // A document may have any length.
  const std::int64_t fewest = c.respect_documents ? 1 : c.block_size;
  auto data = std::make_shared<const Dataset>(
      make_dataset(corpus, c.val_fraction, fewest, c.tokenizer, tokenizers.target, tokenizer_options(c)));
  check<CorpusError>(!c.respect_documents || data->documents > 0,
                     "respect_documents: {} does not say where its documents end; say what a document is, with "
                     "`documents`, `document_separator` or `json_field`, or omit `respect_documents`",
                     fmt::join(corpus.sources, " "));
  const std::int64_t characters = validation_characters(corpus, c, *data);
  return std::make_unique<TextTask>(c, std::move(data), EvalText{.characters = characters});
}

// A text without a target has no loss, which is no fault of the model.
void require_targets(const Corpus& corpus, const Dataset& data) {
  check<CorpusError>(
      data.val.size() >= 2,
      "{}: has nothing to predict, because a model needs at least two tokens that it knows; the text has "
      "{}; name another text",
      fmt::join(corpus.sources, " "), data.val.size());
}

// Of a corpus that was prepared, the part that the request names is not read again.
template <class TextTask>
std::unique_ptr<Task> prepared_eval_task(const Config& c, const Corpus& corpus, const PairTokenizers& tokenizers,
                                         const EvalRequest& request) {
  const TokenFile& file = *corpus.prepared;
  check<CorpusError>(
      !request.own || file.tokenizer == nullptr || c.val_fraction == file.facts.val_fraction,
      "{}: is the text of this model, prepared with `val_fraction` {}, but the model has learned it with "
      "{}, so that it has learned other parts; prepare the text with that",
      file.path, file.facts.val_fraction, c.val_fraction);
  Dataset data = share_tokens(corpus, request.own ? c.val_fraction : 0, tokenizers.target);
  check<CorpusError>(request.own || data.val.empty(),
                     "{}: is not the corpus of this model, and has training and validation tokens; to measure a whole "
                     "text, name the text, or prepare it with `val_fraction` 0",
                     corpus.files.at(0));
  if (!request.own) data.val = std::exchange(data.train, {});
  require_targets(corpus, data);
  if (!request.training_text) data.train = {};
  const TokenFileFacts& facts = data.prepared->facts;
  EvalText text{.own = request.own,
                .characters = request.own ? facts.val_characters : facts.characters,
                .bytes = request.own ? facts.val_bytes : facts.bytes,
                .unknown_policy = request.unknown};
  text.stride = request.stride;
  text.ngram_counts = request.ngram_counts;
  text.other_counts = request.other_counts;
  if (data.best_possible_loss) {
    text.entropy_per_character =
        *data.best_possible_loss * static_cast<double>(data.val.size()) / static_cast<double>(text.characters);
  }
  return std::make_unique<TextTask>(c, std::make_shared<const Dataset>(std::move(data)), std::move(text));
}

template <class TextTask>
std::unique_ptr<Task> text_eval_task(const Config& c, const Corpus& corpus, const PairTokenizers& tokenizers,
                                     const EvalRequest& request) {
  if (corpus.prepared) return prepared_eval_task<TextTask>(c, corpus, tokenizers, request);
  const auto split = [&] { return split_text(corpus, c.val_fraction, tokenizers.target->normalization()); };
  const KnownText known = known_text(*tokenizers.target, request.own ? split().val : document_texts(corpus),
                                     parse_unknown_policy(request.unknown));
  Dataset data;
  data.tokenizer = tokenizers.target;
  data.val = encode_pieces(*tokenizers.target, known.pieces, piece_kind(corpus));
  require_targets(corpus, data);
  if (request.own && request.training_text)
    data.train = encode_pieces(*tokenizers.target, split().train, piece_kind(corpus));
  EvalText text{.own = request.own,
                .characters = count_code_points(known.pieces),
                .unknown_policy = request.unknown,
                .unknown = known.unknown,
                .unknown_note = known.describe(),
                .entropy_per_character = corpus.entropy_per_char,
                .stride = request.stride,
                .ngram_counts = request.ngram_counts,
                .other_counts = request.other_counts};
  for (const std::string_view piece : known.pieces) text.bytes += static_cast<std::int64_t>(piece.size());
  return std::make_unique<TextTask>(c, std::make_shared<const Dataset>(std::move(data)), std::move(text));
}

template <class TextTask>
std::unique_ptr<Task> text_random_task(const Config& c, const VocabSizes& vocab, std::int64_t batches) {
  // Two windows more than are read, because the windows of an epoch begin at a random token (SequenceOrder).
  const std::int64_t tokens = (batches * c.batch_size + 2) * c.block_size + 1;
  const std::int64_t special = task_rule(c).special_ids, known = vocab.target - special;
  check(known >= 1, "vocab_size: must be at least {}, because the task {} has {} of the ids for itself; got {}",
        special + 1, task_rule(c).name, special, vocab.target);
  Config plain = c;
  plain.respect_documents = false;
  return std::make_unique<TextTask>(
      plain, std::make_shared<const Dataset>(random_dataset(known, tokens, static_cast<std::uint64_t>(c.seed))));
}

constexpr TaskKind kNextToken = {"next_token", text_task<LanguageModelTask>, text_eval_task<LanguageModelTask>,
                                 text_random_task<LanguageModelTask>};
constexpr TaskKind kMasked = {"masked", text_task<MaskedTask>, text_eval_task<MaskedTask>,
                              text_random_task<MaskedTask>};

constexpr const TaskKind* kTaskKindRows[] = {&kNextToken, &kTranslate, &kMasked, &kClassify};
constexpr Table kTaskKinds("task", kTaskKindRows);

const TaskKind& kind_of(const Config& config) { return kTaskKinds.row(task_rule(config).name); }

}  // namespace

std::unique_ptr<Task> make_task(const Config& config, const Corpus& corpus, const PairTokenizers& tokenizers) {
  std::unique_ptr<Task> task = kind_of(config).make(config, corpus, tokenizers);
  return config.teacher.empty() ? std::move(task) : taught(config, std::move(task));
}

std::unique_ptr<Task> make_eval_task(const Config& config, const Corpus& corpus, const PairTokenizers& tokenizers,
                                     const EvalRequest& request) {
  return kind_of(config).make_eval(config, corpus, tokenizers, request);
}

std::unique_ptr<Task> make_random_task(const Config& config, const VocabSizes& vocab, std::int64_t batches) {
  return kind_of(config).make_random(config, vocab, batches);
}

}  // namespace maki
