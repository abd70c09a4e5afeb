// Scope: a name prefix in a parameter store, below which a layer creates its parameters. `scope / "h" / 3 / "attn"` has
// the path h.3.attn.
#pragma once

#include <fmt/format.h>
#include <string>

#include "autograd/parameter.h"

namespace maki {

struct LowRank;

/// A small value; copies refer to the same store, which must outlive them.
///
/// Thread safety: none; the parameters of one store must be created on one thread at a time.
class Scope {
 public:
  explicit Scope(ParameterStore& store, std::string path = {}) : store_(&store), path_(std::move(path)) {}

  Scope operator/(const std::string& name) const {
    Scope below = *this;
    below.path_ = path_.empty() ? name : path_ + "." + name;
    return below;
  }
  Scope operator/(std::int64_t index) const { return *this / fmt::format("{}", index); }

  /// This scope, but in it and in all scopes below it, the linear layers that the options want get adapters
  /// (nn/low_rank.h). The options must outlive it, its copies and the scopes below it.
  Scope with_adapters(const LowRank& options) const {
    Scope adapted = *this;
    adapted.low_rank_ = &options;
    return adapted;
  }
  const LowRank* low_rank() const { return low_rank_; }  ///< null: none

  /// Creates the parameter `path.name` (ParameterStore::add()).
  Parameter& parameter(const std::string& name, const Shape& shape, Initializer init, std::int64_t matrices = 0) const {
    return store_->add((*this / name).path_, shape, std::move(init), std::nullopt, matrices);
  }
  /// Creates the parameter `path.name` without weight decay, whatever its shape.
  Parameter& undecayed(const std::string& name, const Shape& shape, Initializer init) const {
    return store_->add((*this / name).path_, shape, std::move(init), ParamGroup::no_decay);
  }
  /// Creates the parameter `path.name`, which is not trained.
  Parameter& frozen(const std::string& name, const Shape& shape, Initializer init) const {
    return store_->add((*this / name).path_, shape, std::move(init), ParamGroup::frozen);
  }
  /// Creates the table `path.name` of ParamGroup::rows, initially 0.
  Parameter& table(const std::string& name, const Shape& shape) const {
    return store_->add((*this / name).path_, shape, init::constant(0), ParamGroup::rows);
  }
  DType dtype() const { return store_->dtype(); }
  ParameterStore& store() const { return *store_; }
  const std::string& path() const { return path_; }

 private:
  ParameterStore* store_;
  std::string path_;
  const LowRank* low_rank_ = nullptr;
};

}  // namespace maki
