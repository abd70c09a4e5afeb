// Attention of operands rounded to bfloat16: against a plain model in float64 that rounds the same operands, and its
// guarantees about bits, on every unit.
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <optional>

#include "autograd/kernels/attention/bf16.h"
#include "tests/catch.h"
#include "tests/kernels/attention_case.h"
#include "tests/kernels/bf16_units.h"
#include "tests/kernels/gemm_chain.h"

using namespace maki;
using namespace maki::tests;
using kernels::on_every_unit;

namespace {

// Shapes of one panel and of several, whole heads and heads that are cut into pieces, rows that see less than seven
// keys, no keys at all, masks, dropout, also of a masked part of a panel, and heads that share their keys.
std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> list = {
      {.batch = 2, .queries = 70, .keys = 70, .heads = 2, .head_size = 32, .causal = true},
      {.queries = 300, .keys = 300, .heads = 2, .head_size = 64, .causal = true},
      {.queries = 33, .keys = 150, .heads = 3, .head_size = 24, .causal = true},
      {.queries = 40, .keys = 100, .heads = 1, .head_size = 80},
      {.batch = 2, .queries = 64, .keys = 64, .heads = 2, .head_size = 16, .causal = true, .dropout = 0.3},
      {.queries = 5, .keys = 5, .heads = 2, .head_size = 8, .causal = true},
      {.queries = 20, .keys = 3, .heads = 1, .head_size = 40},
      {.batch = 2, .queries = 90, .keys = 130, .heads = 2, .head_size = 33, .causal = true},
      {.queries = 65, .keys = 65, .heads = 4, .head_size = 32, .causal = true, .kv_heads = 2},
      {.queries = 576, .keys = 576, .heads = 2, .head_size = 8, .causal = true},
      {.queries = 1, .keys = 80, .heads = 2, .head_size = 16},
      {.queries = 70, .keys = 70, .heads = 2, .head_size = 24, .causal = true},
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].scale = 0.3;
    list[i].seed = i + 1;
  }
  AttentionCase& masked = list[7];
  for (std::int64_t i = 0; i < masked.batch * masked.keys; ++i) masked.mask.push_back(i % 3 != 1 && i > 20);
  AttentionCase& late = list.back();  // its early rows are not in the first panel
  for (std::int64_t i = 0; i < late.keys; ++i) late.mask.push_back(i >= 40);
  const std::vector<AttentionCase> later = late_key_cases();
  list.insert(list.end(), later.begin(), later.end());
  for (AttentionCase& c : list) c.rounds_operands = true;
  return list;
}

std::string describe(const AttentionCase& c) {
  return "B " + std::to_string(c.batch) + " T " + std::to_string(c.queries) + " S " + std::to_string(c.keys) + " H " +
         std::to_string(c.heads) + " D " + std::to_string(c.head_size);
}

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
double rounded(double x) { return kernels::bf16_nearest(static_cast<float>(x)); }

// One row of queries: its keys, and what the kernels multiply. In `units`, instructions for bfloat16 multiply.
struct ModelRow {
  ModelRow(const AttentionCase& c_, const AttentionInputs<float>& in_, std::int64_t row, bool units_)
      : c(c_), in(in_), units(units_) {
    t = row % c.queries;
    h = row / c.queries % c.heads;
    b = row / c.queries / c.heads;
    q = at((b * c.queries + t) * c.width() + h * c.head_size);
    for (std::int64_t s = 0; s < c.keys; ++s) {
      if (c.sees(b, t, s)) seen.push_back(s);
    }
    const RandomStream stream(c.seed, RandomPurpose::dropout);
    for (const std::int64_t s : seen) {
      const bool dropped =
          c.dropout > 0 && stream.bits(at(row * c.keys + s)) < static_cast<std::uint32_t>(c.dropout * 0x1p32);
      keep.push_back(dropped ? 0 : 1 / (1 - c.dropout));
    }
  }

  std::size_t key(std::int64_t s) const {
    return at((b * c.keys + s) * 2 * c.kv_width() + h / c.share() * c.head_size);
  }
  std::size_t value(std::int64_t s) const { return key(s) + at(c.kv_width()); }

