// How well do few features stand for softmax attention in a model that has been trained? A small GPT learns stories.
// Then the attention weights of one of its heads are computed from M features instead of from exp(q · k):
//   random   right in expectation, but with a variance that grows as exp(|q + k|²), and trained heads have long queries
//            and keys: they want to look at few tokens (Choromanski et al. 2021, arXiv:2009.14794);
//   Nyström  the projection onto M landmarks, the centres of k-means of the keys (Williams and Seeger 2001), which are
//            not everywhere, but near each other: keys of the same letter, or of the same place in a word.
// examples/attention_features.cpp explains both. The error is ‖A' − A‖ / ‖A‖ of the matrix of attention weights.
#include <cmath>
#include <fmt/core.h>
#include <maki/autograd/core/philox.h>
#include <maki/autograd/tape.h>
#include <maki/data/builtin/stories.h>
#include <maki/data/dataset/window_batches.h>
#include <maki/data/tokenizer/char_tokenizer.h>
#include <maki/nn/features.h>
#include <maki/nn/models/gpt.h>
#include <maki/optim/adam.h>

using namespace maki;

namespace {

constexpr std::int64_t kBatch = 8, kBlock = 32, kTokens = kBatch * kBlock, kSize = 16, kWidth = 4 * kSize;

// Queries and keys [N, D] of the first head of the last layer, after 300 steps of training. They are scaled by
// D^(−1/4), so that their products are the scores.
std::pair<Tensor, Tensor> trained_queries_and_keys() {
  const std::string text = make_stories(StoryLanguage::english, 100'000).text;
  const CharTokenizer tokenizer(text);
  const std::vector<std::int32_t> tokens = tokenizer.encode(text);
  ParameterStore store;
  TransformerConfig config{.n_layer = 2, .n_head = kWidth / kSize, .n_embd = kWidth, .block_size = kBlock};
  config.vocab_size = tokenizer.vocab_size();
  const Gpt gpt(Scope(store), config);
  store.seal(/*seed=*/1);
  AdamW optimizer(store);
  const TrainBatches batches(tokens, kBatch, kBlock, /*grad_accum=*/1, /*seed=*/1);
  Tensor ids = empty({kBatch, kBlock}, DType::int32), targets = empty({kBatch, kBlock}, DType::int32);
  Tape tape;
  for (int step = 0; step < 300; ++step) {
    batches.fill(step, 0, ids.values<std::int32_t>(), targets.values<std::int32_t>());
    const Tensor loss = [&] {
      const Recording on(tape);
      return gpt.loss(ids, targets);
    }();
    tape.backward(loss);
    optimizer.step(/*learning_rate=*/3e-3);
  }
  const Tensor x = gpt.h[0](gpt.wte(ids) + gpt.input.wpe->weight);
  const Tensor qkv = reshape(gpt.h[1].attn.project(gpt.h[1].ln_1(x), 0), {kTokens, 3 * kWidth});
  const Tensor scaled = convert(qkv, DType::float64) * std::pow(kSize, -0.25);
  return {slice(scaled, 1, 0, kSize), slice(scaled, 1, kWidth, kWidth + kSize)};
}

double error(const Tensor& of_q, const Tensor& of_k, const Tensor& exact) {
  const Tensor products = linear(of_q, of_k), weights = products / sum(products, {-1}, /*keep_axes=*/true);
  return std::sqrt(mse(weights, exact).item() / mean(exact * exact).item());
}

}  // namespace

int main() {
  const auto [q, k] = trained_queries_and_keys();
  const Tensor exact = softmax(linear(q, k));
  bool landmarks_win = true;
  fmt::print("features   random, error   landmarks, error\n");
  for (std::int64_t m = 8; m <= 128; m *= 2) {
    const Tensor w = random_projection(RandomStream(1, RandomPurpose::sample), m, kSize, /*orthogonal=*/true);
    const double random = error(stable_random_features(q, w), random_features(k, w), exact);
    const Tensor centres = choose_landmarks(k, m), root = nystrom_root(centres);
    const double landmarks =
        error(stable_nystrom_features(q, centres, root), nystrom_features(k, centres, root), exact);
    fmt::print("{:8} {:15.4f} {:18.4f}\n", m, random, landmarks);
    landmarks_win = landmarks_win && landmarks < random;
  }
  return landmarks_win ? 0 : 1;
}
