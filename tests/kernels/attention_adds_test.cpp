// The gradients of attention: a flag for each says whether it is written or added to, and each may be unwanted.
#include <algorithm>
#include <cmath>

#include "tests/kernels/attention_case.h"
#include "tests/kernels/bf16_units.h"
#include "tests/kernels/reference.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("attention: dq, dk and dv are each written or added to independently") {
  kernels::on_every_target_with_amx([] {
    // The second case has few long heads, so its backward is split into steps.
    for (const AttentionCase& c : {AttentionCase{.batch = 2, .queries = 9, .keys = 75, .heads = 2, .head_size = 5},
                                   AttentionCase{.queries = 520, .keys = 530, .heads = 1, .head_size = 4}}) {
      const AttentionInputs<double> in = draw_attention<double>(c);
      const AttentionResult<double> once = run_attention(c, in);
      for (int flags = 0; flags < 8; ++flags) {
        const AttentionAdds adds{.dq = (flags & 1) != 0, .dk = (flags & 2) != 0, .dv = (flags & 4) != 0};
        INFO(c.queries << " queries, added to: dq " << adds.dq << ", dk " << adds.dk << ", dv " << adds.dv);
        const AttentionResult<double> twice = run_attention(c, in, &once, adds);
        int wrong = 0;
        for (std::size_t i = 0; i < once.dq.size(); ++i) wrong += twice.dq[i] != (adds.dq ? 2 : 1) * once.dq[i];
        const auto width = static_cast<std::size_t>(c.width());
        for (std::size_t i = 0; i < once.dkv.size(); ++i) {
          const bool added = i % (2 * width) < width ? adds.dk : adds.dv;
          wrong += twice.dkv[i] != (added ? 2 : 1) * once.dkv[i];
        }
        REQUIRE(wrong == 0);
      }
    }
  });
}

TEST_CASE("attention: what is not wanted is not written, and the rest has the same bits") {
  kernels::on_every_unit([] {
    for (AttentionCase c : {AttentionCase{.batch = 2, .queries = 70, .keys = 75, .heads = 2, .head_size = 5},
                            AttentionCase{.queries = 40, .keys = 40, .heads = 4, .head_size = 8, .kv_heads = 2},
                            AttentionCase{.queries = 520, .keys = 530, .heads = 1, .head_size = 4}}) {
      c.causal = true;
      for (const bool rounds : {false, true}) {
        if (rounds && c.queries > 512) continue;  // products on emulated tiles are slow
        c.rounds_operands = rounds;
        INFO(c.queries << " queries" << (rounds ? " rounded" : ""));
        const AttentionInputs<float> in = draw_attention<float>(c);
        const AttentionResult<float> all = run_attention(c, in);
        const auto unwritten = [](const std::vector<float>& x) {
          return std::ranges::all_of(x, [](float value) { return std::isnan(value); });
        };
        AttentionCase part = c;
        part.wants_dkv = false;
        const AttentionResult<float> queries = run_attention(part, in);
        REQUIRE(same_bits(queries.dq, all.dq));
        REQUIRE(unwritten(queries.dkv));
        part.wants_dkv = true;
        part.wants_dq = false;
        const AttentionResult<float> keys = run_attention(part, in);
        REQUIRE(same_bits(keys.dkv, all.dkv));
        REQUIRE(unwritten(keys.dq));
        part.wants_lse = false;
        const AttentionResult<float> outputs = run_attention(part, AttentionInputs<float>{in.q, in.kv, {}});
        REQUIRE(same_bits(outputs.y, all.y));
        REQUIRE(unwritten(outputs.lse));
      }
    }
  });
}

TEST_CASE("attention: without keys outputs are zero, and without queries the gradients of keys and values are") {
  kernels::on_every_unit([] {
    for (const auto& [queries, keys] : {std::pair{5, 0}, {0, 5}, {0, 0}}) {
      for (int i = 0; i < 4; ++i) {
        AttentionCase c{.batch = 2, .queries = queries, .keys = keys, .heads = 2, .head_size = 3};
        c.causal = i % 2 == 1;
        c.rounds_operands = i / 2 == 1;
        INFO(queries << " queries, " << keys << " keys");
        const AttentionResult<float> found = run_attention(c, draw_attention<float>(c));
        for (const std::vector<float>* const x : {&found.y, &found.lse, &found.dq, &found.dkv}) {
          REQUIRE(*x == std::vector<float>(x->size()));
        }
      }
    }
  });
}
