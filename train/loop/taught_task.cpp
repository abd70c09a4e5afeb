#include "train/loop/taught_task.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/ops.h"
#include "data/dataset/window_batches.h"
#include "data/io/number.h"
#include "data/mixing/held_out_expectations.h"
#include "data/tokenizer/special_text.h"
#include "train/loop/language_model_task.h"
#include "train/loop/observed_logits.h"
#include "train/loop/score_tokens.h"
#include "train/run/values_by_name.h"

namespace maki {
namespace {

using Teachers = std::vector<std::unique_ptr<LoadedModel>>;

Teachers load_teachers(const Config& config) {
  Teachers teachers;
  for (const std::string& path : config.teacher) {
    if (path == kCountingTeacher) continue;
    check(!own_teacher_steps(path), "teacher: {} must be trained first; name its checkpoint", path);
    const LoadedModel& added =
        *teachers.emplace_back(reading_teacher([&] { return std::make_unique<LoadedModel>(path); }));
    const LoadedModel& first = *teachers.front();
    if (!added.state.ngram_counts.empty() && added.state.ngram_counts == first.state.ngram_counts)
      added.model->as_generator()->use_prior(first.generator().prior());  // one table in memory
  }
  return teachers;
}

// What the counts say follows from the text and the tokenizer, which checkpoints record.
std::string taught_by(const Config& config, const Teachers& teachers) {
  if (config.teacher.empty()) return "";
  std::string text = fmt::format("{}", config.teacher_weight);
  for (const auto& teacher : teachers) text += fmt::format(" {}", hash_of_values(teacher->store));
  if (has_counting_teacher(config)) text += " counts";
  return text;
}

// The words of taught_by: the weight, the hash of each network, and "counts" if they teach.
std::vector<std::string> recorded_teaching(const Config& config) {
  std::istringstream words(config.taught_by);
  return {std::istream_iterator<std::string>(words), {}};
}

std::string teachers_text(std::ptrdiff_t networks, bool counts) {
  const std::string text = networks == 0 ? "" : pluralize(networks, "run");
  if (!counts) return text.empty() ? "none" : text;
  return text.empty() ? std::string(kCountingTeacher) : fmt::format("{} and {}", text, kCountingTeacher);
}

// Requires: require_same_teaching().
void require_same_values(const Config& config, const Teachers& teachers) {
  const std::vector<std::string> recorded = recorded_teaching(config);
  for (std::size_t i = 0; i < teachers.size() && !recorded.empty(); ++i) {
    check(recorded[i + 1] == hash_of_values(teachers[i]->store),
          "teacher: {} has other values than teacher {} of this run; name the same checkpoints, in the order of before",
          teachers[i]->path, i + 1);
  }
}

// The counts of the text that the task reads.
std::unique_ptr<const HeldOutExpectations> counting_teacher(const Task& task) {
  constexpr std::int64_t kMaxTokens = std::int64_t{4} << 20;  // counted in some minutes; 1.6 GB are kept at most
  const LanguageModelTask* const text = task.as_language_model();
  check(text != nullptr, "teacher: {} counts the tokens of a text; use `task` next_token", kCountingTeacher);
  const Dataset& data = text->dataset();
  const auto tokens = static_cast<std::int64_t>(data.train.size());
  check(tokens <= kMaxTokens, "teacher: {} counts at most {} tokens of a text; got {}; use a run as teacher",
        kCountingTeacher, kMaxTokens, tokens);
  return std::make_unique<const HeldOutExpectations>(*data.tokenizer, data.train);
}

// `data` is what the task reads, with its tokenizers.
void require_fits(const LoadedModel& teacher, const Config& config, const CheckpointState& data) {
  const CheckpointState& its = teacher.state;
  check_predicts_next(teacher);
  check(teacher.model->make_carried(1) == nullptr,
        "teacher: {} remembers what it has read before its window, which a teacher must not; use a run of another "
        "`model` than {}",
        teacher.path, teacher.model->kind());
  check(
      same_ids(*teacher.tokenizer, *data.tokenizers.target),
      "teacher: {} has other tokens than this run; omit the options of the tokenizer, and it has those of the teacher",
      teacher.path);
  check(its.config.block_size >= config.block_size,
        "teacher: {} has a context of {} tokens, and this run has one of {}; lower `block_size`, or use another "
        "teacher",
        teacher.path, its.config.block_size, config.block_size);
  // What a count says of the very text that it was made of says nothing about the next one. So batches have the counts
  // of the other parts of the text, which are those of the teacher if both have counted the same.
  check(its.config.ngram_prior == 0 || its.ngram_counts == data.ngram_counts,
        "teacher: {} has counted n-grams of up to {} tokens of its text, and this run has not counted the same; use a "
        "teacher that was trained on this text, and an `ngram_prior` of {}",
        teacher.path, its.config.ngram_prior, its.config.ngram_prior);
}

class TaughtTask final : public Task {
 public:
  TaughtTask(const Config& config, std::unique_ptr<Task> task, Teachers teachers)
      : task_(std::move(task)),
        teachers_(std::move(teachers)),
        counts_(has_counting_teacher(config) ? counting_teacher(*task_) : nullptr),
        weight_(config.teacher_weight / static_cast<double>(config.teacher.size())),
        own_weight_(1 - config.teacher_weight),
        smoothing_(config.label_smoothing),
        dtype_(config.dtype) {}