  // The origins of keys or values for row t_of of this head.
  std::vector<float> origins(std::size_t (ModelRow::*of)(std::int64_t) const, std::int64_t t_of) const {
    std::vector<float> list;
    for (std::int64_t i = 0; i < c.head_size && !seen.empty(); ++i) {
      list.push_back(static_cast<float>(
          attention_origin(c, b, t_of, [&](std::int64_t s) { return in.kv[(this->*of)(s) + at(i)]; })));
    }
    return list;
  }
  // Column i of what is in row `from` of the keys and values, minus an origin, and rounded if `rounds` is true.
  double shifted(std::size_t from, std::int64_t i, const std::vector<float>& origin, bool rounds) const {
    const float x = in.kv[from + at(i)] - origin[at(i)];
    return rounds ? kernels::bf16_nearest(x) : x;
  }
  bool early() const { return seen.size() < 7; }

  const AttentionCase& c;
  const AttentionInputs<float>& in;
  bool units;
  std::int64_t t, h, b;
  std::size_t q;
  std::vector<std::int64_t> seen;
  std::vector<double> keep;
};

// Adds a row to `out`, whose y it sets; `y` are the outputs of the kernels, from which backward computes its sums.
void add_row(const ModelRow& row, const std::vector<float>& y, AttentionResult<double>& out) {
  const AttentionCase& c = row.c;
  const std::int64_t n = c.head_size, count = std::ssize(row.seen), last = c.queries - 1;
  std::vector<double> score(at(count));
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  std::vector<double> weighted(at(n));
  const std::vector<float> key_origin = row.origins(&ModelRow::key, row.t);
  const double factor = static_cast<float>(c.scale * std::numbers::log2e);
  for (std::int64_t begin = 0; begin < count;) {
    std::int64_t end = begin;
    double new_max = max;
    for (; end < count && row.seen[at(end)] / 64 == row.seen[at(begin)] / 64; ++end) {
      for (std::int64_t i = 0; i < n; ++i) {
        score[at(end)] += factor * rounded(row.in.q[row.q + at(i)]) *
                          row.shifted(row.key(row.seen[at(end)]), i, key_origin, !row.early());
      }
      new_max = std::max(new_max, score[at(end)]);
    }
    if (row.units && new_max - max < 8) new_max = max;  // kMaxSlack
    const double alpha = std::exp2(max - new_max);
    sum *= alpha;
    for (double& x : weighted) x *= alpha;
    max = new_max;
    for (; begin < end; ++begin) {
      const double p = std::exp2(score[at(begin)] - max);
      sum += p;
      for (std::int64_t i = 0; i < n; ++i) {
        weighted[at(i)] +=
            rounded(p * row.keep[at(begin)]) * rounded(row.in.kv[row.value(row.seen[at(begin)]) + at(i)]);
      }
    }
  }
  if (count == 0) return;
  for (std::int64_t i = 0; i < n; ++i) out.y[row.q + at(i)] = weighted[at(i)] / sum;
  const double lse = max + std::log2(sum);
  // In dq, the kernels for bfloat16 give early rows the origin of the last row.
  const bool own = row.early() && !row.units;
  const std::vector<float> dq_origin = own ? key_origin : row.origins(&ModelRow::key, last);
  std::vector<float> value_origin = row.origins(&ModelRow::value, row.t);
  if (c.dropout > 0) value_origin.assign(at(n), 0);
  double row_sum = 0;
  for (std::int64_t i = 0; i < n; ++i)
    row_sum += row.in.dy[row.q + at(i)] * static_cast<double>(y[row.q + at(i)] - value_origin[at(i)]);
  for (std::int64_t j = 0; j < count; ++j) {
    const std::int64_t s = row.seen[at(j)];
    const double p = std::exp2(score[at(j)] - lse);
    double dp = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double v = row.shifted(row.value(s), i, value_origin, !row.early());
      dp += rounded(row.in.dy[row.q + at(i)]) * v;
    }
    const double ds = p == 1 ? 0 : rounded(p * (dp * row.keep[at(j)] - row_sum));
    for (std::int64_t i = 0; i < n; ++i) {
      out.dkv[row.value(s) + at(i)] += rounded(p * row.keep[at(j)]) * rounded(row.in.dy[row.q + at(i)]);
      out.dkv[row.key(s) + at(i)] += c.scale * ds * rounded(row.in.q[row.q + at(i)]);
      out.dq[row.q + at(i)] += c.scale * ds * row.shifted(row.key(s), i, dq_origin, !own);
    }
  }
}

