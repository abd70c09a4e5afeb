#include "autograd/ops.h"
#include "tests/ops/op_table.h"

namespace maki::tests {
namespace {

using definitions::mask_tensor;

struct Variant {
  bool causal = false, masked = false;
  double dropout = 0;
  bool grouped = false;  // two or three heads have the same keys and values
};

// Scores (head size times scale) stay moderate, so that no weight is so small that the differences are only noise.
Attention options_of(Draw& draw, const Variant& variant) {
  Attention options;
  options.n_head = draw.integer(1, 3);
  if (variant.grouped) {
    options.n_kv_head = draw.integer(1, 2);
    options.n_head = options.n_kv_head * draw.integer(2, 3);
  }
  options.causal = variant.causal;
  options.dropout = variant.dropout;
  if (draw.coin()) options.scale = 0.4;
  return options;
}

// Heads of keys.
std::int64_t kv_heads(const Attention& options) { return options.n_kv_head == 0 ? options.n_head : options.n_kv_head; }

// A mask of which about a third is 0. The last key of the first sequence is visible, so that at least one is.
Tensor mask_of(Draw& draw, std::int64_t batch, std::int64_t keys) {
  Tensor mask = draw.integers({batch, keys}, 0, 2);
  mask.data<std::int32_t>()[keys - 1] = 1;
  return mask;
}

Row packed_row(const char* name, const Variant& variant) {
  return {.op = "attention",
          .name = name,
          .draw =
              [=](Draw& draw) {
                const Attention options = options_of(draw, variant);
                const std::int64_t batch = draw.integer(1, 2), tokens = draw.extent(9);
                const std::int64_t width = draw.extent(5) * (options.n_head + 2 * kv_heads(options));
                Case drawn{{draw.normals({batch, tokens, width})}, [=](const auto& x) {
                             Attention with = options;
                             if (x.size() > 1) with.key_mask = mask_tensor(x[1]);
                             return attention(x[0], with);
                           }};
                if (variant.masked) drawn.inputs.push_back(mask_of(draw, batch, tokens));
                return drawn;
              },
          .random = variant.dropout > 0,
          .propagates = !variant.causal && !variant.masked && variant.dropout == 0,
          .offset_std = 0.1,
          .offset_floor = 0.05};
}

Row separate_row(const char* name, const Variant& variant, bool more_queries) {
  return {.op = "attention",
          .name = name,
          .draw =
              [=](Draw& draw) {
                const Attention options = options_of(draw, variant);
                const std::int64_t size = draw.extent(5), width = size * options.n_head, batch = draw.integer(1, 2);
                const std::int64_t kv_width = size * kv_heads(options);
                const std::int64_t few = draw.integer(2, 5), many = few + draw.integer(1, 4);
                const std::int64_t queries = more_queries ? many : few, keys = more_queries ? few : many;
                Case drawn{{draw.normals({batch, queries, width}), draw.normals({batch, keys, 2 * kv_width})},
                           [=](const auto& x) {
                             Attention with = options;
                             if (x.size() > 2) with.key_mask = mask_tensor(x[2]);
                             return attention(x[0], x[1], with);
                           }};
                if (variant.masked) drawn.inputs.push_back(mask_of(draw, batch, keys));
                return drawn;
              },
          .random = variant.dropout > 0,
          .propagates = !variant.causal && !variant.masked && variant.dropout == 0,
          .offset_std = 0.1,
          .offset_floor = 0.05};
}

// A mask for every query. About half of the masks have equal neighbouring rows; `common`: one mask for all sequences.
Tensor pair_mask_of(Draw& draw, std::int64_t batch, std::int64_t queries, std::int64_t keys, bool common) {
  Tensor mask = draw.integers(common ? Shape{queries, keys} : Shape{batch, queries, keys}, 0, 2);
  const bool runs = draw.coin();
  std::int32_t* const data = mask.data<std::int32_t>();
  for (std::int64_t row = 0; row < mask.numel() / keys; ++row) {
    if (runs && row % 3 != 0) std::copy_n(data + (row - 1) * keys, keys, data + row * keys);
    data[row * keys] = 1;
  }
  return mask;
}

Row pair_mask_row(const char* name, const Variant& variant, bool packed, bool common) {
  return {.op = "attention",
          .name = name,
          .draw =
              [=](Draw& draw) {
                const Attention options = options_of(draw, variant);
                const std::int64_t size = draw.extent(5), width = size * options.n_head, batch = draw.integer(1, 3);
                const std::int64_t kv_width = size * kv_heads(options);
                const std::int64_t queries = draw.integer(1, 7), keys = packed ? queries : draw.integer(1, 9);
                Case drawn{{}, [=](const auto& x) {
                             Attention with = options;
                             const std::size_t at = packed ? 1 : 2;
                             with.mask = mask_tensor(x[at]);
                             if (x.size() > at + 1) with.key_mask = mask_tensor(x[at + 1]);
                             return packed ? attention(x[0], with) : attention(x[0], x[1], with);
                           }};
                if (packed) {
                  drawn.inputs = {draw.normals({batch, queries, width + 2 * kv_width})};
                } else {
                  drawn.inputs = {draw.normals({batch, queries, width}), draw.normals({batch, keys, 2 * kv_width})};
                }
                drawn.inputs.push_back(pair_mask_of(draw, batch, queries, keys, common));
                if (variant.masked) drawn.inputs.push_back(mask_of(draw, batch, keys));
                return drawn;
              },
          .random = variant.dropout > 0,
          .propagates = false,
          .offset_std = 0.1,
          .offset_floor = 0.05};
}

// k‖v has rows behind the keys: the output must not depend on them, and their gradient is 0.
Row cache_row(const char* name, bool grouped) {
  return {.op = "attention",
          .name = name,
          .draw =
              [=](Draw& draw) {
                Attention options = options_of(draw, {.causal = draw.coin(), .grouped = grouped});
                const std::int64_t size = draw.extent(5), width = size * options.n_head, batch = draw.integer(1, 3);
                const std::int64_t kv_width = size * kv_heads(options);
                const std::int64_t queries = draw.integer(1, 4), rows = queries + draw.integer(1, 5);
                options.keys = draw.integer(queries, rows - 1);
                return Case{{draw.normals({batch, queries, width}), draw.normals({batch, rows, 2 * kv_width})},
                            [=](const auto& x) { return attention(x[0], x[1], options); }};
              },
          .propagates = false,
          .offset_std = 0.1,
          .offset_floor = 0.05};
}

// Sometimes k‖v and r have more rows than there are keys and distances; the gradient of the others is 0.
Row relative_row(const char* name, bool memory, double dropout) {
  return {.op = "relative_attention",
          .name = name,
          .draw =
              [=](Draw& draw) {
                RelativeAttention options{.n_head = draw.integer(1, 3), .dropout = dropout};
                const std::int64_t width = draw.extent(5) * options.n_head, batch = draw.integer(1, 3);
                const std::int64_t queries = draw.integer(memory ? 1 : 2, 9);
                const std::int64_t keys = queries + (memory ? draw.extent(9) : 0), more = draw.coin() ? 2 : 0;
                if (more > 0) options.keys = keys;
                if (draw.coin()) options.scale = 0.4;
                return Case{{draw.normals({batch, queries, width}), draw.normals({batch, keys + more, 2 * width}),
                             draw.normals({keys + more, width}), draw.normals({width}), draw.normals({width})},
                            [=](const auto& x) { return relative_attention(x[0], x[1], x[2], x[3], x[4], options); }};
              },
          .random = dropout > 0,
          .propagates = false,
          .offset_std = 0.1,
          .offset_floor = 0.05};
}

Case empty_relative(std::int64_t batch, std::int64_t queries, std::int64_t keys, std::int64_t width) {
  return {{zeros({batch, queries, width}, DType::float64), zeros({batch, keys, 2 * width}, DType::float64),
           zeros({keys, width}, DType::float64), zeros({width}, DType::float64), zeros({width}, DType::float64)},
          [](const auto& x) { return relative_attention(x[0], x[1], x[2], x[3], x[4], {.n_head = 2}); }};
}

std::vector<Row> relative_attention_rows() {
  std::vector<Row> rows = {relative_row("without a memory", false, 0), relative_row("with a memory", true, 0),
                           relative_row("with a memory, dropout", true, 0.3)};
  rows[0].empties = {[] { return empty_relative(0, 2, 3, 4); }, [] { return empty_relative(2, 0, 3, 4); },
                     [] { return empty_relative(2, 0, 0, 4); }, [] { return empty_relative(2, 2, 3, 0); }};
  return rows;
}

// Positive features, so that no denominator is near 0; at least two of them, and two keys, because with one the
// gradient of the queries is 0 by mathematics.
Row linear_row(const char* name, LinearAttention options) {
  return {.op = "linear_attention",
          .name = name,
          .draw =
              [=](Draw& draw) {
                LinearAttention with = options;
                with.n_head = draw.integer(1, 3);
                const std::int64_t batch = draw.integer(1, 2), queries = 1 + draw.extent(9);
                const std::int64_t keys = with.causal ? queries : 1 + draw.extent(9);
                const std::int64_t features = (1 + draw.extent(5)) * with.n_head, width = draw.extent(5) * with.n_head;
                return Case{{draw.uniforms({batch, queries, features}, 0.2, 2),
                             draw.uniforms({batch, keys, features}, 0.2, 2), draw.normals({batch, keys, width})},
                            [=](const auto& x) { return linear_attention(x[0], x[1], x[2], with); }};
              },
          .offset_std = 0.1,
          .offset_floor = 0.5};
}

Case empty_linear_case(const Shape& q, const Shape& k, const Shape& v, bool causal) {
  return {{zeros(q, DType::float64), zeros(k, DType::float64), zeros(v, DType::float64)},
          [causal](const auto& x) { return linear_attention(x[0], x[1], x[2], {.n_head = 2, .causal = causal}); }};
}

std::vector<Row> linear_attention_rows() {
  std::vector<Row> rows = {linear_row("causal", {}), linear_row("causal, chunks of 3", {.chunk = 3}),
                           linear_row("causal, below the floor", {.floor = 1e3}),
                           linear_row("not causal", {.causal = false}),
                           linear_row("not causal, chunks of 2", {.causal = false, .chunk = 2})};
  rows[0].empties = {[] {
                       return empty_linear_case({0, 3, 4}, {0, 3, 4}, {0, 3, 2}, true);
                     },
                     [] {
                       return empty_linear_case({2, 0, 4}, {2, 0, 4}, {2, 0, 2}, true);
                     },
                     [] {
                       return empty_linear_case({2, 3, 4}, {2, 0, 4}, {2, 0, 2}, false);
                     },
                     [] {
                       return empty_linear_case({2, 0, 4}, {2, 3, 4}, {2, 3, 2}, false);
                     }};
  return rows;
}

// Angles are constants, so the case holds them itself; float32 represents them exactly.
Row rotary_row(const char* name, bool copies) {
  return {.op = "rotary", .name = name, .draw = [=](Draw& draw) {
            const std::int64_t batch = draw.integer(1, 2), tokens = draw.extent(6), size = 2 * draw.extent(17);
            const std::int64_t heads = draw.integer(copies ? 0 : 1, 3), rest = copies ? draw.extent(20) : 0;
            const Tensor angles = convert(draw.normals({tokens, size}), DType::float32);
            return Case{{draw.normals({batch, tokens, heads * size + rest})},
                        [=](const auto& x) { return rotary(x[0], convert(angles, x[0].dtype()), heads); }};
          }};
}

Case empty_rotary(const Shape& x, std::int64_t size) {
  return {{zeros(x, DType::float64)}, [=](const auto& v) {
            return rotary(v[0], zeros({v[0].shape()[1], size}, v[0].dtype()), 2);
          }};
}

Case empty_case(const Shape& q, const Shape& kv, bool causal) {
  return {{zeros(q, DType::float64), zeros(kv, DType::float64)},
          [causal](const auto& x) { return attention(x[0], x[1], {.n_head = 2, .causal = causal}); }};
}

}  // namespace

// With a mean of ten standard deviations, scores have a spread of ten deviations squared. At a deviation of 1 every
// weight is 0 or 1 (the error of dq is then 2e-5 at 32 columns), hence offset_std. Heads of one or two columns can have
// a dq close to 0, hence offset_floor.
std::vector<Row> attention_rows() {
  std::vector<Row> rows = {
      packed_row("packed", {}),
      packed_row("packed, causal", {.causal = true}),
      packed_row("packed, masked", {.masked = true}),
      packed_row("packed, causal, masked, dropout", {.causal = true, .masked = true, .dropout = 0.3}),
      separate_row("more keys than queries", {}, false),
      separate_row("more queries than keys", {}, true),
      separate_row("more keys than queries, causal", {.causal = true}, false),
      separate_row("more queries than keys, causal", {.causal = true}, true),
      separate_row("more keys than queries, masked, dropout", {.masked = true, .dropout = 0.2}, false),
      cache_row("only the first rows are keys", false),
      pair_mask_row("packed, a mask for every query", {}, true, true),
      pair_mask_row("packed, causal, a mask for every query and sequence", {.causal = true}, true, false),
      pair_mask_row("a mask for every query, masked, dropout", {.masked = true, .dropout = 0.2}, false, true),
      pair_mask_row("causal, a mask for every query and sequence, masked", {.causal = true, .masked = true}, false,
                    false),
      packed_row("packed, grouped, causal", {.causal = true, .grouped = true}),
      packed_row("packed, grouped, masked, dropout", {.masked = true, .dropout = 0.3, .grouped = true}),
      separate_row("grouped, more keys than queries", {.grouped = true}, false),
      separate_row("grouped, more queries than keys, causal", {.causal = true, .grouped = true}, true),
      cache_row("grouped, only the first rows are keys", true),
      pair_mask_row("packed, grouped, causal, a mask for every query", {.causal = true, .grouped = true}, true, true),
  };
  rows[4].empties = {[] {
                       return empty_case({0, 3, 4}, {0, 2, 8}, false);
                     },
                     [] {
                       return empty_case({2, 0, 4}, {2, 3, 8}, true);
                     },
                     [] {
                       return empty_case({2, 3, 4}, {2, 0, 8}, false);
                     },
                     [] {
                       return empty_case({2, 3, 4}, {2, 0, 8}, true);
                     },
                     [] {
                       return empty_case({2, 3, 0}, {2, 2, 0}, false);
                     }};
  for (const Row& row : relative_attention_rows()) rows.push_back(row);
  for (const Row& row : linear_attention_rows()) rows.push_back(row);
  rows.push_back(rotary_row("heads and columns to copy", true));
  rows.push_back(rotary_row("heads alone", false));
  rows.back().empties = {[] {
                           return empty_rotary({0, 3, 12}, 4);
                         },
                         [] {
                           return empty_rotary({2, 0, 12}, 4);
                         },
                         [] {
                           return empty_rotary({2, 3, 0}, 0);
                         }};
  return rows;
}

}  // namespace maki::tests
