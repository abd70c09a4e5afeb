// Sink: where a backward kernel puts the gradient of one input. `add` false: every element is written and none is read
// (the memory is stale, and 0 · NaN is NaN); `add` true: every element is added to. A null sink is a gradient nobody
// wants.
#pragma once

namespace maki {

template <class T>
struct Sink {
  T* data = nullptr;
  bool add = false;

  explicit operator bool() const { return data != nullptr; }
  void put(long long i, T value) const { data[i] = add ? data[i] + value : value; }
};

}  // namespace maki
