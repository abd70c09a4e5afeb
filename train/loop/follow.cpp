// The trainers of a team (train/loop/trainer.h): what rank 0 orders, and what its state is where.
#include <exception>

#include "data/io/error.h"
#include "train/loop/trainer.h"

namespace maki {

Trainer::~Trainer() {
  if (!team_.leads() || std::uncaught_exceptions() > exceptions_) return;
  try {
    lead({.kind = Order::Kind::leave});
  } catch (const std::exception&) {
    // A rank has failed. Whoever is told so next reports it.
  }
}

void Trainer::lead(Order order) {
  if (team_.size() == 1) return;
  order.has_values = store().version() != shared_version_ && order.kind != Order::Kind::leave;
  broadcast(team_, raw_bytes(order));
  if (!order.has_values) return;
  share_all_values();
}

void Trainer::share_all_values() {
  broadcast(team_, bytes_in(store().values(), {0, store().values().numel()}));
  if (!team_.leads()) store().mark_changed();
  shared_version_ = store().version();
}

void Trainer::follow(const StopRequest& stop) {
  for (;;) {
    Order order{};
    broadcast(team_, raw_bytes(order));
    if (order.has_values) share_all_values();
    if (order.kind == Order::Kind::leave) return;
    try {
      obey(order, stop);
    } catch (const CorpusError&) {
      // Rank 0 throws the same, and decides what comes next.
    }
  }
}

void Trainer::obey(const Order& order, const StopRequest& asked) {
  const StopRequest stop = order.heeds_stops ? asked : StopRequest();
  switch (order.kind) {
    case Order::Kind::step:
      run_step(order.rate, stop);
      break;
    case Order::Kind::mean_loss:
      mean_loss(model(), task_, order.part, order.most, stop, team_);
      break;
    case Order::Kind::full_and_sampled_loss:
      full_and_sampled_loss(model(), task_, order.part, order.most, stop, team_);
      break;
    case Order::Kind::accuracy:
      accuracy(model(), task_, order.most, stop, team_);
      break;
    case Order::Kind::restore:
      move_state(/*to_leader=*/false);
      break;
    case Order::Kind::collect:
      move_state(/*to_leader=*/true);
      break;
    case Order::Kind::leave:
      break;
  }
}

// Moves the moments of each rank's part, and what its micro-batches carry, to rank 0 or from there.
void Trainer::move_state(bool to_leader) {
  if (team_.size() == 1) return;
  Messages messages(team_);
  const auto move = [&](int rank, std::span<std::byte> bytes) {
    if (team_.leads() == to_leader) {
      messages.receive(team_.leads() ? rank : 0, bytes);
    } else {
      messages.send(team_.leads() ? rank : 0, bytes);
    }
  };
  std::int64_t steps = steps_;
  broadcast(team_, raw_bytes(steps));
  steps_ = steps;
  optimizer().set_steps(steps);
  const std::int64_t length = carried_.any() ? carried_.layout().length_after(steps * config_.block_size) : 0;
  const Bounds micro = even_bounds(config_.grad_accum, team_.size());
  std::vector<Tensor> states(static_cast<std::size_t>(team_.size()));
  for (int rank = 1; rank < team_.size(); ++rank) {
    if (!team_.leads() && rank != team_.rank()) continue;
    for (Moment& moment : optimizer().moments()) {
      for (const FlatRange& range : gradients_.parts_of(rank)) {
        const FlatRange part = Optimizer::part_of(moment, range);
        move(rank, bytes_in(moment.values, part));
      }
    }
    if (!carried_.any()) continue;
    const std::int64_t begin = micro[static_cast<std::size_t>(rank)], end = micro[static_cast<std::size_t>(rank) + 1];
    Tensor& state = states[static_cast<std::size_t>(rank)];
    const std::int64_t elements = carried_.layout().numel(length) / config_.grad_accum * (end - begin);
    state = team_.leads() == to_leader ? empty({elements}, carried_.layout().dtype()) : carried_.values(begin, end);
    move(rank, bytes_in(state, {0, elements}));
  }
  messages.wait();
  if (team_.leads() != to_leader || !carried_.any()) return;
  for (int rank = 1; rank < team_.size(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (states[at]) carried_.restore(states[at], length, micro[at], micro[at + 1]);
  }
}

}  // namespace maki