  void fill(std::int64_t step, std::int64_t micro, Batch& batch) const override {
    batch.expected = {};
    task_->fill(step, micro, batch);
    Tensor sum;
    for (const auto& teacher : teachers_) {
      const Tensor p = probabilities(*teacher, batch);
      sum = sum ? add(sum, p) : p;
    }
    if (counts_) {
      const Tensor p = counted(step, micro, batch.targets);
      sum = sum ? add(sum, p) : p;
    }
    batch.expected = expected(sum, batch.targets);
  }

  std::unique_ptr<Model> make_model(const Scope& scope) const override { return task_->make_model(scope); }
  VocabSizes vocab_sizes() const override { return task_->vocab_sizes(); }
  const LanguageModelTask* as_language_model() const override { return task_->as_language_model(); }
  std::int64_t targets(std::int64_t step) const override { return task_->targets(step); }
  std::int64_t tokens_in_step(std::int64_t step) const override { return task_->tokens_in_step(step); }
  std::int64_t tokens_before(std::int64_t step) const override { return task_->tokens_before(step); }
  double epochs(std::int64_t steps) const override { return task_->epochs(steps); }
  std::int64_t eval_batches(Part part) const override { return task_->eval_batches(part); }
  void fill_eval(Part part, std::int64_t i, Batch& batch) const override { task_->fill_eval(part, i, batch); }
  CheckpointState data_state() const override { return task_->data_state(); }
  std::string describe_data() const override { return task_->describe_data(); }
  std::string describe_step() const override { return task_->describe_step(); }
  std::optional<double> best_possible_loss() const override { return task_->best_possible_loss(); }
  std::optional<CountingReport> counting(const StopRequest& stop) const override { return task_->counting(stop); }
  bool has_answers() const override { return task_->has_answers(); }
  Answers answers(const Model& model, std::int64_t i) const override { return task_->answers(model, i); }
  std::vector<ReportLine> measure(const Model& model, const SampledLoss& loss, const MeasureOptions& options,
                                  const StopRequest& stop) const override {
    return task_->measure(model, loss, options, stop);
  }
  std::optional<std::string> sample(const Model& model, std::uint64_t seed, std::int64_t step,
                                    const StopRequest& stop) const override {
    return task_->sample(model, seed, step, stop);
  }

