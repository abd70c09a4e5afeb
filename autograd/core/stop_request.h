// A request to end long work early.
#pragma once

#include <concepts>
#include <functional>
#include <utility>

namespace maki {

/// Asks whoever does long work to end it: work asks requested() from time to time, in places where it can end. Made of
/// a predicate, such as the look at a flag that a signal handler sets, or `[token] { return token.stop_requested(); }`
/// for a std::stop_token; without one, nothing is ever requested. Once the predicate has returned true it should do so
/// until the work has ended.
///
/// Thread safety: that of the predicate.
class StopRequest {
 public:
  StopRequest() = default;
  template <std::predicate Predicate>
  StopRequest(Predicate asked) : asked_(std::move(asked)) {}  // NOLINT: a predicate is used as the request it makes

  bool requested() const { return asked_ && asked_(); }
  /// Whether there is a predicate, so that it may be requested.
  bool may_be_requested() const { return static_cast<bool>(asked_); }

 private:
  std::function<bool()> asked_;
};

}  // namespace maki
