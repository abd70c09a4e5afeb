// The thread that computes for a server: it owns the models. Requests that wait become one batch, whose texts share
// each pass over the weights; batches take turns token by token, so that nobody waits for a long text.
//
// Thread safety: may be used by several threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "train/app/serve/completion_answer.h"
#include "train/app/serve/model_cache.h"
#include "train/app/serve/served_runs.h"

namespace maki {

class Engine {
 public:
  /// Requires: the runs outlive the engine.
  explicit Engine(const ServedRuns& runs);
  /// Ends after the current token. What was not answered stays so.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Answers, some time later, with the texts. Throws HttpError if too many requests are waiting.
  void complete(CompletionRequest request, std::shared_ptr<HttpExchange> exchange);
  /// Answers, some time later, with the JSON that `compute` gives. An Error that it throws refuses the request.
  using Compute = std::function<std::string(const LoadedModel& model)>;
  void compute(const std::string& model, Compute compute, std::shared_ptr<HttpExchange> exchange);

 private:
  struct Waiting {
    std::string model;
    CompletionRequest request;
    Compute compute;  // or empty, for a completion
    std::shared_ptr<HttpExchange> exchange;
  };
  // A text that is to be generated.
  struct Row {
    std::shared_ptr<CompletionAnswer> answer;
    std::size_t choice;
  };
  struct Batch {
    Batch(std::vector<Row> its_rows);
    std::vector<Row> rows;
    GenerationBatch generation;
    bool failed = false;
  };

  void enqueue(Waiting waiting);
  void run();
  bool busy() const { return !scoring_.empty() || !rows_.empty() || !batches_.empty(); }
  std::deque<Waiting> take();
  void begin(Waiting waiting);
  void score();
  void form_batches();
  void step(Batch& batch);

  ModelCache models_;
  // These belong to the thread that computes.
  std::deque<std::shared_ptr<CompletionAnswer>> scoring_;  // with prompts of which log-probabilities are wanted
  std::deque<Row> rows_;
  std::list<Batch> batches_;

  std::mutex mutex_;  // of the following
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace maki
