#include "train/app/shared_run.h"

#include <algorithm>
#include <cereal/archives/binary.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <fmt/format.h>
#include <sstream>
#include <utility>

#include "autograd/core/parallel.h"
#include "data/io/error.h"
#include "data/io/hash.h"
#include "data/io/number.h"
#include "train/app/arithmetic.h"
#include "train/app/interrupt.h"
#include "train/app/progress.h"
#include "train/app/ranks.h"
#include "train/app/run_corpus.h"
#include "train/loop/language_model_task.h"
#include "train/loop/tasks.h"
#include "train/loop/taught_task.h"
#include "train/loop/trainer.h"
#include "train/run/loaded_model.h"

namespace maki {

// What a rank needs of a text that it cannot read: all but the notes, which rank 0 prints. cereal finds this function
// by the namespace of its argument.
template <class Archive>
void serialize(Archive& archive, Corpus& corpus) {
  archive(corpus.sources, corpus.text, corpus.joins, corpus.files, corpus.hash, corpus.characters, corpus.story_starts,
          corpus.documents, corpus.entropy_per_char);
}

namespace {

// What rank 0 announces.
enum class Announcement : char { task, teachers, training, teacher_training, timing, end };

// A configuration, and of a timing the vocabularies of its random text.
struct Start {
  std::string config;
  std::int64_t target = 0, source = 0, classes = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(config, target, source, classes);
  }
};

struct TaskStart {
  std::string config, corpus_hash;
  bool finds_specials = false, one_tokenizer = false;
  std::string target, source;  // tokenizers in their saved form; empty: a new one is learned

  template <class Archive>
  void serialize(Archive& archive) {
    archive(config, corpus_hash, finds_specials, one_tokenizer, target, source);
  }
};

template <class T>
std::string packed(const T& value) {
  std::ostringstream out;
  cereal::BinaryOutputArchive archive(out);
  archive(value);
  return std::move(out).str();
}

template <class T>
T unpacked(const std::string& bytes) {
  std::istringstream in(bytes);
  cereal::BinaryInputArchive archive(in);
  T value;
  archive(value);
  return value;
}

template <class T>
void announce(Announcement message, const T& start) {
  if (ranks().size() == 1) return;
  broadcast(ranks(), raw_bytes(message));
  std::string bytes = packed(start);
  broadcast(ranks(), bytes);
}

template <class T>
T announced() {
  std::string bytes;
  broadcast(ranks(), bytes);
  return unpacked<T>(bytes);
}

// The configuration of rank 0, whose number of threads this rank uses as well, if one was given.
Config adopt_config(const std::string& toml) {
  Config config;
  apply_toml(config, toml, "the configuration of rank 0");
  if (config.threads > 0) set_threads(config.threads);
  return config;
}

// Every rank says why it has no text, or nothing. A prepared corpus is read in place, because it may be large.
void send_text(const Corpus& corpus, bool prepared) {
  const std::vector<std::string> refusals = gather_all(ranks(), std::string());
  const auto refused = std::ranges::find_if(refusals, [](const std::string& text) { return !text.empty(); });
  if (refused == refusals.end()) return;
  check<CorpusError>(!prepared, "{}: {}; a prepared corpus must be readable on every machine",
                     ranks().describe(static_cast<int>(refused - refusals.begin())), *refused);
  std::string bytes = packed(corpus);
  broadcast(ranks(), bytes);
}

Corpus received_text(const Config& config, const TaskStart& start) {
  Corpus corpus;
  std::string refusal;
  try {
    check<CorpusError>(std::ranges::find(config.corpus, "-") == config.corpus.end(), "-: only rank 0 can read it");
    corpus = reread_corpus(config, start.corpus_hash, "it must be the same on all machines");
  } catch (const CorpusError& error) {
    refusal = error.what();
  }
  const std::vector<std::string> refusals = gather_all(ranks(), refusal);
  if (std::ranges::all_of(refusals, [](const std::string& text) { return text.empty(); })) return corpus;
  std::string bytes;
  broadcast(ranks(), bytes);
  return refusal.empty() ? corpus : unpacked<Corpus>(bytes);
}

// What two ranks must agree on before they train: the tokens that they made of the text.
std::string summary(const Task& task) {
  const CheckpointState state = task.data_state();
  return fmt::format("corpus {}, {} and {} tokens, vocabulary {}", state.corpus_hash, state.train_tokens,
                     state.val_tokens,
                     hash128_hex(state.tokenizer + state.source_tokenizer + state.labels + state.ngram_counts));
}

void require_same_task(const Task& task) {
  const std::vector<std::string> summaries = gather_all(ranks(), summary(task));
  for (int rank = 1; rank < ranks().size(); ++rank) {
    const std::string& other = summaries[static_cast<std::size_t>(rank)];
    check(other == summaries.front(), "ranks: all must read the same tokens; {} has {}, and {} has {}",
          ranks().describe(0), summaries.front(), ranks().describe(rank), other);
  }
}

// The data of the task in the order of the teacher's seed.
std::unique_ptr<Task> task_of_teacher(const Config& teacher, const Task& task) {
  return std::make_unique<LanguageModelTask>(teacher, *task.as_language_model());
}

std::unique_ptr<Task> followed_task(const TaskStart& start) {
  const Config config = adopt_config(start.config);
  const auto load = [](const std::string& saved) -> std::shared_ptr<const Tokenizer> {
    return saved.empty() ? nullptr : std::shared_ptr<const Tokenizer>(load_tokenizer(saved));
  };
  PairTokenizers known;
  known.target = load(start.target);
  known.source = start.one_tokenizer ? known.target : load(start.source);
  if (start.finds_specials) known = finding_specials(known);
  const Corpus corpus = received_text(config, start);
  std::unique_ptr<Task> task = make_task(config, corpus, known);
  require_same_task(*task);
  return task;
}

}  // namespace

