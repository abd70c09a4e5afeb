// Sink: where a backward kernel puts the gradient of one input.
#pragma once

namespace maki {

/// Memory for a gradient of type T, not owned. With `add` false, a kernel writes every element and reads none: the
/// memory is uninitialised, and multiplying stale contents by 0 would keep a NaN. With `add` true, it adds to every
/// element. A null sink means that the gradient is not wanted; only kernels with several sinks accept one.
template <class T>
struct Sink {
  T* data = nullptr;
  bool add = false;

  explicit operator bool() const { return data != nullptr; }
  void put(long long i, T value) const { data[i] = add ? data[i] + value : value; }
};

}  // namespace maki
