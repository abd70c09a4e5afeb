#include "train/loop/evaluate.h"

#include <algorithm>
#include <memory>

#include "autograd/core/check.h"
#include "autograd/tape.h"
#include "data/dataset/window_batches.h"

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
                                  const StopRequest& stop) {
  const ProductPrecision precision(model.precision);
  const AsRecorded rounding;
  LossSum sum;
  const auto add = [&](const Batch& batch, State* carried) { sum.add(batch_loss(model, batch, carried)); };
  if (!visit_batches(model, task, part, most, stop, add)) return std::nullopt;
  return sum.mean();
}

std::optional<FullAndSampledLoss> full_and_sampled_loss(const Model& model, const Task& task, Part part,
                                                        std::int64_t most, const StopRequest& stop) {
  const std::int64_t count = task.eval_batches(part), taken = sampled_batch_count(most, count);
  const ProductPrecision precision(model.precision);
  const AsRecorded rounding;
  Pass pass(model, task, part);
  LossSum whole, sample;
  for (std::int64_t batch = 0, i = 0; batch < count; ++batch) {
    if (stop.requested()) return std::nullopt;
    const Batch tokens = pass.fill(batch);
    const LossSum loss = batch_loss(model, tokens, pass.carried());
    whole.add(loss);
    if (i == taken || batch != pass.sample_index(i, taken, count)) continue;
    sample.add(loss);
    ++i;
  }
  return FullAndSampledLoss{whole.mean(), sample.mean()};
}

}  // namespace maki
