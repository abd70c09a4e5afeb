// Bodies of requests for completions.
#include "train/app/serve/completions.h"

#include "tests/fuzz/targets.h"
#include "train/app/serve/http.h"

namespace maki::fuzz {
namespace {

void read_completion(const std::string& bytes) {
  check(bytes.size() <= kMaxHttpBody, "body: must be at most {} bytes", kMaxHttpBody);  // as the server does
  const CompletionRequest request = parse_completion(bytes, 1);
  check<std::logic_error>(!request.prompts.empty() && request.n >= 1 && request.n <= kMaxChoices &&
                              request.text.generate.max_tokens >= 0 &&
                              request.text.generate.max_tokens <= kMaxCompletionTokens,
                          "a request is out of its limits");
}

std::vector<std::string> completion_seeds() {
  return {R"({"model":"a"})",
          R"({"model":"a","prompt":["Once","\u732b"],"n":2,"max_tokens":0,"temperature":0.5,"top_p":0.9,"seed":7,)"
          R"("stop":["\n","."],"logprobs":2,"echo":true,"stream":true,"stream_options":{"include_usage":true}})",
          R"({"model":"a","prompt":[[1,2],[3]],"top_k":5,"min_p":0.1,"stop":"x","user":"u","frequency_penalty":1e-1})"};
}

}  // namespace

const Target kCompletions = {"completions", read_completion, [](const Error&) { return true; }, completion_seeds};

}  // namespace maki::fuzz
