// Creates the task that a configuration describes (train/run/config/tasks.h has their names), from the data of a run,
// from data to evaluate a model on, or from random numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset/pairs.h"
#include "data/text/corpus.h"
#include "data/tokenizer/unknown_characters.h"
#include "train/loop/task.h"

namespace maki {

struct EvalRequest {
  bool own = false;               ///< evaluate the validation part that the corpus has in a run; otherwise all of it
  std::string unknown = "error";  ///< what to do with characters that a vocabulary lacks: "error", "skip", "replace"
  std::string labels = {};        ///< CheckpointState::labels of the model, for a task that has labels
  std::string ngram_counts = {};  ///< CheckpointState::ngram_counts of the model
  std::vector<std::string> other_counts = {};  ///< of further models, for Batch::other_priors
  std::int64_t stride = 0;                     ///< of windows that predict the next token (EvalBatches); 0: block_size
  bool training_text = false;  ///< if `own`, also the part that it was trained on; for tasks on plain text
};

/// How a task is made, by the functions below: a row of the table in tasks.cpp, which stands in the file of its class.
struct TaskKind {
  const char* name;
  std::unique_ptr<Task> (*make)(const Config&, const Corpus&, const PairTokenizers&);
  std::unique_ptr<Task> (*make_eval)(const Config&, const Corpus&, const PairTokenizers&, const EvalRequest&);
  std::unique_ptr<Task> (*make_random)(const Config&, const VocabSizes&, std::int64_t batches);
};

/// The task of a run on this corpus, with the given tokenizers or else with new ones. Tasks that read no source use
/// `tokenizers.target` alone. Throws CorpusError if the corpus does not fit the task, and what taught() throws.
std::unique_ptr<Task> make_task(const Config& config, const Corpus& corpus, const PairTokenizers& tokenizers = {});

/// A task with the corpus as validation data alone, to evaluate a model on. Throws CorpusError if it does not fit the
/// task, and Error if the request does not.
std::unique_ptr<Task> make_eval_task(const Config& config, const Corpus& corpus, const PairTokenizers& tokenizers,
                                     const EvalRequest& request);

/// Random training data, where it does not matter what is learned: for benchmarks and the gradient check. Enough for
/// `batches` different micro-batches, a function of config.seed.
std::unique_ptr<Task> make_random_task(const Config& config, const VocabSizes& vocab, std::int64_t batches);

}  // namespace maki
