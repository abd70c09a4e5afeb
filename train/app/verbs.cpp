#include "train/app/verbs.h"

#include <algorithm>
#include <iterator>

#include "autograd/core/check.h"
#include "train/loop/team/mpi_team.h"

namespace maki {

// One function per verb, in a file of its own: adds its options and what it does.
void add_train(const Command& command);
void add_plan(const Command& command);
void add_generate(const Command& command);
void add_fill(const Command& command);
void add_embed(const Command& command);
void add_classify(const Command& command);
void add_eval(const Command& command);
void add_attend(const Command& command);
void add_positions(const Command& command);
void add_inspect(const Command& command);
void add_report(const Command& command);
void add_serve(const Command& command);
void add_prepare(const Command& command);
void add_tokenizer(const Command& command);
void add_import(const Command& command);
void add_export(const Command& command);
void add_gradcheck(const Command& command);
void add_bench(const Command& command);

namespace {

struct Verb {
  const char *name, *help;
  void (*add)(const Command& command);
};
constexpr Verb kVerbs[] = {
    {"train", "Train a model on a text, or resume a run", add_train},
    {"plan", "Show what train --minutes would choose for a text, without training", add_plan},
    {"generate", "Generate text with a trained model, or translate", add_generate},
    {"fill", "Show what a masked language model expects in place of each [MASK]", add_fill},
    {"embed", "Compute contextual vectors of the tokens of texts, and compare them", add_embed},
    {"classify", "Give each text a label, with the probability that the model assigns to it", add_classify},
    {"eval", "Measure the loss of a model on a text", add_eval},
    {"attend", "Draw the attention weights of a trained model on a text", add_attend},
    {"positions", "Draw sinusoidal positions, their dot products and their wavelengths", add_positions},
    {"inspect", "Show what a run, a checkpoint or a token file contains", add_inspect},
    {"report", "Write a page that shows what runs have measured and what a model has learned", add_report},
    {"serve", "Show runs in a browser while they train, and let programs complete texts", add_serve},
    {"prepare", "Encode a text once, into a token file from which training starts at once", add_prepare},
    {"tokenizer", "Train a byte-level BPE tokenizer, encode, decode, or inspect a tokenizer", add_tokenizer},
    {"import", "Make a run of a GPT-2 or Llama of another program", add_import},
    {"export", "Write a model for another program", add_export},
    {"gradcheck", "Check the gradients of a model against finite differences in float64", add_gradcheck},
    {"bench", "Benchmark training steps, matrix products or generation against the limits of this machine", add_bench},
};

// What processes that a launcher has started together do together.
constexpr std::string_view kOnRanks[] = {"maki train", "maki bench network"};

}  // namespace

void add_verbs(const Command& maki, std::string_view only) {
  for (const Verb& verb : kVerbs) {
    const Command command = maki.add_verb(verb.name, verb.help);
    if (only.empty() || only == verb.name) verb.add(command);
  }
}

bool is_on_ranks(const std::vector<std::string>& words) {
  std::string command = "maki";
  return std::ranges::any_of(words, [&](const std::string& word) {
    command += " " + word;
    return std::ranges::find(kOnRanks, command) != std::end(kOnRanks);
  });
}

void require_one_process(const std::string& command) {
  const Launch launch = launched();
  check(launch.size == 1 || std::ranges::find(kOnRanks, command) != std::end(kOnRanks),
        "{}: runs in one process, and {} were started together; start it without mpirun", command, launch.size);
}

}  // namespace maki
