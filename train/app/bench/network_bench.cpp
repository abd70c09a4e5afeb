#include "train/app/bench/network_bench.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "autograd/core/check.h"

namespace maki {
namespace {

constexpr std::int64_t kSizes[] = {8, 1 << 10, 16 << 10, 256 << 10, 2 << 20, 8 << 20};  // bytes
constexpr std::int64_t kMostReceived = 64 << 20;  // at once, by one rank: more than the steps of training

// What rank 0 tells the others to do.
struct Order {
  Exchange exchange;
  std::int64_t times = 0;  // 0: no more
  bool verified = false;
};

class Exchanger {
 public:
  Exchanger(Team& team, const Exchange& exchange)
      : team_(team), exchange_(exchange), bytes_(static_cast<std::size_t>(exchange.bytes)), sent_(bytes_) {
    bool is_part = false;
    for (int rank = 0; rank < team.size(); ++rank) {
      const bool among = exchange.in_turn ? rank == 0 || rank == team.size() - 1 : rank < exchange.ranks;
      if (among && rank == team.rank()) is_part = true;
      if (among && rank != team.rank()) others_.push_back(rank);
    }
    if (!is_part) others_.clear();
    fill(team.rank(), sent_);
    received_.assign(bytes_ * others_.size(), std::byte{0xFF});
  }

  void run() {
    if (!exchange_.in_turn) return pass(/*sends=*/true, /*receives=*/true);
    pass(team_.leads(), !team_.leads());
    pass(!team_.leads(), team_.leads());
  }

  void verify() {
    run();
    std::vector<std::byte> expected(bytes_);
    for (std::size_t i = 0; i < others_.size(); ++i) {
      fill(others_[i], expected);
      check<std::logic_error>(std::ranges::equal(expected, received_from(i)),
                              "network: {} received other bytes than {} sent", team_.describe(team_.rank()),
                              team_.describe(others_[i]));
    }
  }

 private:
  static void fill(int rank, std::span<std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>((i + 41 * static_cast<std::size_t>(rank)) % 251);
  }
  std::span<std::byte> received_from(std::size_t i) { return std::span(received_).subspan(i * bytes_, bytes_); }

  // Each begins with those after it, so that no rank is sent everything at once.
  void pass(bool sends, bool receives) {
    Messages messages(team_);
    for (std::size_t i = 0; receives && i < others_.size(); ++i) messages.receive(others_[i], received_from(i));
    const auto next = static_cast<std::size_t>(std::ranges::upper_bound(others_, team_.rank()) - others_.begin());
    for (std::size_t i = 0; sends && i < others_.size(); ++i)
      messages.send(others_[(next + i) % others_.size()], sent_);
    messages.wait();
  }

  Team& team_;
  Exchange exchange_;
  std::size_t bytes_;
  std::vector<int> others_;  // that this rank exchanges messages with
  std::vector<std::byte> sent_, received_;
};

// Seconds per exchange. The first one, which is not timed, waits for all ranks to have the order.
double obey(const Order& order, Exchanger& exchanger) {
  if (order.verified) exchanger.verify();
  exchanger.run();
  const double begin = seconds_now();
  for (std::int64_t i = 0; i < order.times; ++i) exchanger.run();
  return (seconds_now() - begin) / static_cast<double>(order.times) / (order.exchange.in_turn ? 2 : 1);
}

void follow(Team& team) {
  for (;;) {
    Order order;
    broadcast(team, raw_bytes(order));
    if (order.times == 0) return;
    Exchanger exchanger(team, order.exchange);
    obey(order, exchanger);
  }
}

// Short exchanges are repeated, so that the clock is read at intervals of a millisecond at least. The last repetition
// that was too short has warmed up.
ExchangeTime time_exchange(Team& team, const Exchange& exchange, double seconds) {
  constexpr double kLeastSeconds = 1e-3;
  constexpr std::int64_t kLeast = 9, kMost = 200;
  Exchanger exchanger(team, exchange);
  const auto once = [&](std::int64_t times, bool verified) {
    Order order{exchange, times, verified};
    broadcast(team, raw_bytes(order));
    return obey(order, exchanger);
  };
  double each = once(3, /*verified=*/true);
  each = once(3, false);
  std::int64_t times = 1;
  for (; each * static_cast<double>(times) < kLeastSeconds; times *= 2) each = once(2 * times, false);
  const auto fit = static_cast<std::int64_t>(seconds / (each * static_cast<double>(times)));
  std::vector<double> all;
  for (std::int64_t i = std::clamp(fit, kLeast, kMost); i > 0; --i) all.push_back(once(times, false));
  return {exchange, Timings(std::move(all))};
}

}  // namespace

std::vector<ExchangeTime> measure_network(Team& team, double seconds) {
  if (!team.leads()) {
    follow(team);
    return {};
  }
  std::vector<ExchangeTime> list;
  const auto measure = [&](std::int64_t ranks, bool in_turn) {
    for (const std::int64_t bytes : kSizes) {
      const Exchange exchange{ranks, bytes, in_turn};
      if (exchange.bytes_sent() <= kMostReceived) list.push_back(time_exchange(team, exchange, seconds));
    }
  };
  measure(2, /*in_turn=*/true);
  for (std::int64_t ranks = 2; ranks < team.size(); ranks *= 2) measure(ranks, false);
  measure(team.size(), false);
  Order end;
  broadcast(team, raw_bytes(end));
  return list;
}

FittedNetwork fit_network(const std::vector<ExchangeTime>& times) {
  const auto [first, last] = std::ranges::minmax_element(times, {}, [](const auto& t) { return t.exchange.bytes; });
  const auto messages = [](const ExchangeTime& t) { return static_cast<double>(t.exchange.messages()); };
  const auto bytes = [](const ExchangeTime& t) { return static_cast<double>(t.exchange.bytes_sent()); };
  FittedNetwork fitted;
  NetworkSpeed& speed = fitted.speed;
  speed.seconds_per_byte = (last->times.median() - first->times.median()) / (bytes(*last) - bytes(*first));
  speed.seconds_per_message =
      std::max(0.0, first->times.median() - speed.seconds_per_byte * bytes(*first)) / messages(*first);
  for (const ExchangeTime& t : times) {
    const double expected = speed.seconds_per_message * messages(t) + speed.seconds_per_byte * bytes(t);
    fitted.largest_deviation = std::max(fitted.largest_deviation, std::abs(expected / t.times.median() - 1));
  }
  return fitted;
}

}  // namespace maki