AttentionResult<double> model_of(const AttentionCase& c, const AttentionInputs<float>& in,
                                 const std::vector<float>& y) {
  AttentionResult<double> out{
      std::vector<double>(in.q.size()), {}, std::vector<double>(in.q.size()), std::vector<double>(in.kv.size())};
  const bool units = kernels::bf16_forward_kernel() != nullptr;
  for (std::int64_t row = 0; row < c.batch * c.heads * c.queries; ++row) add_row(ModelRow(c, in, row, units), y, out);
  return out;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
bool same(const AttentionResult<float>& a, const AttentionResult<float>& b) {
  return same(a.y, b.y) && same(a.lse, b.lse) && same(a.dq, b.dq) && same(a.dkv, b.dkv);
}

}  // namespace

TEST_CASE("attention in bfloat16 equals a plain model that rounds the same operands") {
  // A weight that float32 and float64 round to different neighbours is off by 2^-9 of itself. With exact operands the
  // norms differ by 2e-3 and more.
  constexpr double kBound = 5e-4;
  int compared = 0;
  on_every_unit([&] {
    for (const AttentionCase& c : cases()) {
      INFO(describe(c));
      for (const double mean : {0.0, 3.0}) {
        const AttentionInputs<float> in = draw_attention<float>(c, mean);
        const AttentionResult<float> found = run_attention(c, in);
        const AttentionResult<double> wanted = model_of(c, in, found.y);
        const double norm = std::max(std::hypot(norm_of(wanted.dq), norm_of(wanted.dkv)), 1e-3);
        REQUIRE(relative(found.y, wanted.y, 0.01) < kBound);
        REQUIRE(relative(found.dq, wanted.dq, norm) < kBound);
        REQUIRE(relative(found.dkv, wanted.dkv, norm) < kBound);
        ++compared;
      }
    }
  });
  REQUIRE(compared >= 24);
}

TEST_CASE("attention in bfloat16 has the same bits on tiles and with pairs") {
  for (const AttentionCase& c : cases()) {
    INFO(describe(c));
    const AttentionInputs<float> in = draw_attention<float>(c);
    std::optional<AttentionResult<float>> first;
    on_every_unit([&] {
      if (kernels::bf16_forward_kernel() == nullptr) return;
      const AttentionResult<float> found = run_attention(c, in);
      if (first) REQUIRE(same(found, *first));
      first = found;
    });
  }
}

TEST_CASE("attention in bfloat16 does not depend on the number of threads") {
  on_every_unit([] {
    for (const AttentionCase& c : cases()) {
      INFO(describe(c));
      const AttentionInputs<float> in = draw_attention<float>(c);
      const AttentionResult<float> wanted = run_attention(c, in);
      kernels::with_every_team([&] { REQUIRE(same(run_attention(c, in), wanted)); });
    }
  });
}

TEST_CASE("a row of attention in bfloat16 depends on what it sees alone") {
  on_every_unit([] {
    AttentionCase c{.queries = 100, .keys = 100, .heads = 2, .head_size = 24, .causal = true, .rounds_operands = true};
    c.seed = 3;
    const AttentionInputs<float> in = draw_attention<float>(c);
    const AttentionResult<float> all = run_attention(c, in);
    for (const std::int64_t rows : {1, 6, 7, 33, 70}) {
      AttentionCase part = c;
      part.queries = part.keys = rows;
      const AttentionInputs<float> first{{in.q.begin(), in.q.begin() + rows * c.width()},
                                         {in.kv.begin(), in.kv.begin() + rows * 2 * c.kv_width()},
                                         {}};
      const AttentionResult<float> found = run_attention(part, first);
      REQUIRE(std::memcmp(found.y.data(), all.y.data(), at(rows * c.width()) * sizeof(float)) == 0);
    }
    AttentionCase masked = c;
    for (std::int64_t s = 0; s < c.keys; ++s) masked.mask.push_back(s % 4 != 2);
    AttentionInputs<float> hidden = in;
    const AttentionResult<float> wanted = run_attention(masked, in);
    for (std::int64_t i = 0; i < std::ssize(hidden.kv); ++i) {
      if (i / (2 * c.kv_width()) % 4 == 2) hidden.kv[at(i)] = std::numeric_limits<float>::quiet_NaN();
    }
    REQUIRE(same(run_attention(masked, hidden), wanted));
  });
}

