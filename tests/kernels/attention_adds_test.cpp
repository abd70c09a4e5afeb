// The gradients of attention: a flag for each says whether it is written or added to.
#include "tests/kernels/attention_case.h"
#include "tests/kernels/gemm_case.h"

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
