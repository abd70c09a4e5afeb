// A small model that carries a state, with its task: the embedding of a token, plus the mean of the embeddings of the
// tokens in its memory, predicts the next token. Its memory holds the last tokens before the batch, up to a capacity.
#pragma once

#include <algorithm>

#include "data/dataset/window_batches.h"
#include "nn/layers.h"
#include "tests/train/small_checkpoint.h"
#include "train/loop/trainer.h"

namespace maki::tests {

class AveragingState final : public State {
 public:
  AveragingState(std::int64_t batch, std::int64_t capacity, std::int64_t width, DType dtype)
      : capacity_(capacity), memory_(zeros({batch, 0, width}, dtype)) {}

  std::int64_t batch() const override { return memory_.shape()[0]; }
  std::int64_t length() const override { return memory_.shape()[1]; }
  std::int64_t capacity() const override { return capacity_; }
  void clear() override { memory_ = zeros(memory_.shape().with(1, 0), memory_.dtype()); }
  void reorder(std::span<const std::int32_t>) override { throw std::logic_error("not needed"); }
  std::vector<std::pair<std::string, Tensor*>> tensors() override { return {{"memory", &memory_}}; }

  const Tensor& memory() const { return memory_; }
  void append(const Tensor& x) {
    const Tensor all = length() > 0 ? concat({memory_, x}, 1) : x;
    const std::int64_t held = all.shape()[1];
    memory_ = slice(all, 1, std::max<std::int64_t>(0, held - capacity_), held).detach();
  }

 private:
  std::int64_t capacity_;
  Tensor memory_;
};

class AveragingModel final : public Model {
 public:
  AveragingModel(const Scope& scope, std::int64_t vocabulary, std::int64_t width, std::int64_t capacity)
      : table(scope / "wte", vocabulary, width, 1), dtype_(scope.dtype()), capacity_(capacity) {}

  const char* kind() const override { return "gpt"; }
  Tensor loss(const Batch& batch, const CrossEntropy& options, State* carried) const override {
    const Tensor x = table(batch.ids);
    Tensor h = x;
    if (carried != nullptr) {
      auto& state = dynamic_cast<AveragingState&>(*carried);
      if (state.length() > 0) h = x + mean(state.memory(), {1}, true);
      state.append(x.detach());
    }
    return linear_cross_entropy(h, table.weight, batch.targets, options);
  }
  std::unique_ptr<State> make_carried(std::int64_t batch) const override {
    if (capacity_ == 0) return nullptr;
    return std::make_unique<AveragingState>(batch, capacity_, table.weight.shape()[1], dtype_);
  }
  double attention_flop(std::int64_t) const override { return 1; }
  std::int64_t activation_bytes(std::int64_t, std::int64_t) const override { return 1; }

  Embedding table;

 private:
  DType dtype_;
  std::int64_t capacity_;
};

/// Training text and validation text, with rows that are continued.
class AveragingTask : public Task {
 public:
  static constexpr std::int64_t kVocabulary = 7, kWidth = 3;

  AveragingTask(const Config& config, std::int64_t capacity, std::vector<std::int32_t> train,
                std::vector<std::int32_t> val)
      : config_(config),
        capacity_(capacity),
        train_text_(std::move(train)),
        val_text_(std::move(val)),
        train_(train_text_, config.batch_size, config.block_size, config.grad_accum,
               static_cast<std::uint64_t>(config.seed), RowOrder::continued),
        eval_train_(train_text_, config.batch_size, config.block_size, RowOrder::continued),
        eval_val_(val_text_, config.batch_size, config.block_size, RowOrder::continued) {}

  std::unique_ptr<Model> make_model(const Scope& scope) const override {
    return std::make_unique<AveragingModel>(scope, kVocabulary, kWidth, capacity_);
  }
  VocabSizes vocab_sizes() const override { return kVocabulary; }
  void fill(std::int64_t step, std::int64_t micro, Batch& batch) const override {
    make_room(batch, config_.batch_size);
    batch.target_count =
        train_.fill(step, micro, batch.ids.values<std::int32_t>(), batch.targets.values<std::int32_t>());
  }
  std::int64_t targets(std::int64_t step) const override { return train_.targets(step); }
  std::int64_t tokens_in_step(std::int64_t) const override { return train_.tokens_per_step(); }
  double epochs(std::int64_t steps) const override { return train_.epochs(steps); }
  std::int64_t eval_batches(Part part) const override { return batches(part).count(); }
  void fill_eval(Part part, std::int64_t i, Batch& batch) const override {
    make_room(batch, batches(part).rows(i));
    batch.target_count = batches(part).fill(i, batch.ids.values<std::int32_t>(), batch.targets.values<std::int32_t>());
  }
  CheckpointState data_state() const override {
    CheckpointState state;
    state.vocab_size = kVocabulary;
    state.characters = state.train_tokens = std::ssize(train_text_);
    state.corpus_hash = "0123456789abcdef0123456789abcdef";
    state.tokenizer = "maki char tokenizer 1\nabcdefg";
    return state;
  }
  std::string describe_data() const override { return ""; }
  std::string describe_step() const override { return ""; }
  std::vector<ReportLine> measure(const Model&, const SampledLoss&, const MeasureOptions&,
                                  const StopRequest&) const override {
    return {};
  }

  const std::vector<std::int32_t>& train_text() const { return train_text_; }
  const std::vector<std::int32_t>& val_text() const { return val_text_; }
  const TrainBatches& train_batches() const { return train_; }

 private:
  void make_room(Batch& batch, std::int64_t rows) const {
    batch.ids = empty({rows, config_.block_size}, DType::int32);
    batch.targets = empty({rows, config_.block_size}, DType::int32);
  }
  const EvalBatches& batches(Part part) const { return part == Part::train ? eval_train_ : eval_val_; }

  Config config_;
  std::int64_t capacity_;
  std::vector<std::int32_t> train_text_, val_text_;
  TrainBatches train_;
  EvalBatches eval_train_, eval_val_;
};

}  // namespace maki::tests
