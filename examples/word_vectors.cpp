// Word vectors by skip-gram (Mikolov et al. 2013, arXiv:1301.3781), with the full softmax. Word c has the vector v_c
// and, as a neighbour, u_c. In a text w_1 … w_N, each word predicts the p words to its left and to its right:
//   L(θ) = −1/N Σ_i Σ_{−p ≤ j ≤ p, j ≠ 0} log P(w_{i+j} | w_i, θ),   P(c | w, θ) = exp(u_c · v_w) / Σ_d exp(u_d · v_w).
// "You shall know a word by the company it keeps" (Firth 1957): words that are used alike get vectors that are alike.
#include <algorithm>
#include <fmt/core.h>
#include <maki/autograd/ops.h>
#include <maki/autograd/tape.h>
#include <maki/optim/adam.h>

using namespace maki;

namespace {

constexpr std::size_t kWindow = 2, kGroup = 5;  // p; the number of words in each line below, which are used alike
std::vector<std::string> words = {"cat",  "dog",   "horse", "goat",  "duck",     // "0" in a sentence: one of these
                                  "anna", "ben",   "clara", "david", "emma",     // "1"
                                  "rice", "bread", "soup",  "cake",  "cheese"};  // "2"; all other words follow
const std::vector<std::vector<std::string>> kSentences = {
    {"the", "0", "likes", "1"}, {"1", "gives", "the", "0", "some", "2"}, {"1", "cooks", "2"}, {"an", "0", "eats", "2"}};

std::vector<std::size_t> random_sentences() {  // as indices of words
  const RandomStream stream(/*seed=*/1, RandomPurpose::sample);
  std::vector<std::size_t> text;
  for (std::uint64_t draw = 0; draw < 20'000;) {
    for (const std::string& part : kSentences[stream.below(draw++, kSentences.size())]) {
      const std::string word = part.size() > 1 ? part : words[kGroup * std::stoul(part) + stream.below(draw++, kGroup)];
      text.push_back(static_cast<std::size_t>(std::ranges::find(words, word) - words.begin()));
      if (text.back() == words.size()) words.push_back(word);
    }
  }
  return text;
}

bool print_nearest(const Tensor& v) {  // by the cosine; whether the nearest are the other words of the group
  const Tensor unit = v / sqrt(sum(v * v, {1}, /*keep_axes=*/true)), cosine = linear(unit, unit);
  bool alike = true;
  for (std::size_t word = 0, n = words.size(); word < 3 * kGroup; ++word) {
    std::vector<std::pair<float, std::size_t>> nearest;
    for (std::size_t c = 0; c < n; ++c) nearest.emplace_back(cosine.values<float>()[word * n + c], c);
    std::ranges::sort(nearest, std::ranges::greater());  // the first is the word itself
    fmt::print("\n{:7}", words[word]);
    for (std::size_t i = 1; i < kGroup; ++i) {
      fmt::print("{:>8} {:.2f}", words[nearest[i].second], nearest[i].first);
      alike = alike && nearest[i].first > 0.7 && nearest[i].second / kGroup == word / kGroup;
    }
  }
  fmt::print("\n\n{}\n", alike ? "the nearest words are those that are used alike" : "THE NEAREST WORDS ARE OTHERS");
  return alike;
}

}  // namespace

int main() {
  const std::vector<std::size_t> w = random_sentences();
  const std::int64_t n = std::ssize(words);
  Tensor terms = zeros({n, n}, DType::float32);  // how often log P(c | w) is in the loss, in row w and column c
  for (std::size_t i = 0; i < w.size(); ++i) {
    for (std::size_t at = i > kWindow ? i - kWindow : 0; at <= i + kWindow && at < w.size(); ++at) {
      if (at != i) terms.data<float>()[w[i] * words.size() + w[at]] += 1;
    }
  }
  ParameterStore store;
  const Parameter &v = store.add("v", {n, 16}, init::normal(0.1)), &u = store.add("u", {n, 16}, init::normal(0.1));
  store.seal(/*seed=*/1);
  Adam optimizer(store);
  Tape tape;
  for (int step = 0; step <= 100; ++step) {
    const Tensor loss = [&] {
      const Recording on(tape);
      return -sum(terms * log_softmax(linear(v, u))) / static_cast<double>(w.size());
    }();
    tape.backward(loss);
    optimizer.step(/*learning_rate=*/0.05);
    if (step % 20 == 0) fmt::print("step {:3}  loss {:.3f}\n", step, loss.item());
    if (!(loss.item() > 0 && loss.item() < 13)) return 1;  // 12.4 if every word is equally likely
  }
  return print_nearest(v) ? 0 : 1;
}
