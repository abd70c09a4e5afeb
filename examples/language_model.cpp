// A character-level language model in about thirty lines: text, tokenizer, model, training, generation.
#include <fmt/core.h>

#include "autograd/tape.h"
#include "data/dataset/batch.h"
#include "data/stories/stories.h"
#include "data/tokenizer/tokenizer.h"
#include "nn/models/gpt.h"
#include "nn/generate/sampler.h"
#include "optim/optimizer.h"

int main() {
  using namespace maki;
  constexpr std::int64_t kBatch = 16, kBlock = 64;
  const std::string text = make_stories(StoryLanguage::english, 200'000).text;
  const CharTokenizer tokenizer(text);
  const std::vector<std::int32_t> tokens = tokenizer.encode(text);

  ParameterStore store;
  const GptConfig config{
      .n_layer = 2, .n_head = 4, .n_embd = 64, .block_size = kBlock, .vocab_size = tokenizer.vocab_size()};
  const Gpt model(Scope(store), config);
  store.seal(/*seed=*/1);

  Optimizer optimizer(store, AdamW{.beta2 = 0.99, .weight_decay = 0.1});
  const TrainBatches batches(tokens, kBatch, kBlock, /*grad_accum=*/1, /*seed=*/1);
  Tensor ids = empty({kBatch, kBlock}, DType::int32), targets = empty_like(ids);
  Tape tape;
  for (int step = 0; step <= 500; ++step) {
    batches.fill(step, 0, ids.values<std::int32_t>(), targets.values<std::int32_t>());
    const Tensor loss = [&] {
      const Recording on(tape);
      return model.loss(ids, targets);
    }();
    tape.backward(loss);
    optimizer.step(/*learning_rate=*/5e-3);
    if (step % 100 == 0) fmt::print("step {:3}  loss {:.3f}\n", step, loss.item());
  }

  KvCache cache = model.make_cache(1);
  Sampler sampler({.temperature = 0.7, .top_k = 0, .top_p = 1, .seed = 1});
  std::vector<std::int32_t> next = tokenizer.encode("\n");
  for (std::uint64_t i = 0; i < kBlock; ++i) {
    next = {sampler(model.next_logits(tensor(next, {1, 1}), cache), 0, i)};
    fmt::print("{}", tokenizer.decode(next));
  }
  fmt::print("\n");
}