TEST_CASE("attention in bfloat16: NaN in a query or its gradient reaches no other row of y and dq") {
  on_every_unit([] {
    const AttentionCase c{
        .queries = 100, .keys = 100, .heads = 1, .head_size = 40, .causal = true, .rounds_operands = true};
    const AttentionInputs<float> in = draw_attention<float>(c);
    const AttentionResult<float> clean = run_attention(c, in);
    for (const std::int64_t token : {0, 5, 40, 99}) {
      for (const bool in_query : {true, false}) {
        INFO("token " << token << (in_query ? " of q" : " of dy"));
        AttentionInputs<float> corrupted = in;
        (in_query ? corrupted.q : corrupted.dy)[at(token * c.width() + 3)] = std::numeric_limits<float>::quiet_NaN();
        AttentionResult<float> found = run_attention(c, corrupted);
        REQUIRE(std::isnan(found.y[at(token * c.width() + 3)]) == in_query);
        REQUIRE(std::isnan(found.dq[at(token * c.width() + 3)]));
        for (const auto& [x, wanted] : {std::pair{&found.y, &clean.y}, {&found.dq, &clean.dq}}) {
          std::copy_n(wanted->begin() + token * c.width(), c.width(), x->begin() + token * c.width());
          REQUIRE(same(*x, *wanted));
        }
      }
    }
  });
}

TEST_CASE("attention in bfloat16: a row of scores of −Inf is NaN, and among finite scores −Inf has no weight") {
  on_every_unit([] {
    const AttentionCase c{.keys = 70, .rounds_operands = true};
    AttentionInputs<float> in = draw_attention<float>(c);
    in.q[0] = 1;
    for (std::size_t s = 0; s < 70; ++s) in.kv[2 * s] = -std::numeric_limits<float>::infinity();
    REQUIRE(std::isnan(run_attention(c, in).y[0]));
    in.kv[0] = 0;
    REQUIRE(run_attention(c, in).y[0] == kernels::bf16_nearest(in.kv[1]));
  });
}

TEST_CASE("attention in bfloat16 adds to the gradients that it is told to add to") {
  on_every_unit([] {
    AttentionCase c{.queries = 70, .keys = 70, .heads = 2, .head_size = 24, .causal = true, .rounds_operands = true};
    const AttentionInputs<float> in = draw_attention<float>(c);
    const AttentionResult<float> plain = run_attention(c, in);
    for (const AttentionAdds& adds : {AttentionAdds{true, true, true}, AttentionAdds{false, true, false}}) {
      const AttentionResult<float> found = run_attention(c, in, &plain, adds);
      for (std::size_t i = 0; i < plain.dq.size(); ++i) REQUIRE(found.dq[i] == (adds.dq ? 2 : 1) * plain.dq[i]);
      for (std::size_t i = 0; i < plain.dkv.size(); ++i) {
        const bool key = static_cast<std::int64_t>(i) % (2 * c.kv_width()) < c.kv_width();
        REQUIRE(found.dkv[i] == ((key ? adds.dk : adds.dv) ? 2 : 1) * plain.dkv[i]);
      }
    }
  });
}

TEST_CASE("attention of float64 is not rounded to bfloat16") {
  AttentionCase c{.queries = 70, .keys = 70, .heads = 2, .head_size = 24, .causal = true};
  const AttentionInputs<double> in = draw_attention<double>(c);
  const AttentionResult<double> wanted = run_attention(c, in);
  c.rounds_operands = true;
  REQUIRE(run_attention(c, in).y == wanted.y);
  REQUIRE(run_attention(c, in).dkv == wanted.dkv);
}
