// How the ranks of a team come to train the same model: rank 0 reads options, text and checkpoint, as one process does,
// and gives the others what they need to make the same task and the same trainer.
#pragma once

#include <memory>
#include <string>

#include "data/dataset/pairs.h"
#include "data/text/corpus.h"
#include "train/app/flags.h"
#include "train/loop/plan/step_timer.h"
#include "train/loop/task.h"
#include "train/run/config/config.h"

namespace maki {

/// Rank 0: the task of make_task(), without teachers, which the others make as well. They read the text where they can
/// read the same one, and are sent it otherwise. Throws what make_task() throws; CorpusError if a prepared corpus
/// cannot be read everywhere, and Error if a rank makes other tokens of the text.
std::unique_ptr<Task> make_shared_task(Config config, const Corpus& corpus, const PairTokenizers& tokenizers,
                                       bool finds_specials);
/// Rank 0: that task with the teachers of the configuration, by taught(), which the others make of theirs as well.
std::unique_ptr<Task> share_teachers(const Config& config, std::unique_ptr<Task> task);
/// Rank 0: announces a trainer of that task, which it then makes. Does nothing for a process alone.
void share_training(const Config& config);
/// Rank 0: the same for a trainer of a teacher, on the data of `task` in the order of the teacher's seed. Returns that
/// task.
std::unique_ptr<Task> share_teacher_training(const Config& teacher, const Task& task);

/// Rank 0: times steps as all ranks together take them.
class SharedStepTimer final : public StepTimer {
 public:
  /// Requires: the flags outlive the timer.
  explicit SharedStepTimer(const ConfigFlags& flags) : flags_(flags) {}
  StepTime time_step(const Config& config, const VocabSizes& vocab) override;

 private:
  const ConfigFlags& flags_;
};

/// The configuration with a micro-batch for each of so many ranks, unless the flags set grad_accum. If they set
/// batch_size, each is as large as that says; else all together have as many sequences as the steps of `config`, as
/// nearly as possible.
Config divided_among_ranks(Config config, const ConfigFlags& flags, std::int64_t ranks);

/// The other ranks: take part in what rank 0 does, until it has finished. Returns the exit code of rank 0.
int follow_shared_runs();
/// Rank 0: lets them go.
void end_shared_runs(int exit_code);

}  // namespace maki
