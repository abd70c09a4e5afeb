#include "train/cli/verbs.h"

namespace maki {

// One function per verb, each in its own file, in the order in which help lists them.
void add_train(CLI::App& app, Verb& chosen);
void add_plan(CLI::App& app, Verb& chosen);
void add_generate(CLI::App& app, Verb& chosen);
void add_fill(CLI::App& app, Verb& chosen);
void add_embed(CLI::App& app, Verb& chosen);
void add_classify(CLI::App& app, Verb& chosen);
void add_eval(CLI::App& app, Verb& chosen);
void add_attend(CLI::App& app, Verb& chosen);
void add_positions(CLI::App& app, Verb& chosen);
void add_inspect(CLI::App& app, Verb& chosen);
void add_prepare(CLI::App& app, Verb& chosen);
void add_tokenizer(CLI::App& app, Verb& chosen);
void add_import(CLI::App& app, Verb& chosen);
void add_export(CLI::App& app, Verb& chosen);
void add_gradcheck(CLI::App& app, Verb& chosen);
void add_bench(CLI::App& app, Verb& chosen);

void add_verbs(CLI::App& app, Verb& chosen) {
  for (const auto add :
       {add_train, add_plan, add_generate, add_fill, add_embed, add_classify, add_eval, add_attend, add_positions,
        add_inspect, add_prepare, add_tokenizer, add_import, add_export, add_gradcheck, add_bench})
    add(app, chosen);
}

}  // namespace maki
