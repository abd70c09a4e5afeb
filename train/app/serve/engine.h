// The thread that computes for a server: it owns the models.
//
// Thread safety: may be used by several threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "train/app/serve/completion_answer.h"
#include "train/app/serve/served_runs.h"

namespace maki {

class Engine {
 public:
  /// Requires: the runs outlive the engine.
  Engine(const ServedRuns& runs, WeightNumbers weights);
  /// Ends after the current token. What was not answered stays so.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Calls `task`, some time later: one such task between two tokens of the texts. An exception refuses the request,
  /// which is left out if its client has gone. Throws HttpError if too many requests are waiting.
  void compute(std::shared_ptr<HttpExchange> exchange, std::function<void()> task);

  /// What is to be done with a model. An exception refuses the request.
  using Model = std::shared_ptr<const LoadedModel>;
  using Compute = std::function<void(const Model&)>;
  /// compute() with the model NAME or NAME@STEP. Refuses the request if there is none. Throws as compute() does.
  void with_model(const std::string& name, std::shared_ptr<HttpExchange> exchange, Compute use);
  /// Answers, some time later, with the texts. Throws as compute() does.
  void complete(CompletionRequest request, const std::shared_ptr<HttpExchange>& exchange);

 private:
  using Tasks = std::deque<std::function<void()>>;
  void add(Tasks& tasks, std::shared_ptr<HttpExchange> exchange, std::function<void()> task);
  bool has_tasks() const { return !completions_.empty() || !slow_.empty(); }
  Model model(const std::string& name);
  Model load(const std::string& path);
  void run();
  void score();

  const ServedRuns& runs_;
  const WeightNumbers weights_;
  // Of the thread that computes: the models in memory, by what identifies their files, the one that was used last
  // first; the files that are damaged, and how; what was said of checkpoints that others had to replace; requests with
  // prompts of which log-probabilities are wanted; and texts.
  std::list<std::pair<std::string, Model>> models_;
  std::map<std::string, std::string> damaged_;
  std::set<std::string> said_;
  std::vector<std::shared_ptr<CompletionAnswer>> scoring_;
  TextTurns turns_;

  std::mutex mutex_;  // of the following
  std::condition_variable changed_;
  Tasks completions_, slow_;  // none throws
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace maki
