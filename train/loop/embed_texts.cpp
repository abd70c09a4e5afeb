#include "train/loop/embed_texts.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <set>

#include "autograd/core/check.h"

namespace maki {
namespace {

std::vector<Occurrence> occurrences(const std::vector<EmbeddedText>& texts,
                                    const std::vector<std::vector<std::int32_t>>& spellings) {
  std::vector<Occurrence> found;
  for (std::size_t text = 0; text < texts.size(); ++text) {
    const std::span all = texts[text].ids;
    for (std::size_t at = 0; at < all.size(); ++at) {
      for (const std::vector<std::int32_t>& ids : spellings) {
        if (std::ranges::equal(all.subspan(at, std::min(ids.size(), all.size() - at)), ids))
          found.push_back({text, at, ids.size()});
      }
    }
  }
  return found;
}

std::vector<double> mean_vector(const std::vector<EmbeddedText>& texts, const Occurrence& at) {
  const Tensor& vectors = texts[at.text].vectors;
  const auto width = static_cast<std::size_t>(vectors.shape()[1]);
  std::vector<double> sum(width);
  dispatch(vectors.dtype(), [&]<class T>() {
    const T* const from = vectors.data<T>() + at.position * width;
    for (std::size_t i = 0; i < at.tokens * width; ++i) sum[i % width] += static_cast<double>(from[i]);
  });
  for (double& value : sum) value /= static_cast<double>(at.tokens);
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

std::vector<std::vector<std::int32_t>> spellings(const Tokenizer& tokenizer, std::string_view word) {
  std::vector<std::vector<std::int32_t>> all = {tokenizer.encode_line(word)};
  if (!tokenizer.unknown(" ").empty()) return all;
  const std::vector<std::int32_t> spaced = tokenizer.encode(fmt::format(" {}", word));
  // A space that is a token of its own is not part of the word.
  const std::vector<std::int32_t>& first = all.front();
  const bool ends_in_first =
      first.size() <= spaced.size() && std::ranges::equal(std::span(spaced).last(first.size()), first);
  if (!ends_in_first) all.push_back(spaced);
  return all;
}

std::vector<Similarity> similarities(const std::vector<EmbeddedText>& texts,
                                     const std::vector<std::vector<std::int32_t>>& spellings) {
  const std::vector<Occurrence> found = occurrences(texts, spellings);
  std::vector<std::vector<double>> vectors;
  for (const Occurrence& at : found) vectors.push_back(mean_vector(texts, at));
  std::vector<Similarity> list;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto ids = std::span(texts[found[i].text].ids).subspan(found[i].position, found[i].tokens);
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
    std::ranges::move(similarities(texts, {{id}}), std::back_inserter(list));
  }
  return list;
}

}  // namespace maki
