// Words as vectors. The one-hot vector e_i has a 1 at place i and 0 elsewhere, so the inner product e_i · e_j is 1 for
// a word with itself and 0 for any two others: every word is as far from "cat" as every other. The embedding matrix E
// [V, C] gives each word a short vector of its own, which training can move:
//   e_i E = row i of E,   ∂L/∂E = Σ_t e_{i_t}ᵀ ∂L/∂x_t,  with x_t = e_{i_t} E.
// Nobody multiplies by zeros: embedding() looks the row up, and its backward adds the gradient to that row. Here both
// ways are compared, bit for bit.
#include <fmt/core.h>
#include <maki/autograd/core/philox.h>
#include <maki/autograd/ops.h>
#include <maki/autograd/tape.h>

using namespace maki;

namespace {

constexpr const char* kWords[] = {"the", "cat", "likes", "dog"};
constexpr std::int64_t kVocabulary = 4, kWidth = 3;

// The inner products of all rows of x.
void print_products(const char* title, const Tensor& x) {
  const Tensor products = linear(x, x);
  fmt::print("{}\n{:7}{:>7}{:>7}{:>7}{:>7}\n", title, "", kWords[0], kWords[1], kWords[2], kWords[3]);
  for (std::int64_t i = 0; i < kVocabulary; ++i) {
    fmt::print("{:7}", kWords[i]);
    for (std::int64_t j = 0; j < kVocabulary; ++j) fmt::print("{:7.2f}", products.at(i * kVocabulary + j));
    fmt::print("\n");
  }
}

struct Pass {
  Tensor output, gradient;  // x [T, C], and ∂L/∂E [V, C] for the same ∂L/∂x
};

Pass run(const Tensor& table, const auto& embed) {
  Tape tape;
  Tensor e;
  const Tensor x = [&] {
    const Recording on(tape);
    e = tape.watch(table);
    return embed(e);
  }();
  tape.backward(x, tanh(x));  // some gradient ∂L/∂x
  return {x, tape.gradient(e)};
}

std::int64_t differences(const Tensor& a, const Tensor& b) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) count += a.at(i) == b.at(i) ? 0 : 1;  // NaN differs
  return count;
}

}  // namespace

int main() {
  const RandomStream stream(/*seed=*/4, RandomPurpose::sample);
  Tensor table = empty({kVocabulary, kWidth}, DType::float64);
  for (std::uint64_t i = 0; double& value : table.values<double>()) value = stream.normal(i++);
  const Tensor all = tensor<std::int32_t>({0, 1, 2, 3}, {kVocabulary});
  print_products("inner products of one-hot vectors", one_hot(all, kVocabulary, DType::float64));
  print_products("\ninner products of the rows of E", table);

  const Tensor ids = tensor<std::int32_t>({0, 1, 2, 0, 3}, {5});  // the cat likes the dog
  const Pass product = run(table, [&](const Tensor& e) { return matmul(one_hot(ids, kVocabulary, e.dtype()), e); });
  const Pass lookup = run(table, [&](const Tensor& e) { return embedding(e, ids); });
  const std::int64_t values = differences(product.output, lookup.output);
  const std::int64_t gradients = differences(product.gradient, lookup.gradient);
  fmt::print("\n\"the cat likes the dog\": one-hot times E against the lookup\n");
  fmt::print("{} of {} values and {} of {} gradients differ\n", values, lookup.output.numel(), gradients,
             lookup.gradient.numel());
  return values + gradients == 0 ? 0 : 1;
}
