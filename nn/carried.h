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

class CarriedStates {
 public:
  CarriedStates() = default;  ///< of a model that carries nothing
  /// Empty states, for `batch` rows in each of `micro_batches` micro-batches. The model's store need not be sealed.
  /// Throws Error unless the states have the form that Model::make_carried() describes.
  CarriedStates(const Model& model, std::int64_t micro_batches, std::int64_t batch);

  /// Whether the model carries anything.
  bool any() const { return !states_.empty(); }
  /// What Model::loss() is given for a micro-batch; null if nothing is carried.
  State* of(std::int64_t micro) const;
  /// The type of its tensors. Requires: any().
  DType dtype() const { return tensors_.front()->dtype(); }
  /// Forgets everything.
  void clear();

  /// The number of elements of all tensors after each row has read `tokens` tokens, and of full states.
  std::int64_t numel_after(std::int64_t tokens) const;
  std::int64_t capacity_numel() const;
  /// A copy of all tensors, one after the other: by micro-batch, then in the order of State::tensors(). Requires:
  /// any().
  Tensor values() const;
  /// Restores what values() returned after each row had read `tokens` tokens. Requires: any(), and values of the right
  /// type. Throws Error unless there are numel_after(tokens) of them.
  void restore(const Tensor& values, std::int64_t tokens);

  /// Gives the states at its end the contents that they had at its beginning, unless keep() is called: what was
  /// abandoned in the meantime has no effect. One at a time.
  class Rewind {
   public:
    explicit Rewind(CarriedStates& states);
    ~Rewind();
    Rewind(const Rewind&) = delete;
    Rewind& operator=(const Rewind&) = delete;

    /// Restores the contents now. They are restored at the end as well.
    void now();
    void keep() { kept_ = true; }

   private:
    CarriedStates& states_;
    bool kept_ = false;
  };

 private:
  std::int64_t length_after(std::int64_t tokens) const;

  std::vector<std::unique_ptr<State>> states_;
  std::vector<Tensor*> tensors_;  // of all states
  std::vector<Tensor> former_;    // handles for Rewind, as many as tensors_
};

}  // namespace maki
