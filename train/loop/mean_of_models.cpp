#include "train/loop/mean_of_models.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/ops.h"
#include "data/tokenizer/special_text.h"
#include "nn/state_of.h"
#include "train/loop/observed_logits.h"

namespace maki {
namespace {

// The states of all models, which have read the same tokens.
class States final : public State {
 public:
  explicit States(std::vector<std::unique_ptr<State>> states) : states_(std::move(states)) {}

  State& operator[](std::size_t model) { return *states_[model]; }
  std::int64_t batch() const override { return states_.front()->batch(); }
  std::int64_t length() const override { return states_.front()->length(); }
  std::int64_t capacity() const override {
    std::int64_t least = kUnlimitedCapacity;
    for (const auto& state : states_) least = std::min(least, state->capacity());
    return least;
  }
  void clear() override {
    for (const auto& state : states_) state->clear();
  }
  void reorder(std::span<const std::int32_t> rows) override {
    for (const auto& state : states_) state->reorder(rows);
  }
  std::vector<std::pair<std::string, Tensor*>> tensors() override {
    std::vector<std::pair<std::string, Tensor*>> all;
    for (const auto& state : states_) {
      for (auto& tensor : state->tensors()) all.push_back(std::move(tensor));
    }
    return all;
  }

 private:
  std::vector<std::unique_ptr<State>> states_;
};

// How a model uses its tokens may differ, and how it finds special ones in a text: that of the first is what counts.
bool same_tokens(const PairTokenizers& a, const PairTokenizers& b) {
  const auto same = [](const auto& one, const auto& other) {
    return one == other || (one && other && same_ids(*one, *other));
  };
  return same(a.source, b.source) && same(a.target, b.target);
}

// The index of n-gram counts in `others`, to which they are added if they are new; -1 for those of the first model, and
// for none.
std::ptrdiff_t index_of_counts(const std::string& counts, const std::string& first, std::vector<std::string>& others) {
  if (counts.empty() || counts == first) return -1;
  const std::ptrdiff_t index = std::ranges::find(others, counts) - others.begin();
  if (index == std::ssize(others)) others.push_back(counts);
  return index;
}

// In the type of those that are there.
void append(const Tensor& one, std::vector<Tensor>& all) {
  all.push_back(all.empty() || one.dtype() == all.front().dtype() ? one : convert(one, all.front().dtype()));
}

}  // namespace

Tensor log_of_mean(const std::vector<Tensor>& log_probabilities) {
  const Tensor& first = log_probabilities.front();
  const std::int64_t columns = first.shape().cols(), rows = first.numel() / columns;
  const auto count = static_cast<double>(log_probabilities.size());
  Tensor mean = empty(first.shape(), first.dtype());
  dispatch(first.dtype(), [&]<class T>() {
    std::vector<const T*> in;
    for (const Tensor& one : log_probabilities) in.push_back(one.data<T>());
    T* const out = mean.data<T>();
    constexpr std::int64_t kExponential = 20;  // operations
    parallel_for(rows, columns * std::ssize(in) * kExponential, [&](std::int64_t row) {
      for (std::int64_t i = row * columns; i < (row + 1) * columns; ++i) {
        double most = -INFINITY, sum = 0;
        for (const T* const one : in) most = std::max(most, static_cast<double>(one[i]));
        for (const T* const one : in) sum += std::exp(static_cast<double>(one[i]) - most);
        out[i] = static_cast<T>(std::isinf(most) ? most : most + std::log(sum / count));
      }
    });
  });
  return mean;
}

MeanOfModels::MeanOfModels(LoadedModel& first, std::vector<std::unique_ptr<LoadedModel>> others)
    : others_(std::move(others)) {
  const auto add = [&](const LoadedModel& loaded) {
    check(loaded.model->as_generator() != nullptr,
          "with: averages what models predict of the next token, and {} is a model of kind {}; omit it", loaded.path,
          loaded.model->kind());
    const Generator& model = loaded.generator();
    const std::string& task = loaded.state.config.task;
    check(task == first.state.config.task, "{}: has the task {}, and {} the task {}; use models of one task",
          loaded.path, task, first.path, first.state.config.task);
    check(same_tokens(loaded.tokenizers, first.tokenizers),
          "{}: has other tokens than {}; use runs on the same text, or with the tokenizer of one of them", loaded.path,
          first.path);
    check((model.make_carried(1) == nullptr) == (first.model->make_carried(1) == nullptr),
          "{}: is of kind {}, and {} of kind {}: only one of them remembers what it has read before its window; use "
          "models of one kind",
          loaded.path, model.kind(), first.path, first.model->kind());
    std::int64_t& context = first.state.config.block_size;
    context = std::min(context, loaded.state.config.block_size);
    models_.push_back(&model);
    counts_.push_back(index_of_counts(loaded.state.ngram_counts, first.state.ngram_counts, other_counts_));
  };
  add(first);
  for (const auto& other : others_) {
    add(*other);
    const std::string& counts = other->state.ngram_counts;
    if (!counts.empty() && counts == first.state.ngram_counts)
      other->model->as_generator()->use_prior(first.generator().prior());
  }
  first_ = std::move(first.model);
}

// The prior of a batch that belongs to the counts of a model; empty if it has none.
const Tensor& MeanOfModels::prior_of(std::size_t model, const Batch& batch) const {
  static const Tensor kNone;
  const std::ptrdiff_t index = counts_[model];
  if (index < 0) return batch.prior;
  return index < std::ssize(batch.other_priors) ? batch.other_priors[static_cast<std::size_t>(index)] : kNone;
}

Tensor MeanOfModels::loss(const Batch& batch, const CrossEntropy& options, State* carried) const {
  Batch its = batch;
  its.other_priors.clear();
  std::vector<Tensor> logs;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    its.prior = prior_of(i, batch);
    ObservedLogits logits;
    models_[i]->loss(its, options, carried == nullptr ? nullptr : &state_of<States>(*carried, kind())[i]);
    append(logits.log_probabilities(0, logits.rows()), logs);
  }
  return cross_entropy(log_of_mean(logs), reshape(batch.targets, {batch.targets.numel()}), options);
}

