// The states that a model carries from one training step to the next (Model::make_carried()): one per micro-batch of a
// step, because each micro-batch has rows of its own.
//
// Thread safety: none; used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nn/model.h"

namespace maki {

/// How many of these states there are, and the types and shapes of their tensors; not the states themselves.
class CarriedLayout {
 public:
  CarriedLayout() = default;  ///< of a model that carries nothing
  /// For `batch` rows in each of `micro_batches` micro-batches. The model's store need not be sealed. Throws Error
  /// unless an empty state has the form that Model::make_carried() describes.
  CarriedLayout(const Model& model, std::int64_t micro_batches, std::int64_t batch);

  /// Whether the model carries anything.
  bool any() const { return !empty_.empty(); }
  /// The type of the tensors. Requires: any().
  DType dtype() const { return dtype_; }
  /// Tokens per row that a state holds after each row has read `tokens` tokens.
  std::int64_t length_after(std::int64_t tokens) const { return tokens < capacity_ ? tokens : capacity_; }
  /// The most tokens per row that a state can hold.
  std::int64_t capacity() const { return capacity_; }
  /// Elements of all tensors of all states together, if the states hold `length` tokens per row; Shape::kMaxElements if
  /// there are more.
  std::int64_t numel(std::int64_t length) const;

 private:
  std::vector<Shape> empty_;  // of the tensors of one empty state
  std::int64_t micro_batches_ = 0, capacity_ = 0;
  DType dtype_ = DType::float32;
};

/// The states themselves.
class CarriedStates {
 public:
  CarriedStates() = default;  ///< of a model that carries nothing
  /// Empty states, with the arguments and errors of their layout.
  CarriedStates(const Model& model, std::int64_t micro_batches, std::int64_t batch);

  bool any() const { return layout_.any(); }
  const CarriedLayout& layout() const { return layout_; }
  /// What Model::loss() is given for a micro-batch; it stays part of this object. Null if nothing is carried. Throws
  /// std::out_of_range if there is no such micro-batch.
  State* of(std::int64_t micro) const;
  /// Forgets everything.
  void clear();

  /// A copy of all tensors, one after the other: by micro-batch, then in the order of State::tensors(). Requires:
  /// any().
  Tensor values() const;
  /// A copy of the tensors of micro-batches [begin, end), in that order. Requires: any().
  Tensor values(std::int64_t begin, std::int64_t end) const;
  /// Restores what values() returned when the states held `length` tokens per row. Requires: any(), and values of the
  /// type of the layout. Throws Error, and changes nothing, unless the length is possible and there are
  /// layout().numel(length) values.
  void restore(const Tensor& values, std::int64_t length);
  /// Restores what values(begin, end) returned when the states held `length` tokens per row; throws as above.
  void restore(const Tensor& values, std::int64_t length, std::int64_t begin, std::int64_t end);

  /// A scope after which the states have the contents that they had before it, unless commit() was called in it: for a
  /// step that is abandoned halfway, and for passes that must not count. At most one exists at a time.
  class Rewind {
   public:
    explicit Rewind(CarriedStates& states);
    ~Rewind();
    Rewind(const Rewind&) = delete;
    Rewind& operator=(const Rewind&) = delete;

    /// Lets the states keep what they contain at the end of the scope.
    void commit() { committed_ = true; }
    /// Restores the former contents, before the end of the scope does so as well.
    void rollback();

   private:
    CarriedStates& states_;
    bool committed_ = false;
  };

 private:
  std::span<Tensor* const> tensors(std::int64_t begin, std::int64_t end) const;  // of these micro-batches

  CarriedLayout layout_;
  std::vector<std::unique_ptr<State>> states_;
  std::vector<Tensor*> tensors_;  // of all states
  std::vector<Tensor> former_;    // handles for Rewind, as many as tensors_
};

}  // namespace maki
