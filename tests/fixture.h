// Values that another program computed, from tests/fixtures/NAME.txt: lines "name extent extent …", each followed by a
// line with the numbers in row-major order. The script that wrote a file stands beside it (make_*.py); it is not needed
// to build or to test.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/tensor.h"

namespace maki::tests {

/// Tensors by name.
class Fixture {
 public:
  void add(const std::string& name, const Tensor& values) { tensors_[name] = values; }
  /// Throws Error if there is no tensor of this name.
  const Tensor& operator[](const std::string& name) const {
    const auto found = tensors_.find(name);
    check(found != tensors_.end(), "fixture: there is no tensor {}", name);
    return found->second;
  }
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }

 private:
  std::map<std::string, Tensor> tensors_;
};

/// Reads tests/fixtures/NAME.txt; every tensor is float64.
inline Fixture read_fixture(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(MAKI_SOURCE_DIR) / "tests/fixtures" / (name + ".txt");
  std::ifstream file(path);
  check(static_cast<bool>(file), "fixture: cannot read {}", path.string());
  Fixture fixture;
  for (std::string head, body; std::getline(file, head) && std::getline(file, body);) {
    std::istringstream words(head);
    std::string tensor_name;
    words >> tensor_name;
    std::vector<std::int64_t> extents;
    for (std::int64_t extent; words >> extent;) extents.push_back(extent);
    Tensor values = empty(Shape(extents), DType::float64);
    const char* at = body.c_str();
    for (double& value : values.values<double>()) {
      char* end = nullptr;
      value = std::strtod(at, &end);
      check(end != at, "fixture: {} has too few numbers in {}", tensor_name, path.string());
      at = end;
    }
    check(*at == '\0', "fixture: {} has too many numbers in {}", tensor_name, path.string());
    fixture.add(tensor_name, values);
  }
  return fixture;
}

}  // namespace maki::tests
