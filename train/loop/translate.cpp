#include "train/loop/translate.h"

#include <algorithm>
#include <numeric>

#include "data/io/utf8.h"

namespace maki {
namespace {

struct SourceBatch {
  Tensor ids, mask;  // [B, S]; the mask is empty if there is no padding
};

SourceBatch make_source_batch(std::span<const std::vector<std::int32_t>> sources, std::span<const std::size_t> rows,
                              std::int32_t end) {
  std::size_t length = 0;
  for (const std::size_t row : rows) length = std::max(length, sources[row].size() + 1);
  std::vector<std::int32_t> ids(rows.size() * length, end), mask(rows.size() * length, 0);
  bool padded = false;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::vector<std::int32_t>& source = sources[rows[r]];
    std::ranges::copy(source, ids.begin() + static_cast<std::ptrdiff_t>(r * length));
    std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(r * length), source.size() + 1, 1);
    padded |= source.size() + 1 < length;
  }
  const Shape shape{static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(length)};
  return {tensor(ids, shape), padded ? tensor(mask, shape) : Tensor()};
}

}  // namespace

PairEnds ends_of(const PairTokenizers& tokenizers) {
  return {static_cast<std::int32_t>(tokenizers.source->vocab_size()),
          static_cast<std::int32_t>(tokenizers.target->vocab_size())};
}

std::string translated_line(const Tokenizer& tokenizer, const Hypothesis& translation) {
  std::string line = replace_invalid_utf8(tokenizer.decode_line(translation.ids));
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

std::vector<Hypothesis> translate(const Generator& model, std::span<const std::vector<std::int32_t>> sources,
                                  const PairEnds& ends, const TranslateOptions& options, const StopRequest& stop) {
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return sources[i].size(); });
  std::vector<Hypothesis> results(sources.size());
  const auto batch_size = static_cast<std::size_t>(options.batch_size);
  for (std::size_t begin = 0; begin < order.size(); begin += batch_size) {
    if (stop.requested()) return results;
    const auto rows = std::span(order).subspan(begin, std::min(batch_size, order.size() - begin));
    const auto count = static_cast<std::int64_t>(rows.size());
    const SourceBatch batch = make_source_batch(sources, rows, ends.source);
    const std::unique_ptr<State> state = model.start(count, batch.ids, batch.mask);
    const std::vector<std::int32_t> prompt(rows.size(), ends.target);
    std::vector<std::vector<Hypothesis>> best =
        beam_search(model, *state, tensor(prompt, {count, 1}),
                    {.beam_size = options.beam_size,
                     .length_penalty = options.length_penalty,
                     .max_tokens = std::min(options.max_tokens, state->capacity()),
                     .end = ends.target});
    for (std::size_t r = 0; r < rows.size(); ++r) results[rows[r]] = std::move(best[r].front());
  }
  return results;
}

}  // namespace maki
