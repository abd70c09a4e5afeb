// A language model reads four times as many tokens as it was trained on. What happens depends on how it knows
// positions:
//   sinusoidal  vectors that are added to the tokens; those beyond the training length were never seen
//   rotary      queries and keys are turned, only distances matter; large distances were never seen
//   none        the causal mask alone; nothing is new (Kazemnejad et al. 2023, arXiv:2305.19466)
//   learned     a table that ends at block_size: refused
// Printed is the mean loss over ranges of positions. What lies at later positions is easier in principle: there is more
// to go by.
#include <fmt/core.h>
#include <maki/autograd/core/check.h>
#include <maki/autograd/tape.h>
#include <maki/data/builtin/stories.h>
#include <maki/data/dataset/window_batches.h>
#include <maki/data/tokenizer/char_tokenizer.h>
#include <maki/nn/models/gpt.h>
#include <maki/optim/adam.h>

using namespace maki;

namespace {

constexpr std::int64_t kBatch = 16, kBlock = 32, kLong = 4 * kBlock, kRange = 16, kTexts = 64;

void train(const Gpt& model, ParameterStore& store, TokenSpan tokens) {
  AdamW optimizer(store);
  const TrainBatches batches(tokens, kBatch, kBlock, /*grad_accum=*/1, /*seed=*/1);
  Tensor ids = empty({kBatch, kBlock}, DType::int32), targets = empty({kBatch, kBlock}, DType::int32);
  Tape tape;
  for (int step = 0; step < 400; ++step) {
    batches.fill(step, 0, ids.values<std::int32_t>(), targets.values<std::int32_t>());
    const Tensor loss = [&] {
      const Recording on(tape);
      return model.loss(ids, targets);
    }();
    tape.backward(loss);
    optimizer.step(/*learning_rate=*/4e-3);
  }
}

// −log P of every held-out token in its place: [kTexts, kLong, 1].
Tensor losses(const Gpt& model, const std::vector<std::int32_t>& tokens) {
  const auto end = tokens.end() - 1, begin = end - kTexts * kLong;  // held out: training ends before
  const Tensor ids = tensor(std::vector(begin, end), {kTexts, kLong});
  const Tensor targets = tensor(std::vector(begin + 1, end + 1), {kTexts, kLong, 1});
  return -gather(log_softmax(model.logits(ids)), -1, targets);
}

}  // namespace

int main() {
  const std::string text = make_stories(StoryLanguage::english, 300'000).text;
  const CharTokenizer tokenizer(text);
  const std::vector<std::int32_t> tokens = tokenizer.encode(text);
  const TokenSpan training = std::span(tokens).first(tokens.size() - kTexts * kLong - 1);
  std::vector<double> rise;  // of the loss, from the first range to the last: sinusoidal, rotary, none
  fmt::print("position  ");
  for (std::int64_t at = 0; at < kLong; at += kRange) fmt::print("{:>8}", fmt::format("{}-{}", at, at + kRange - 1));
  for (const Positions positions : {Positions::sinusoidal, Positions::rotary, Positions::none, Positions::learned}) {
    ParameterStore store;
    TransformerConfig config{.n_layer = 2, .n_head = 4, .n_embd = 64, .block_size = kBlock, .positions = positions};
    config.vocab_size = tokenizer.vocab_size();
    const Gpt model(Scope(store), config);
    store.seal(/*seed=*/1);
    fmt::print("\n{:10}", to_string(positions));
    try {
      if (positions != Positions::learned) train(model, store, training);
      const Tensor loss = losses(model, tokens);
      std::vector<double> means;
      for (int at = 0; at < kLong; at += kRange) means.push_back(mean(slice(loss, 1, at, at + kRange)).item());
      for (const double m : means) fmt::print("{:8.2f}", m);
      rise.push_back(means.back() - means.front());
    } catch (const Error& error) {
      fmt::print("{}\n", error.what());
    }
  }
  return rise.size() == 3 && rise[0] > 0.3 && rise[1] > 0.3 && rise[2] < 0.3 ? 0 : 1;
}
