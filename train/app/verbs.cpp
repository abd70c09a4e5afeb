#include "train/app/verbs.h"

namespace maki {

// One function per verb, each in its own file, in the order in which help lists them.
void add_train(const Command& maki);
void add_plan(const Command& maki);
void add_generate(const Command& maki);
void add_fill(const Command& maki);
void add_embed(const Command& maki);
void add_classify(const Command& maki);
void add_eval(const Command& maki);
void add_attend(const Command& maki);
void add_positions(const Command& maki);
void add_inspect(const Command& maki);
void add_prepare(const Command& maki);
void add_tokenizer(const Command& maki);
void add_import(const Command& maki);
void add_export(const Command& maki);
void add_gradcheck(const Command& maki);
void add_bench(const Command& maki);

void add_verbs(const Command& maki) {
  for (const auto add :
       {add_train, add_plan, add_generate, add_fill, add_embed, add_classify, add_eval, add_attend, add_positions,
        add_inspect, add_prepare, add_tokenizer, add_import, add_export, add_gradcheck, add_bench})
    add(maki);
}

}  // namespace maki
