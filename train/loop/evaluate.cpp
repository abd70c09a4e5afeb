#include "train/loop/evaluate.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/tape.h"
#include "data/dataset/window_batches.h"
#include "data/io/error.h"

namespace maki {
namespace {

// Batches are added in their order, because the order of a sum determines its last bits.
struct LossSum {
  double sum = 0;
  std::int64_t targets = 0;

  void add(const LossSum& batch) {
    sum += batch.sum;
    targets += batch.targets;
  }
  MeanLoss mean() const { return {sum / static_cast<double>(targets), targets}; }
};

LossSum batch_loss(const Model& model, const Batch& batch, State* carried) {
  const Tensor loss = model.loss(batch, {.ignored = kIgnoredTarget, .sum = true}, carried);
  return {loss.item(), batch.target_count};
}

// One pass over evaluation batches, in ascending order. A model that carries a state begins with an empty one, and must
// be given every batch up to the last that it is given.
class Pass {
 public:
  Pass(const Model& model, const Task& task, Part part)
      : model_(model), task_(task), part_(part), carries_(model.make_carried(1) != nullptr) {}

  /// The index of the i-th of `taken` batches of a sample.
  std::int64_t sample_index(std::int64_t i, std::int64_t taken, std::int64_t count) const {
    return carries_ ? i : spread_index(i, taken, count);
  }
  /// How many ranks can share the batches.
  int ranks(const Team& team) const { return carries_ ? 1 : team.size(); }

  Batch fill(std::int64_t i) {
    Batch batch;
    task_.fill_eval(part_, i, batch);
    if (carries_ && !carried_) carried_ = model_.make_carried(batch.ids.shape()[0]);
    return batch;
  }
  State* carried() const { return carried_.get(); }

 private:
  const Model& model_;
  const Task& task_;
  Part part_;
  bool carries_;
  std::unique_ptr<State> carried_;
};

// The results of `one` for 0, 1, …, count - 1; nullopt if a rank is to stop. So many ranks take turns, and tell each
// other after every round.
template <class One>
auto shared_results(std::int64_t count, int ranks, const One& one, const StopRequest& stop, Team& team) {
  using Result = decltype(one(std::int64_t{}));
  std::vector<Result> results, round(static_cast<std::size_t>(team.size()));
  Bounds bounds;
  for (std::size_t rank = 0; rank <= round.size(); ++rank)
    bounds.push_back(static_cast<std::int64_t>(rank * sizeof(Result)));
  for (std::int64_t i = 0; i < count; i += ranks) {
    const bool stops = stop.requested();
    std::optional<std::string> failed;
    try {
      if (!stops && team.rank() < ranks && i + team.rank() < count)
        round[static_cast<std::size_t>(team.rank())] = one(i + team.rank());
    } catch (const CorpusError& error) {
      failed = error.what();
    }
    if (!all_go_on(team, stops, failed)) return std::optional<std::vector<Result>>();
    gather_all(team, raw_bytes(round), bounds);
    for (std::int64_t k = 0; k < ranks && i + k < count; ++k) results.push_back(round[static_cast<std::size_t>(k)]);
  }
  return std::optional(std::move(results));
}

// The losses of batches index(0), index(1), … of a pass.
std::optional<std::vector<LossSum>> batch_losses(const Model& model, Pass& pass, std::int64_t count,
                                                 const std::function<std::int64_t(std::int64_t)>& index,
                                                 const StopRequest& stop, Team& team) {
  const ProductPrecision precision(model.precision);
  const AsRecorded rounding;
  const auto one = [&](std::int64_t i) {
    const Batch batch = pass.fill(index(i));  // before carried(), which it may change
    return batch_loss(model, batch, pass.carried());
  };
  return shared_results(count, pass.ranks(team), one, stop, team);
}

}  // namespace

std::int64_t sampled_batch_count(std::int64_t most, std::int64_t count) {
  return most > 0 ? std::min(most, count) : count;
}

// floor((2i + 1) · count / (2 · taken)), without forming the product, which can exceed 64 bits.
std::int64_t spread_index(std::int64_t i, std::int64_t taken, std::int64_t count) {
  check(0 <= i && i < taken && taken <= count,
        "evaluation: needs 0 <= sample < batches taken <= batches of the text; got {}, {} and {}", i, taken, count);
  const std::int64_t quotient = count / taken, remainder = count % taken;
  return i * quotient + (quotient * taken + (2 * i + 1) * remainder) / (2 * taken);
}

bool visit_batches(const Model& model, const Task& task, Part part, std::int64_t most, const StopRequest& stop,
                   const std::function<void(const Batch&, State*)>& use) {
  const std::int64_t count = task.eval_batches(part), taken = sampled_batch_count(most, count);
  Pass pass(model, task, part);
  for (std::int64_t i = 0; i < taken; ++i) {
    if (stop.requested()) return false;
    const Batch batch = pass.fill(pass.sample_index(i, taken, count));
    use(batch, pass.carried());
  }
  return true;
}

std::optional<MeanLoss> mean_loss(const Model& model, const Task& task, Part part, std::int64_t most,
                                  const StopRequest& stop, Team& team) {
  const std::int64_t count = task.eval_batches(part), taken = sampled_batch_count(most, count);
  Pass pass(model, task, part);
  const auto losses = batch_losses(
      model, pass, taken, [&](std::int64_t i) { return pass.sample_index(i, taken, count); }, stop, team);
  if (!losses) return std::nullopt;
  LossSum sum;
  for (const LossSum& loss : *losses) sum.add(loss);
  return sum.targets > 0 || taken == count ? sum.mean() : mean_loss(model, task, part, 0, stop, team);
}

std::optional<FullAndSampledLoss> full_and_sampled_loss(const Model& model, const Task& task, Part part,
                                                        std::int64_t most, const StopRequest& stop, Team& team) {
  const std::int64_t count = task.eval_batches(part), taken = sampled_batch_count(most, count);
  Pass pass(model, task, part);
  const auto losses = batch_losses(
      model, pass, count, [](std::int64_t i) { return i; }, stop, team);
  if (!losses) return std::nullopt;
  LossSum whole, sample;
  for (const LossSum& loss : *losses) whole.add(loss);
  for (std::int64_t i = 0; i < taken; ++i)
    sample.add((*losses)[static_cast<std::size_t>(pass.sample_index(i, taken, count))]);
  return FullAndSampledLoss{whole.mean(), sample.targets > 0 ? sample.mean() : whole.mean()};
}

std::optional<double> accuracy(const Model& model, const Task& task, std::int64_t most, const StopRequest& stop,
                               Team& team) {
  if (!task.has_answers()) return std::nullopt;
  const std::int64_t count = task.eval_batches(Part::val), taken = sampled_batch_count(most, count);
  const auto one = [&](std::int64_t i) { return task.answers(model, spread_index(i, taken, count)); };
  const auto answers = shared_results(taken, team.size(), one, stop, team);
  if (!answers) return std::nullopt;
  Answers sum;
  for (const Answers& of_batch : *answers) {
    sum.right += of_batch.right;
    sum.all += of_batch.all;
  }
  return static_cast<double>(sum.right) / static_cast<double>(sum.all);
}

}  // namespace maki
