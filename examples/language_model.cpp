// A character-level language model in about thirty lines: text, tokenizer, model, training, generation.
#include <fmt/core.h>
#include <maki/autograd/tape.h>
#include <maki/data/builtin/stories.h>
#include <maki/data/dataset/window_batches.h>
#include <maki/data/tokenizer/char_tokenizer.h>
#include <maki/nn/generate/generate.h>
#include <maki/nn/models/gpt.h>
#include <maki/optim/adam.h>

int main() {
  using namespace maki;
  constexpr std::int64_t kBatch = 16, kBlock = 64;
  const std::string text = make_stories(StoryLanguage::english, 200'000).text;
  const CharTokenizer tokenizer(text);
  const std::vector<std::int32_t> tokens = tokenizer.encode(text);

  ParameterStore store;
  const TransformerConfig config{
      .n_layer = 2, .n_head = 4, .n_embd = 64, .block_size = kBlock, .vocab_size = tokenizer.vocab_size()};
  const GptModel model(Scope(store), config);
  store.seal(/*seed=*/1);

  AdamW optimizer(store, {.beta2 = 0.99, .weight_decay = 0.1});
  const TrainBatches batches(tokens, kBatch, kBlock, /*grad_accum=*/1, /*seed=*/1);
  Batch batch{.ids = empty({kBatch, kBlock}, DType::int32), .targets = empty({kBatch, kBlock}, DType::int32)};
  Tape tape;
  for (int step = 0; step <= 500; ++step) {
    batches.fill(step, 0, batch.ids.values<std::int32_t>(), batch.targets.values<std::int32_t>());
    const Tensor loss = [&] {
      const Recording on(tape);
      return model.loss(batch, {});
    }();
    tape.backward(loss);
    optimizer.step(/*learning_rate=*/5e-3);
    if (step % 100 == 0) fmt::print("step {:3}  loss {:.3f}\n", step, loss.item());
  }

  const GenerateOptions options{.max_tokens = 2 * kBlock, .sampling = {.temperature = 0.7, .seed = 1}};
  generate(model, tokenizer.encode("\n"), options, /*sample=*/0, [&](std::int32_t token) {
    fmt::print("{}", tokenizer.bytes(token));
    return true;
  });
  fmt::print("\n");
}
