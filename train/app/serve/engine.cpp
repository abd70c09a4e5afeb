#include "train/app/serve/engine.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "nn/generate/sampler.h"

namespace maki {
namespace {

constexpr std::size_t kMaxWaiting = 256;   // requests; more than there are connections
constexpr std::size_t kMaxBatches = 4;     // that take turns
constexpr std::size_t kMaxBatchRows = 32;  // texts of a batch
constexpr std::int64_t kMaxBatchStateBytes = 1 << 30;
// What a batch reads at once when it begins, which delays the tokens of the others.
constexpr std::int64_t kMaxBatchPromptTokens = 4096;
// Texts read their prompts together until the shortest one ends, and from then on one token at a time.
constexpr std::int64_t kMaxPromptDifference = 32;
// Requests that come at the same time arrive one after the other. Those that come within this time share a batch.
constexpr std::chrono::milliseconds kGatherTime{5};

// What a request is told about an exception. Requires: it is being handled.
HttpError as_http_error() {
  try {
    throw;
  } catch (const HttpError& error) {
    return error;
  } catch (const BadLogitsError& error) {
    return HttpError(500, error.what());
  } catch (const OutOfMemoryError& error) {
    return HttpError(503, error.what());
  } catch (const Error& error) {
    return HttpError(400, error.what());
  } catch (const std::bad_alloc&) {
    return HttpError(503, "out of memory; ask for fewer or shorter texts");
  } catch (const std::exception& error) {
    return HttpError(500, fmt::format("internal error, which is a bug in maki: {}", error.what()));
  }
}

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

void Engine::complete(CompletionRequest request, std::shared_ptr<HttpExchange> exchange) {
  const std::string model = request.model;
  enqueue({model, std::move(request), {}, std::move(exchange)});
}

void Engine::compute(const std::string& model, Compute compute, std::shared_ptr<HttpExchange> exchange) {
  enqueue({model, {}, std::move(compute), std::move(exchange)});
}

void Engine::enqueue(Waiting waiting) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMaxWaiting) throw HttpError(503, "too many requests are waiting; try again later");
    waiting_.push_back(std::move(waiting));
  }
  changed_.notify_all();
}

void Engine::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (!busy() && waiting_.empty()) {
        changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
        changed_.wait_for(lock, kGatherTime, [&] { return stopping_; });
      }
      if (stopping_) return;
    }
    for (Waiting& waiting : take()) begin(std::move(waiting));
    score();
    form_batches();
    for (Batch& batch : batches_) step(batch);
    std::erase_if(batches_, [](const Batch& batch) { return batch.failed || !batch.generation.running(); });
  }
}

std::deque<Engine::Waiting> Engine::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(waiting_, {});
}

void Engine::begin(Waiting waiting) {
  if (waiting.exchange->gone()) return;
  try {
    const std::shared_ptr<const ServedModel> model = models_.get(waiting.model);
    if (waiting.compute) return waiting.exchange->answer(200, "application/json", waiting.compute(model->loaded));
    auto answer = std::make_shared<CompletionAnswer>(std::move(waiting.request), model, waiting.exchange);
    scoring_.push_back(std::move(answer));
  } catch (...) {
    waiting.exchange->refuse(as_http_error());
  }
}

// One prompt of one request, so that batches go on in between; and the requests of which nothing is left to score.
void Engine::score() {
  bool scored = false;
  for (std::size_t n = scoring_.size(); n > 0; --n) {
    const std::shared_ptr<CompletionAnswer> answer = std::move(scoring_.front());
    scoring_.pop_front();
    if (answer->abandoned()) continue;
    try {
      const bool waits = scored || answer->score_next();
      scored = scored || waits;
      if (waits) {
        scoring_.push_back(answer);
      } else if (answer->begin()) {
        for (std::size_t i = 0; i < answer->choices(); ++i) rows_.push_back({answer, i});
      }
    } catch (...) {
      answer->fail(as_http_error());
    }
  }
}

Engine::Batch::Batch(std::vector<Row> its_rows)
    : rows(std::move(its_rows)), generation([&] {
        std::vector<GenerationBatch::Text> texts;
        for (const Row& row : rows) texts.push_back(row.answer->start(row.choice));
        return GenerationBatch(rows.front().answer->model().generator(), texts);
      }()) {}

void Engine::form_batches() {
  while (!rows_.empty() && batches_.size() < kMaxBatches) {
    std::vector<Row> rows;
    std::deque<Row> others;
    std::int64_t shortest = 0, longest = 0;
    std::size_t most = kMaxBatchRows;
    for (Row& row : rows_) {
      if (row.answer->abandoned()) continue;
      const ServedModel& model = row.answer->model();
      const std::int64_t length = std::ssize(row.answer->start(row.choice).prompt);
      if (rows.empty()) {
        shortest = longest = length;
        most = std::clamp<std::size_t>(
            static_cast<std::size_t>(std::min(kMaxBatchStateBytes / std::max<std::int64_t>(1, model.state_bytes()),
                                              kMaxBatchPromptTokens / length)),
            1, kMaxBatchRows);
      }
      const std::int64_t low = std::min(shortest, length), high = std::max(longest, length);
      const std::int64_t difference = model.generator().same_bits_stepwise() ? kMaxPromptDifference : 0;
      if (rows.size() < most && (rows.empty() || &model == &rows.front().answer->model()) && high - low <= difference) {
        shortest = low;
        longest = high;
        rows.push_back(std::move(row));
      } else {
        others.push_back(std::move(row));
      }
    }
    rows_ = std::move(others);
    if (rows.empty()) return;
    try {
      batches_.emplace_back(rows);
    } catch (...) {
      for (const Row& row : rows) row.answer->fail(as_http_error());
    }
  }
}

void Engine::step(Batch& batch) {
  try {
    batch.generation.step(
        [&](std::size_t i, std::int32_t token, const Tensor& logits) {
          return batch.rows[i].answer->add(batch.rows[i].choice, token, logits);
        },
        [&](std::size_t i, const Generated& how) { batch.rows[i].answer->end(batch.rows[i].choice, how); });
  } catch (...) {
    for (const Row& row : batch.rows) row.answer->fail(as_http_error());
    batch.rows.clear();
    batch.failed = true;
  }
}

}  // namespace maki