 private:
  // [B · T, V]. The prior of the batch is that of every teacher that has one.
  Tensor probabilities(const LoadedModel& teacher, const Batch& batch) const {
    Batch its = batch;
    if (!teacher.generator().prior()) its.prior = {};
    ObservedLogits logits;
    teacher.model->loss(its, {.ignored = kIgnoredTarget, .sum = true});
    return convert(logits.probabilities(), dtype_);
  }

  // [B · T, V], of targets [B, T].
  Tensor counted(std::int64_t step, std::int64_t micro, const Tensor& targets) const {
    const LanguageModelTask& text = *task_->as_language_model();
    const std::vector<std::int64_t> starts = text.window_starts(step, micro);
    const auto tokens = static_cast<std::int64_t>(text.dataset().train.size());
    const std::int64_t vocabulary = text.dataset().tokenizer->vocab_size(), length = targets.shape()[1];
    Tensor p = empty({targets.numel(), vocabulary}, DType::float32);
    parallel_for(targets.numel(), vocabulary, [&](std::int64_t row) {
      const std::int64_t target = starts[static_cast<std::size_t>(row / length)] + row % length + 1;
      counts_->probabilities(target % tokens,
                             {p.data<float>() + row * vocabulary, static_cast<std::size_t>(vocabulary)});
    });
    return dtype_ == DType::float32 ? p : convert(p, dtype_);
  }

  // Of the sum of what the teachers predict, [B · T, V], and targets [B, T] → [B, T, V].
  Tensor expected(Tensor mixed, const Tensor& targets) const {
    const std::int64_t vocabulary = mixed.shape().cols();
    dispatch(dtype_, [&]<class T>() {
      T* const to = mixed.data<T>();
      const std::int32_t* const target = targets.data<std::int32_t>();
      const auto weight = static_cast<T>(weight_);
      const auto others = static_cast<T>(own_weight_ * smoothing_ / static_cast<double>(vocabulary));
      const auto own = static_cast<T>(own_weight_ * (1 - smoothing_));
      parallel_for(targets.numel(), vocabulary, [&](std::int64_t row) {
        T* const out = to + row * vocabulary;
        if (target[row] == kIgnoredTarget) {
          std::fill_n(out, vocabulary, T{0});
          return;
        }
        std::for_each_n(out, vocabulary, [weight, others](T& p) { p = weight * p + others; });
        out[target[row]] += own;
      });
    });
    return reshape(mixed, {targets.shape()[0], targets.shape()[1], vocabulary});
  }

  std::unique_ptr<Task> task_;
  Teachers teachers_;
  std::unique_ptr<const HeldOutExpectations> counts_;  // null unless they teach
  double weight_, own_weight_, smoothing_;             // of each teacher, and of the text
  DType dtype_;
};

}  // namespace

std::string taught_by(const Config& config) { return taught_by(config, load_teachers(config)); }

void require_same_teaching(const Config& config) {
  const std::vector<std::string> recorded = recorded_teaching(config);
  if (recorded.empty()) return;
  const bool counted = recorded.back() == "counts", counts = has_counting_teacher(config);
  const std::ptrdiff_t taught = std::ssize(recorded) - (counted ? 2 : 1),
                       networks = std::ssize(config.teacher) - (counts ? 1 : 0);
  check(taught == networks && counted == counts,
        "teacher: this run learns from {}; got {}; name what it has learned from", teachers_text(taught, counted),
        teachers_text(networks, counts));
  const std::string weight = fmt::format("{}", config.teacher_weight);
  check(weight == recorded.front(), "teacher_weight: is fixed for this run at {}; got {}; omit `teacher_weight`",
        recorded.front(), weight);
}

std::unique_ptr<Task> taught(const Config& config, std::unique_ptr<Task> task) {
  require_same_teaching(config);
  Teachers teachers = load_teachers(config);
  CheckpointState data = task->data_state();
  data.tokenizers = load_tokenizers(data);
  for (const auto& teacher : teachers) require_fits(*teacher, config, data);
  require_same_values(config, teachers);
  return std::make_unique<TaughtTask>(config, std::move(task), std::move(teachers));
}

}  // namespace maki
