// The thread that computes for a server: it owns the models.
//
// Thread safety: may be used by several threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "train/app/serve/completion_answer.h"

namespace maki {

class Engine {
 public:
  /// Requires: the runs outlive the engine.
  explicit Engine(const ServedRuns& runs);
  /// Ends after the current token. What was not answered stays so.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// What is to be done with a model. An exception refuses the request.
  using Compute = std::function<void(const std::shared_ptr<const ServedModel>&)>;
  /// Calls `compute`, some time later, with the model NAME or NAME@STEP. Refuses the request if there is none. Throws
  /// HttpError if too many requests are waiting.
  void with_model(const std::string& model, std::shared_ptr<HttpExchange> exchange, Compute compute);
  /// Answers, some time later, with the texts. Throws as with_model() does.
  void complete(CompletionRequest request, std::shared_ptr<HttpExchange> exchange);

 private:
  struct Waiting {
    std::string model;
    std::shared_ptr<HttpExchange> exchange;
    Compute compute;
  };
  void run();
  void compute(const Waiting& waiting);
  void score();

  ModelCache models_;
  // Of the thread that computes: requests with prompts of which log-probabilities are wanted, and texts.
  std::deque<std::shared_ptr<CompletionAnswer>> scoring_;
  TextTurns turns_;

  std::mutex mutex_;  // of the following
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace maki
