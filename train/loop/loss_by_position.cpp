#include "train/loop/loss_by_position.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <stdexcept>

#include "autograd/recording.h"
#include "data/dataset/window_batches.h"
#include "data/io/number.h"
#include "train/loop/evaluate.h"
#include "train/loop/observed_logits.h"

namespace maki {
namespace {

// The losses of the targets of a batch, in their order, from the logits of all positions or of the targets alone.
std::vector<double> target_losses(const ObservedLogits& logits, std::span<const std::int32_t> targets) {
  constexpr std::int64_t kRowsAtOnce = 64;  // bounds the memory for probabilities: 13 MB with GPT-2's vocabulary
  const std::int64_t rows = logits.rows();
  std::vector<std::int32_t> ids(targets.begin(), targets.end());
  if (rows != std::ssize(ids)) std::erase(ids, kIgnoredTarget);
  if (rows != std::ssize(ids)) throw std::logic_error("by position: the logits of this model are of other tokens");
  std::vector<double> losses;
  for (std::int64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
    const std::int64_t end = std::min(begin + kRowsAtOnce, rows);
    const Tensor logs = logits.log_probabilities(begin, end);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int32_t id = ids[static_cast<std::size_t>(i)];
      if (id != kIgnoredTarget) losses.push_back(-logs.at((i - begin) * logs.shape().cols() + id));
    }
  }
  return losses;
}

// That the losses of single targets belong to the loss is not taken on trust.
void require_same_sum(const std::vector<double>& losses, double loss) {
  constexpr double kMaxError = 1e-3;  // as a share of the loss: far above rounding, far below any mistake
  double sum = 0;
  for (const double x : losses) sum += x;
  if (!(std::abs(sum - loss) <= kMaxError * std::max(1.0, std::abs(loss))))
    throw std::logic_error("by position: the probabilities do not give the loss of this model");
}

}  // namespace

void add_to_positions(const Batch& batch, const std::vector<double>& losses, std::vector<PositionLoss>& positions) {
  const auto targets = batch.targets.values<std::int32_t>();
  const auto length = static_cast<std::size_t>(batch.targets.shape()[1]);
  positions.resize(std::max(positions.size(), length));
  std::size_t next = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == kIgnoredTarget) continue;
    PositionLoss& position = positions[i % length];
    position.sum += losses.at(next++);
    ++position.targets;
  }
}

bool visit_target_losses(const Model& model, const Task& task, Part part, std::int64_t most, const StopRequest& stop,
                         const std::function<void(const Batch&, const std::vector<double>&)>& use) {
  const ProductPrecision precision(model.precision);
  const AsRecorded rounding;
  ObservedLogits logits;
  return visit_batches(model, task, part, most, stop, [&](const Batch& batch, State* carried) {
    logits.forget();
    const Tensor loss = model.loss(batch, {.ignored = kIgnoredTarget, .sum = true}, carried);
    const std::vector<double> losses = target_losses(logits, batch.targets.values<std::int32_t>());
    require_same_sum(losses, loss.item());
    use(batch, losses);
  });
}

std::optional<std::vector<PositionLoss>> loss_by_position(const Model& model, const Task& task, Part part,
                                                          std::int64_t most, const StopRequest& stop) {
  std::vector<PositionLoss> positions;
  const auto use = [&](const Batch& batch, const std::vector<double>& losses) {
    add_to_positions(batch, losses, positions);
  };
  if (!visit_target_losses(model, task, part, most, stop, use)) return std::nullopt;
  return positions;
}

std::vector<ReportLine> measure_by_position(const std::vector<PositionLoss>& losses) {
  std::vector<ReportLine> list = {{"by position", "mean loss at the positions of a sequence, in nats per target"}};
  Facts facts;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const PositionLoss& loss = losses[i];
    if (loss.targets == 0) continue;
    facts.emplace_back(
        "",
        Facts{{"position", i + 1}, {"loss", loss.sum / static_cast<double>(loss.targets)}, {"targets", loss.targets}});
  }
  for (std::size_t begin = 0, end = 1; begin < losses.size(); begin = end, end *= 2) {
    PositionLoss range;
    const std::size_t last = std::min(end, losses.size());
    for (std::size_t i = begin; i < last; ++i) {
      range.sum += losses[i].sum;
      range.targets += losses[i].targets;
    }
    if (range.targets == 0) continue;
    const std::string name = last - begin == 1 ? fmt::format("{}", last) : fmt::format("{}-{}", begin + 1, last);
    list.push_back({"  " + name, fmt::format("{:.4f} ({})", range.sum / static_cast<double>(range.targets),
                                             pluralize(range.targets, "target"))});
  }
  list.push_back({"", "", {{"by_position", facts}}});
  return list;
}

}  // namespace maki
