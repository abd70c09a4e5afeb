#include "train/app/serve/engine.h"

#include <algorithm>
#include <chrono>
#include <sys/stat.h>

#include "data/io/os.h"
#include "train/app/progress.h"

namespace maki {
namespace {

constexpr std::size_t kMaxWaitingRequests = 256;
constexpr std::size_t kModelsInMemory = 4;  // the page compares as many checkpoints
// Requests that are made together arrive one after the other. Those that come within this time share a batch.
constexpr std::chrono::milliseconds kGatherTime{5};

}  // namespace

Engine::Engine(const ServedRuns& runs, WeightNumbers weights)
    : runs_(runs), weights_(weights), thread_([this] { run(); }) {}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Engine::add(Tasks& tasks, std::shared_ptr<HttpExchange> exchange, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (completions_.size() + slow_.size() >= kMaxWaitingRequests)
    throw HttpError(MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests are waiting; try again later");
  tasks.emplace_back([exchange = std::move(exchange), task = std::move(task)] {
    if (exchange->gone()) return;
    try {
      task();
    } catch (const std::exception&) {
      exchange->refuse(error_for_client());
    }
  });
  changed_.notify_all();
}

void Engine::compute(std::shared_ptr<HttpExchange> exchange, std::function<void()> task) {
  add(slow_, std::move(exchange), std::move(task));
}

void Engine::with_model(const std::string& name, std::shared_ptr<HttpExchange> exchange, Compute use) {
  compute(std::move(exchange), [this, name, use = std::move(use)] { use(model(name)); });
}

void Engine::complete(CompletionRequest request, const std::shared_ptr<HttpExchange>& exchange) {
  add(completions_, exchange, [this, request = std::move(request), exchange]() mutable {
    const Model loaded = model(request.model);
    scoring_.push_back(std::make_shared<CompletionAnswer>(std::move(request), loaded, exchange));
  });
}

void Engine::run() {
  for (;;) {
    Tasks taken;
    {
      std::unique_lock lock(mutex_);
      if (scoring_.empty() && turns_.idle() && !has_tasks()) {
        changed_.wait(lock, [&] { return stopping_ || has_tasks(); });
        changed_.wait_for(lock, kGatherTime, [&] { return stopping_; });
      }
      if (stopping_) return;
      taken.swap(completions_);
      if (!slow_.empty()) {
        taken.push_back(std::move(slow_.front()));
        slow_.pop_front();
      }
    }
    for (const auto& compute : taken) compute();
    score();
    turns_.step();
  }
}

// The model NAME or NAME@STEP. Which file that is, and whether it has changed, is looked up each time.
Engine::Model Engine::model(const std::string& name) {
  std::vector<std::string> notes;
  Model found = runs_.checkpoint(name, notes).read([&](const std::string& path) { return load(path); });
  for (const std::string& note : notes) {
    if (said_.insert(note).second) say(note);
  }
  return found;
}

// The model in a file. One that is known to be damaged is not read again unless it has changed.
Engine::Model Engine::load(const std::string& path) {
  struct stat file = {};
  stat(path.c_str(), &file);
  const timespec modified = os::modified(file);
  const std::string identity =
      fmt::format("{} {} {} {}.{}", path, file.st_ino, file.st_size, modified.tv_sec, modified.tv_nsec);
  const auto known = std::ranges::find(models_, identity, &std::pair<std::string, Model>::first);
  if (known != models_.end()) {
    models_.splice(models_.begin(), models_, known);
    return known->second;
  }
  if (const auto damage = damaged_.find(identity); damage != damaged_.end()) throw CorruptFile(damage->second);
  if (models_.size() >= kModelsInMemory) models_.pop_back();
  try {
    models_.emplace_front(identity,
                          std::make_shared<const LoadedModel>(path, std::nullopt, /*specials=*/false, weights_));
  } catch (const CorruptFile& error) {
    damaged_.emplace(identity, error.what());
    throw;
  }
  return models_.front().second;
}

// Scores one prompt of one request, so that texts go on in between, and begins every request that has none left.
void Engine::score() {
  bool scored = false;
  std::erase_if(scoring_, [&](const std::shared_ptr<CompletionAnswer>& answer) {
    if (answer->abandoned()) return true;
    try {
      if (answer->has_unscored()) {
        if (!std::exchange(scored, true)) answer->score_next();
        return false;
      }
      answer->begin(turns_);
    } catch (const std::exception&) {
      answer->fail(error_for_client());
    }
    return true;
  });
}

}  // namespace maki