std::unique_ptr<Task> make_shared_task(Config config, const Corpus& corpus, const PairTokenizers& tokenizers,
                                       bool finds_specials) {
  config.teacher.clear();
  if (ranks().size() == 1) return make_task(config, corpus, tokenizers);
  const auto saved = [](const auto& tokenizer) { return tokenizer ? tokenizer->save() : std::string(); };
  announce(Announcement::task, TaskStart{.config = to_toml(config),
                                         .corpus_hash = corpus.hash,
                                         .finds_specials = finds_specials,
                                         .one_tokenizer = tokenizers.target == tokenizers.source,
                                         .target = saved(tokenizers.target),
                                         .source = saved(tokenizers.source)});
  send_text(corpus, corpus.prepared != nullptr);
  std::unique_ptr<Task> task = make_task(config, corpus, tokenizers);
  require_same_task(*task);
  return task;
}

std::unique_ptr<Task> share_teachers(const Config& config, std::unique_ptr<Task> task) {
  announce(Announcement::teachers, Start{.config = to_toml(config)});
  return taught(config, std::move(task));
}

void share_training(const Config& config) { announce(Announcement::training, Start{.config = to_toml(config)}); }

std::unique_ptr<Task> share_teacher_training(const Config& teacher, const Task& task) {
  announce(Announcement::teacher_training, Start{.config = to_toml(teacher)});
  return task_of_teacher(teacher, task);
}

StepTime SharedStepTimer::time_step(const Config& config, const VocabSizes& vocab) {
  const Config divided = divided_among_ranks(config, flags_, ranks().size());
  announce(Announcement::timing, Start{to_toml(divided), vocab.target, vocab.source, vocab.classes});
  return MeasuredStepTimer(ranks()).time_step(divided, vocab);
}

Config divided_among_ranks(Config config, const ConfigFlags& flags, std::int64_t ranks) {
  if (ranks == 1 || flags.sets("grad_accum")) return config;
  const std::int64_t rows = config.batch_size * config.grad_accum;
  config.grad_accum = std::max(ranks, config.grad_accum);
  if (!flags.sets("batch_size")) config.batch_size = std::max<std::int64_t>(1, (rows + ranks / 2) / config.grad_accum);
  return config;
}

int follow_shared_runs() {
  std::unique_ptr<Task> task;
  for (;;) {
    Announcement message{};
    broadcast(ranks(), raw_bytes(message));
    if (message == Announcement::end) {
      int exit_code = 0;
      broadcast(ranks(), raw_bytes(exit_code));
      return exit_code;
    }
    if (message == Announcement::task) {
      task = followed_task(announced<TaskStart>());
      continue;
    }
    const Start start = announced<Start>();
    const Config config = adopt_config(start.config);
    if (message == Announcement::teachers) {
      task = taught(config, std::move(task));
      continue;
    }
    check(message == Announcement::timing || use_arithmetic(newest_arithmetic(config), config.precision),
          "ranks: all must compute in the arithmetic of this run, {}; this one has {}; leave its machine out, or begin "
          "the run with the environment variable MAKI_TARGET set to a target that all have",
          newest_arithmetic(config), arithmetic_here(config.precision));
    std::unique_ptr<Task> other;
    if (message == Announcement::timing)
      other = random_task_to_time(config, {start.target, start.source, start.classes});
    if (message == Announcement::teacher_training) other = task_of_teacher(config, *task);
    const Task& trained = other ? *other : *task;
    // While steps are timed, there is nothing to save, and steps that end early would mislead the plan.
    std::optional<DeferInterrupts> deferred;
    if (message != Announcement::timing) deferred.emplace();
    Trainer(config, trained, trainable_model(config, trained), /*initial_values=*/true, ranks())
        .follow(interrupt_request());
  }
}

void end_shared_runs(int exit_code) {
  if (ranks().size() == 1) return;
  Announcement message = Announcement::end;
  broadcast(ranks(), raw_bytes(message));
  broadcast(ranks(), raw_bytes(exit_code));
}

}  // namespace maki