std::unique_ptr<State> MeanOfModels::make_carried(std::int64_t batch) const {
  std::vector<std::unique_ptr<State>> states;
  for (const Generator* const model : models_) states.push_back(model->make_carried(batch));
  return states.front() ? std::make_unique<States>(std::move(states)) : nullptr;
}

double MeanOfModels::attention_flop(std::int64_t length) const {
  double sum = 0;
  for (const Generator* const model : models_) sum += model->attention_flop(length);
  return sum;
}

std::int64_t MeanOfModels::activation_bytes(std::int64_t batch, std::int64_t length) const {
  std::int64_t most = 0;
  for (const Generator* const model : models_) most = std::max(most, model->activation_bytes(batch, length));
  return most;
}

std::unique_ptr<State> MeanOfModels::start(std::int64_t batch, const Tensor& source, const Tensor& source_mask) const {
  std::vector<std::unique_ptr<State>> states;
  for (const Generator* const model : models_) states.push_back(model->start(batch, source, source_mask));
  return std::make_unique<States>(std::move(states));
}

Tensor MeanOfModels::next_logits(const Tensor& ids, State& state) const {
  States& states = state_of<States>(state, kind());
  std::vector<Tensor> logs;
  for (std::size_t i = 0; i < models_.size(); ++i) append(log_softmax(models_[i]->next_logits(ids, states[i])), logs);
  return log_of_mean(logs);
}

bool MeanOfModels::same_bits_stepwise() const {
  return std::ranges::all_of(models_, [](const Generator* model) { return model->same_bits_stepwise(); });
}

}  // namespace maki
