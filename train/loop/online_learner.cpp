#include "train/loop/online_learner.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "autograd/core/parallel.h"
#include "data/dataset/window_batches.h"
#include "data/io/error.h"
#include "optim/clip.h"
#include "optim/make_optimizer.h"
#include "train/run/config/tasks.h"

namespace maki {
namespace {

std::int64_t checked_window(const LoadedModel& loaded, const AdaptOptions& o) {
  const Config& config = loaded.state.config;
  check(task_rule(config).predicts_next,
        "adapt: only a model that predicts the next token of a text can learn while it reads; the task of {} is {}",
        loaded.path, task_rule(config).name);
  check(std::isfinite(o.learning_rate) && o.learning_rate >= 0,
        "adapt: the learning rate must be finite and not negative; got {}", o.learning_rate);
  check(o.decay >= 0 && o.decay <= kMaxAdaptDecay, "adapt: the decay must be in [0, {}]; got {}", kMaxAdaptDecay,
        o.decay);
  check(o.window >= 0 && o.window <= config.block_size,
        "adapt: a window has at most {} tokens, the context of the model; got {}", config.block_size, o.window);
  return o.window > 0 ? o.window : std::max<std::int64_t>(1, config.block_size / 2);
}

// g / √v without momentum: Adam with beta1 = 0, so that the average is corrected for its beginning.
std::unique_ptr<Optimizer> make_rms(const Config& config, ParameterStore& store) {
  std::unique_ptr<Optimizer> rms = make_optimizer("adam", {.beta1 = 0, .beta2 = 0.99, .weight_decay = 0}, store);
  rms->set_row_rate(config.ngram_lr_factor);
  return rms;
}

}  // namespace

OnlineLearner::OnlineLearner(const LoadedModel& loaded, const AdaptOptions& options)
    : loaded_(loaded),
      options_(options),
      context_(loaded.state.config.block_size),
      window_(checked_window(loaded, options)),
      copy_(loaded),
      optimizer_(make_rms(loaded.state.config, copy_.store)),
      carried_(copy_.model->make_carried(1)),
      logits_(tape_) {}

// The loss of read[known …], in nats, from the ids before each, of which the model sees those from `begin` on. A state
// that is carried already knows the ids before these. A prior knows all that was read, as in evaluation.
Tensor OnlineLearner::record(std::span<const std::int32_t> read, std::size_t begin, std::size_t known) {
  const std::span<const std::int32_t> ids = read.subspan(begin);
  const std::int64_t length = std::ssize(ids) - 1;
  Batch batch{.ids = tensor(ids.first(ids.size() - 1), {1, length}), .targets = tensor(ids.subspan(1), {1, length})};
  std::fill_n(batch.targets.values<std::int32_t>().begin(), known - begin - 1, kIgnoredTarget);
  batch.target_count = std::ssize(read) - static_cast<std::int64_t>(known);
  if (const TokenPrior* const prior = copy_.model->as_generator()->prior().get()) {
    const auto before = read.first(begin).last(std::min(begin, static_cast<std::size_t>(prior->context_tokens())));
    batch.prior = prior_of(*prior, batch.ids, tensor(before, {1, std::ssize(before)}), DType::float32);
  }
  logits_.forget();
  const Recording on(tape_, RandomContext{});
  return copy_.model->loss(batch, {.ignored = kIgnoredTarget, .sum = true}, carried_.get());
}

// [n, V] for the n = ids.size() − known tokens that were predicted. That they belong to the loss is not taken on trust.
Tensor OnlineLearner::log_probabilities(const Tensor& loss, std::span<const std::int32_t> ids,
                                        std::size_t known) const {
  constexpr double kMaxError = 1e-3;  // as a share of the loss: far above rounding, far below any mistake
  const std::int64_t length = std::ssize(ids) - 1, n = std::ssize(ids) - static_cast<std::int64_t>(known);
  const AsRecorded rounding;
  const Tensor logs = logits_.log_probabilities(length - n, length);
  double sum = 0;
  dispatch(logs.dtype(), [&]<class T>() {
    for (std::int64_t i = 0; i < n; ++i)
      sum -= static_cast<double>(logs.data<T>()[i * logs.shape().cols() + ids[known + static_cast<std::size_t>(i)]]);
  });
  check<DivergedError>(std::isfinite(loss.item()), "{}: the loss is {} after {} windows; lower `adapt_lr`",
                       loaded_.path, loss.item(), windows());
  if (!(std::abs(sum - loss.item()) <= kMaxError * std::max(1.0, std::abs(sum))))
    throw std::logic_error("adapt: the probabilities do not give the loss of this model");
  return logs.dtype() == DType::float32 ? logs : convert(logs, DType::float32);
}

void OnlineLearner::learn(const Tensor& loss, std::int64_t targets) {
  if (options_.learning_rate == 0) {
    tape_.clear();
    return;
  }
  tape_.backward(loss, 1 / static_cast<double>(targets));
  const double norm = grad_norm(copy_.store);
  check<DivergedError>(std::isfinite(norm) && std::isfinite(row_grad_norm(copy_.store)),
                       "{}: the gradient is not finite after {} windows; lower `adapt_lr`", loaded_.path, windows());
  optimizer_->step(options_.learning_rate, clip_factor(norm, loaded_.state.config.grad_clip));
  return_to_trained();
}

// Rows of tables keep what they have learned: to return all of them would be a pass over the whole table, and each is
// used rarely enough not to drift.
void OnlineLearner::return_to_trained() {
  if (options_.decay == 0) return;
  const std::int64_t n = copy_.store.trainable().end;
  dispatch(copy_.store.dtype(), [&]<class T>() {
    const T share = static_cast<T>(options_.decay);
    T* const value = copy_.store.values().data<T>();
    const T* const trained = loaded_.store.values().data<T>();
    parallel_for(n, 1, [&](std::int64_t i) { value[i] += share * (trained[i] - value[i]); });
  });
  copy_.store.mark_changed();
}

// Whether the piece was read to its end.
bool OnlineLearner::read_piece(std::span<const std::int32_t> piece, const std::function<void(const Prediction&)>& use,
                               const StopRequest& stop) {
  if (piece.empty()) return true;
  const ProductPrecision precision(copy_.model->precision);
  if (carried_) carried_->clear();
  use({.token = piece[0], .begins = true, .log_probabilities = {}});
  const auto window = static_cast<std::size_t>(window_), context = static_cast<std::size_t>(context_);
  for (std::size_t at = 1; at < piece.size();) {
    if (stop.requested()) return false;
    const std::size_t end = std::min(at + window, piece.size());
    const std::size_t begin = carried_ ? at - 1 : end - 1 - std::min(end - 1, context);
    const std::span<const std::int32_t> ids = piece.subspan(begin, end - begin);
    const Tensor loss = record(piece.first(end), begin, at);
    const Tensor logs = log_probabilities(loss, ids, at - begin);
    learn(loss, static_cast<std::int64_t>(end - at));
    ++windows_;
    const auto vocabulary = static_cast<std::size_t>(logs.shape().cols());
    for (std::size_t i = 0; at < end; ++at, ++i)
      use({piece[at], false, logs.values<float>().subspan(i * vocabulary, vocabulary)});
  }
  return true;
}

void OnlineLearner::read(TokenSpan text, const std::function<void(const Prediction&)>& use, const StopRequest& stop) {
  std::vector<std::int64_t> ends(text.joins().begin(), text.joins().end());
  ends.push_back(static_cast<std::int64_t>(text.size()));
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    const auto piece = text.ids(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    if (!read_piece(piece, use, stop)) return;
    begin = end;
  }
}

}  // namespace maki
