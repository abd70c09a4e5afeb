#include "train/app/serve/engine.h"

#include <chrono>

namespace maki {
namespace {

constexpr std::size_t kMaxWaitingRequests = 256;
// Requests that are made together arrive one after the other. Those that come within this time share a batch.
constexpr std::chrono::milliseconds kGatherTime{5};

}  // namespace

Engine::Engine(const ServedRuns& runs) : models_(runs), thread_([this] { run(); }) {}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Engine::with_model(const std::string& model, std::shared_ptr<HttpExchange> exchange, Compute compute) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= kMaxWaitingRequests)
    throw HttpError(MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests are waiting; try again later");
  waiting_.push_back({model, std::move(exchange), std::move(compute)});
  changed_.notify_all();
}

void Engine::complete(CompletionRequest request, std::shared_ptr<HttpExchange> exchange) {
  const std::string name = request.model;
  with_model(name, exchange, [this, request = std::move(request), exchange](const auto& model) mutable {
    scoring_.push_back(std::make_shared<CompletionAnswer>(std::move(request), model, exchange));
  });
}

void Engine::run() {
  for (;;) {
    std::deque<Waiting> taken;
    {
      std::unique_lock lock(mutex_);
      if (scoring_.empty() && turns_.idle() && waiting_.empty()) {
        changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
        changed_.wait_for(lock, kGatherTime, [&] { return stopping_; });
      }
      if (stopping_) return;
      taken.swap(waiting_);
    }
    for (const Waiting& waiting : taken) compute(waiting);
    score();
    turns_.step();
  }
}

void Engine::compute(const Waiting& waiting) {
  if (waiting.exchange->gone()) return;
  try {
    waiting.compute(models_.get(waiting.model));
  } catch (const std::exception& error) {
    waiting.exchange->refuse(error);
  }
}

// One prompt of one request, so that texts go on in between; and all requests of which none is left begin.
void Engine::score() {
  bool scored = false;
  for (std::size_t n = scoring_.size(); n > 0; --n) {
    const std::shared_ptr<CompletionAnswer> answer = std::move(scoring_.front());
    scoring_.pop_front();
    if (answer->abandoned()) continue;
    try {
      const bool waits = scored || answer->score_next();
      scored = waits;
      if (waits) {
        scoring_.push_back(answer);
      } else {
        answer->begin(turns_);
      }
    } catch (const std::exception& error) {
      answer->fail(error);
    }
  }
}

}  // namespace maki
