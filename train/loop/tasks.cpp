#include "train/loop/tasks.h"

#include <fmt/ranges.h>
#include <utility>

#include "autograd/core/check.h"
#include "autograd/core/table.h"
#include "data/dataset/dataset.h"
#include "data/dataset/token_file.h"
#include "data/io/error.h"
#include "train/loop/classify_task.h"
#include "train/loop/language_model_task.h"
#include "train/loop/masked_task.h"
#include "train/loop/random_dataset.h"
#include "train/loop/translation_task.h"
#include "train/run/config/configured_tokenizer.h"

namespace maki {
namespace {

// What a task is made of; the functions have the arguments of those in tasks.h.
struct TaskKind {
  const char* name;
  std::unique_ptr<Task> (*make)(const Config&, const Corpus&, const PairTokenizers&);
  std::unique_ptr<Task> (*make_eval)(const Config&, const Corpus&, const PairTokenizers&, const EvalRequest&);
  std::unique_ptr<Task> (*make_random)(const Config&, const VocabSizes&, std::int64_t batches);
};

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
  return std::make_unique<TextTask>(c, std::move(data));
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
  const KnownText known =
      known_text(*tokenizers.target, request.own ? split_text(corpus, c.val_fraction).val : document_texts(corpus),
                 parse_unknown_policy(request.unknown));
  Dataset data;
  data.tokenizer = tokenizers.target;
  data.val = encode_pieces(*tokenizers.target, known.pieces, piece_kind(corpus));
  require_targets(corpus, data);
  if (request.own && request.training_text)
    data.train = encode_pieces(*tokenizers.target, split_text(corpus, c.val_fraction).train, piece_kind(corpus));
  EvalText text{.own = request.own,
                .characters = count_code_points(known.pieces),
                .unknown_policy = request.unknown,
                .unknown = known.unknown,
                .unknown_note = known.describe(),
                .entropy_per_character = corpus.entropy_per_char,
                .stride = request.stride,
                .ngram_counts = request.ngram_counts};
  for (const std::string_view piece : known.pieces) text.bytes += static_cast<std::int64_t>(piece.size());
  return std::make_unique<TextTask>(c, std::make_shared<const Dataset>(std::move(data)), std::move(text));
}

template <class TextTask>
std::unique_ptr<Task> text_random_task(const Config& c, const VocabSizes& vocab, std::int64_t batches) {
  // Two windows more than are read, because the windows of an epoch begin at a random token (SequenceOrder).
  const std::int64_t tokens = (batches * c.batch_size + 2) * c.block_size + 1;
  const std::int64_t known = vocab.target - task_rule(c).special_ids;
  Config plain = c;
  plain.respect_documents = false;
  return std::make_unique<TextTask>(
      plain, std::make_shared<const Dataset>(random_dataset(known, tokens, static_cast<std::uint64_t>(c.seed))));
}

// Sources and targets may have block_size tokens with their end tokens.
PairOptions pair_options(const Config& c, double val_fraction, const PairTokenizers& tokenizers) {
  return {.val_fraction = val_fraction,
          .max_tokens = c.block_size - 1,
          .tokenizer = c.tokenizer,
          .tokenizer_options = tokenizer_options(c),
          .shared_vocabulary = c.share_vocabulary,
          .tokenizers = tokenizers};
}

std::unique_ptr<Task> translation_task(const Config& c, const Corpus& corpus, const PairTokenizers& tokenizers) {
  return std::make_unique<TranslationTask>(
      c, std::make_shared<const PairDataset>(make_pair_dataset(corpus, pair_options(c, c.val_fraction, tokenizers))));
}

std::unique_ptr<Task> translation_eval_task(const Config& c, const Corpus& corpus, const PairTokenizers& tokenizers,
                                            const EvalRequest& request) {
  PairOptions options = pair_options(c, request.own ? c.val_fraction : 0, tokenizers);
  options.unknown = parse_unknown_policy(request.unknown);
  options.validate_all = !request.own;
  PairDataset data = make_pair_dataset(corpus, options);
  return std::make_unique<TranslationTask>(c, std::make_shared<const PairDataset>(std::move(data)),
                                           request.own ? "validation part of the run's text" : "whole text");
}

std::unique_ptr<Task> translation_random_task(const Config& c, const VocabSizes& vocab, std::int64_t batches) {
  return std::make_unique<TranslationTask>(
      c, std::make_shared<const PairDataset>(random_pairs(vocab.source > 0 ? vocab.source : vocab.target, vocab.target,
                                                          batches * c.batch_size, c.block_size - 1,
                                                          static_cast<std::uint64_t>(c.seed))));
}

LabelledOptions labelled_options(const Config& c, double val_fraction, const PairTokenizers& tokenizers) {
  return {.val_fraction = val_fraction,
          .max_tokens = c.block_size,
          .tokenizer_kind = c.tokenizer,
          .tokenizer_options = tokenizer_options(c),
          .tokenizer = tokenizers.target};
}

std::unique_ptr<Task> classify_task(const Config& c, const Corpus& corpus, const PairTokenizers& tokenizers) {
  return std::make_unique<ClassifyTask>(c, std::make_shared<const LabelledDataset>(make_labelled_dataset(
                                               corpus, labelled_options(c, c.val_fraction, tokenizers))));
}

std::unique_ptr<Task> classify_eval_task(const Config& c, const Corpus& corpus, const PairTokenizers& tokenizers,
                                         const EvalRequest& request) {
  check(request.unknown == "error", "unknown: applies to plain text; the task of this model is classify");
  LabelledOptions options = labelled_options(c, request.own ? c.val_fraction : 0, tokenizers);
  options.labels = load_labels(request.labels);
  LabelledDataset data = make_labelled_dataset(corpus, options);
  if (!request.own) data.val = std::exchange(data.train, {});
  return std::make_unique<ClassifyTask>(c, std::make_shared<const LabelledDataset>(std::move(data)),
                                        request.own ? "validation part of the run's text" : "whole text");
}

std::unique_ptr<Task> classify_random_task(const Config& c, const VocabSizes& vocab, std::int64_t batches) {
  return std::make_unique<ClassifyTask>(
      c, std::make_shared<const LabelledDataset>(random_labelled(vocab.target, vocab.classes, batches * c.batch_size,
                                                                 c.block_size, static_cast<std::uint64_t>(c.seed))));
}

constexpr TaskKind kTaskKindRows[] = {
    {"next_token", text_task<LanguageModelTask>, text_eval_task<LanguageModelTask>,
     text_random_task<LanguageModelTask>},
    {"translate", translation_task, translation_eval_task, translation_random_task},
    {"classify", classify_task, classify_eval_task, classify_random_task},
    {"masked", text_task<MaskedTask>, text_eval_task<MaskedTask>, text_random_task<MaskedTask>},
};
constexpr Table kTaskKinds("task", kTaskKindRows);

const TaskKind& kind_of(const Config& config) { return kTaskKinds.row(task_rule(config).name); }

}  // namespace

std::unique_ptr<Task> make_task(const Config& config, const Corpus& corpus, const PairTokenizers& tokenizers) {
  return kind_of(config).make(config, corpus, tokenizers);
}

std::unique_ptr<Task> make_eval_task(const Config& config, const Corpus& corpus, const PairTokenizers& tokenizers,
                                     const EvalRequest& request) {
  return kind_of(config).make_eval(config, corpus, tokenizers, request);
}

std::unique_ptr<Task> make_random_task(const Config& config, const VocabSizes& vocab, std::int64_t batches) {
  return kind_of(config).make_random(config, vocab, batches);
}

}  // namespace maki
