#include "autograd/ops/attention_mask.h"

#include <algorithm>

namespace maki {
namespace {

// The mask of one sequence.
struct Rows {
  const std::int32_t* data;
  std::int64_t queries, keys;
  bool causal;  // whether keys after last_key() are hidden in any case

  std::int64_t last_key(std::int64_t t) const { return t + keys - queries; }
  const std::int32_t* row(std::int64_t t) const { return data + t * keys; }

  // Whether queries t and t + 1 have the same mask for the first `count` keys.
  bool equal(std::int64_t t, std::int64_t count) const {
    return std::equal(row(t), row(t) + std::max<std::int64_t>(count, 0), row(t + 1),
                      [](std::int32_t a, std::int32_t b) { return (a != 0) == (b != 0); });
  }
  // Whether query t sees no key after last_key(t).
  bool ends(std::int64_t t) const {
    const std::int64_t begin = std::clamp<std::int64_t>(last_key(t) + 1, 0, keys);
    return std::all_of(row(t) + begin, row(t) + keys, [](std::int32_t visible) { return visible == 0; });
  }
  // Whether query t sees what query t + 1 sees up to last_key(t), and neither sees more than the causal rule allows.
  bool step(std::int64_t t) const { return equal(t, last_key(t) + 1) && (causal || (ends(t) && ends(t + 1))); }
};

MaskRun mask_run(const Rows& rows, std::int64_t begin, std::int64_t end, bool causal) {
  const std::int64_t keys = causal ? std::max<std::int64_t>(rows.last_key(end - 1) + 1, 0) : rows.keys;
  const std::span<const std::int32_t> mask(rows.row(end - 1), static_cast<std::size_t>(keys));
  return {.first_sequence = 0,
          .sequences = 1,
          .begin = begin,
          .end = end,
          .keys = keys,
          .causal = causal,
          .key_mask = tensor(mask, {1, keys})};
}

void append_runs(const Rows& rows, std::int64_t sequence, std::vector<MaskRun>& runs) {
  for (std::int64_t begin = 0, end = 0; begin < rows.queries; begin = end) {
    const auto same = [&](std::int64_t t) { return !rows.causal && rows.equal(t, rows.keys); };
    end = begin + 1;
    while (end < rows.queries && same(end - 1)) ++end;
    bool causal = rows.causal;
    if (end == begin + 1) {
      while (end < rows.queries && rows.step(end - 1)) ++end;
      causal = causal || end > begin + 1;
    }
    runs.push_back(mask_run(rows, begin, end, causal));
    runs.back().first_sequence = sequence;
  }
}

// mask ∧ key_mask: [B, T, S].
Tensor combined(const Tensor& mask, const Tensor& key_mask, std::int64_t batch, std::int64_t queries,
                std::int64_t keys) {
  Tensor both = empty({batch, queries, keys}, DType::int32);
  const std::int64_t stride = mask.shape().rank() == 3 ? queries * keys : 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int32_t* const key = key_mask.data<std::int32_t>() + b * keys;
    for (std::int64_t t = 0; t < queries; ++t) {
      const std::int32_t* const row = mask.data<std::int32_t>() + b * stride + t * keys;
      std::int32_t* const out = both.data<std::int32_t>() + (b * queries + t) * keys;
      for (std::int64_t s = 0; s < keys; ++s) out[s] = row[s] != 0 && key[s] != 0 ? 1 : 0;
    }
  }
  return both;
}

// The mask of a run that applies to every sequence: [1, keys] → [batch, keys].
Tensor repeated(const Tensor& row, std::int64_t batch) {
  const std::int64_t keys = row.numel();
  Tensor mask = empty({batch, keys}, DType::int32);
  for (std::int64_t b = 0; b < batch; ++b) {
    std::copy_n(row.data<std::int32_t>(), keys, mask.data<std::int32_t>() + b * keys);
  }
  return mask;
}

}  // namespace

std::vector<MaskRun> mask_runs(const Tensor& mask, const Tensor& key_mask, std::int64_t batch, bool causal) {
  const std::int64_t queries = mask.shape()[-2], keys = mask.shape()[-1];
  const Tensor whole = key_mask ? combined(mask, key_mask, batch, queries, keys) : mask;
  const bool shared = whole.shape().rank() == 2;
  std::vector<MaskRun> runs;
  for (std::int64_t b = 0; b < (shared ? 1 : batch); ++b) {
    append_runs({whole.data<std::int32_t>() + b * queries * keys, queries, keys, causal}, b, runs);
  }
  if (!shared) return runs;
  for (MaskRun& run : runs) {
    run.sequences = batch;
    run.key_mask = repeated(run.key_mask, batch);
  }
  return runs;
}

}  // namespace maki
