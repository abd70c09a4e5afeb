// Scope: where a layer's parameters are born. `scope / "h" / 3 / "attn"` builds the path h.3.attn.
#pragma once

#include <fmt/format.h>
#include <string>

#include "autograd/parameter.h"

namespace maki {

class Scope {
 public:
  explicit Scope(ParameterStore& store, std::string path = {}) : store_(&store), path_(std::move(path)) {}

  Scope operator/(const std::string& name) const { return Scope(*store_, path_.empty() ? name : path_ + "." + name); }
  Scope operator/(std::int64_t index) const { return *this / fmt::format("{}", index); }

  Parameter& parameter(const std::string& name, const Shape& shape, Init init) const {
    return store_->add((*this / name).path_, shape, std::move(init));
  }
  DType dtype() const { return store_->dtype(); }

 private:
  ParameterStore* store_;
  std::string path_;
};

}  // namespace maki
