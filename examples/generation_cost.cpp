// What the next token costs after many tokens: generation_cost [TOKENS], at least 1024, the default. A GPT keeps the
// keys and values of all tokens and compares each new one with all of them. With linear attention, it keeps two sums
// per head. Both models have two layers of width 64, random weights, and read the same token again and again, which
// costs as much as any other.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <maki/nn/models/gpt.h>
#include <maki/nn/models/linear.h>

using namespace maki;

namespace {

constexpr std::int64_t kAveraged = 64;  // tokens over which the median time is taken

double next_token_seconds(const Generator& model, State& state) {
  const auto start = std::chrono::steady_clock::now();
  model.next_logits(tensor<std::int32_t>({1}, {1, 1}), state);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Cost {
  double milliseconds;
  std::int64_t numbers;  // that the state keeps
};

// After 256, 1024, 4096, … tokens.
std::vector<Cost> costs(const Generator& model, std::int64_t tokens) {
  std::vector<Cost> list;
  std::vector<double> times;
  const auto state = model.start(1);
  for (std::int64_t read = 1, next = 256; next <= tokens; ++read) {
    times.push_back(next_token_seconds(model, *state));
    if (read < next) continue;
    std::nth_element(times.end() - kAveraged, times.end() - kAveraged / 2, times.end());
    std::int64_t numbers = 0;
    for (const auto& [name, tensor] : state->tensors()) numbers += tensor->numel();
    const bool fills = state->capacity() == tokens;  // a cache, which has room for all tokens from the start
    list.push_back({1e3 * *(times.end() - kAveraged / 2), fills ? numbers / tokens * read : numbers});
    next *= 4;
  }
  return list;
}

}  // namespace

int main(int count, char** arguments) {
  const std::int64_t tokens = count > 1 ? std::atoll(arguments[1]) : 1024;
  if (tokens < 1024) {
    fmt::print(stderr,
               "generation_cost: TOKENS must be at least 1024, because costs after 256 and 1024 are compared; got {}\n",
               arguments[1]);
    return 2;
  }
  const TransformerConfig config{
      .n_layer = 2, .n_head = 4, .n_embd = 64, .block_size = tokens, .vocab_size = 64, .positions = Positions::rotary};
  ParameterStore gpt_store, linear_store;
  const GptModel gpt(Scope(gpt_store), config);
  const LinearModel linear(Scope(linear_store), LinearConfig{config});
  gpt_store.seal(/*seed=*/1);
  linear_store.seal(/*seed=*/1);
  const std::vector<Cost> softmax = costs(gpt, tokens), state = costs(linear, tokens);
  fmt::print("tokens read   ms per token: gpt   linear   numbers kept: gpt   linear\n");
  for (std::size_t i = 0; i < softmax.size(); ++i) {
    fmt::print("{:11} {:19.3f} {:8.3f} {:19} {:8}\n", 256 << (2 * i), softmax[i].milliseconds, state[i].milliseconds,
               softmax[i].numbers, state[i].numbers);
  }
  const bool grows = softmax.back().numbers > softmax.front().numbers;
  return grows && state.back().numbers == state.front().numbers ? 0 : 1;
}
