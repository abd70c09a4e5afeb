#include "train/loop/embed_texts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "autograd/core/check.h"

namespace maki {
namespace {

std::vector<Occurrence> occurrences(const std::vector<EmbeddedText>& texts, std::span<const std::int32_t> ids) {
  std::vector<Occurrence> found;
  for (std::size_t text = 0; text < texts.size(); ++text) {
    const std::vector<std::int32_t>& all = texts[text].ids;
    for (auto at = all.begin(); (at = std::search(at, all.end(), ids.begin(), ids.end())) != all.end(); ++at)
      found.push_back({text, static_cast<std::size_t>(at - all.begin())});
  }
  return found;
}

// The mean of the vectors of `count` tokens from `at` on.
std::vector<double> mean_vector(const std::vector<EmbeddedText>& texts, const Occurrence& at, std::size_t count) {
  const Tensor& vectors = texts[at.text].vectors;
  const auto width = static_cast<std::size_t>(vectors.shape()[1]);
  std::vector<double> sum(width);
  dispatch(vectors.dtype(), [&]<class T>() {
    const T* const from = vectors.data<T>() + at.position * width;
    for (std::size_t i = 0; i < count * width; ++i) sum[i % width] += static_cast<double>(from[i]);
  });
  for (double& value : sum) value /= static_cast<double>(count);
  return sum;
}

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double product = 0, a_squared = 0, b_squared = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += a[i] * b[i];
    a_squared += a[i] * a[i];
    b_squared += b[i] * b[i];
  }
  const double norms = std::sqrt(a_squared) * std::sqrt(b_squared);
  return norms > 0 ? std::clamp(product / norms, -1.0, 1.0) : 0;
}

}  // namespace

EmbeddedText embed_text(const Encoder& encoder, const Tokenizer& tokenizer, std::string_view text) {
  check(!text.empty(), "embed: every TEXT must have at least one token; got an empty one");
  std::vector<std::int32_t> ids = tokenizer.encode_line(text);
  const auto tokens = std::ssize(ids);
  const Tensor vectors = encoder.hidden(tensor(ids, {1, tokens}));
  return {std::move(ids), reshape(vectors, {tokens, vectors.shape()[2]})};
}

std::vector<Similarity> similarities(const std::vector<EmbeddedText>& texts, std::span<const std::int32_t> ids) {
  const std::vector<Occurrence> found = occurrences(texts, ids);
  std::vector<std::vector<double>> vectors;
  for (const Occurrence& at : found) vectors.push_back(mean_vector(texts, at, ids.size()));
  std::vector<Similarity> list;
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (std::size_t k = i + 1; k < found.size(); ++k)
      list.push_back({{ids.begin(), ids.end()}, found[i], found[k], cosine(vectors[i], vectors[k])});
  }
  return list;
}

std::vector<Similarity> shared_similarities(const std::vector<EmbeddedText>& texts) {
  std::map<std::int32_t, int> counts;  // of the texts that have the token
  for (const EmbeddedText& text : texts) {
    for (const std::int32_t id : std::set<std::int32_t>(text.ids.begin(), text.ids.end())) ++counts[id];
  }
  std::vector<Similarity> list;
  for (const auto& [id, count] : counts) {
    if (count < 2) continue;
    const std::vector<std::int32_t> ids = {id};
    std::ranges::move(similarities(texts, ids), std::back_inserter(list));
  }
  return list;
}

}  // namespace maki
