// maki fill RUN --text TEXT [options]: what a masked language model expects in place of each [MASK].
#include <cmath>
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "autograd/core/parallel.h"
#include "data/io/error.h"
#include "data/io/number.h"
#include "data/io/utf8.h"
#include "data/tokenizer/unknown_characters.h"
#include "nn/models/encoder.h"
#include "optim/clip.h"
#include "train/app/choose_checkpoint.h"
#include "train/app/flags.h"
#include "train/app/masked_text.h"
#include "train/app/progress.h"
#include "train/app/verbs.h"
#include "train/loop/best_candidates.h"
#include "train/run/loaded_model.h"

namespace maki {
namespace {

struct FillFlags {
  std::string run, text, checkpoint, unknown = "error";
  std::int64_t top = 5, threads = 0;
  bool special = false, json = false;
};

// What the text becomes if every mask is filled with its best candidate.
std::string filled_text(const MaskedText& masked, const std::vector<std::vector<Candidate>>& candidates,
                        const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ids = masked.ids;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    ids[static_cast<std::size_t>(masked.masks[i])] = candidates[i].front().id;
  return tokenizer.decode(ids);
}

void print_json(const FillFlags& o, const LoadedModel& loaded, const MaskedText& masked,
                const std::vector<std::vector<Candidate>>& candidates) {
  nlohmann::ordered_json facts{{"checkpoint", loaded.path},
                               {"step", loaded.state.step},
                               {"text", o.text},
                               {"filled", filled_text(masked, candidates, *loaded.tokenizer)},
                               {"masks", nlohmann::ordered_json::array()}};
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Candidate& c : candidates[i])
      list.push_back({{"token", loaded.tokenizer->bytes(c.id)}, {"id", c.id}, {"probability", c.probability}});
    facts["masks"].push_back({{"position", masked.masks[i]}, {"candidates", list}});
  }
  fmt::print("{}\n", facts.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_text(const LoadedModel& loaded, const MaskedText& masked,
                const std::vector<std::vector<Candidate>>& candidates) {
  const Tokenizer& tokenizer = *loaded.tokenizer;
  fmt::print("{}\n", escape_unprintable(filled_text(masked, candidates, tokenizer)));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    fmt::print("{} {}\n", kMask, i + 1);
    for (const Candidate& c : candidates[i])
      fmt::print("  {:7.2f} %  \"{}\"\n", 100 * c.probability, escape_unprintable(tokenizer.bytes(c.id)));
  }
}

const Encoder& masked_model(const LoadedModel& loaded) {
  check(task_rule(loaded.state.config).fills_masks,
        "{}: is a model of kind {} for the task {}, which fills no masks; use a run of the task masked, which --model "
        "encoder learns",
        loaded.path, loaded.model->kind(), task_rule(loaded.state.config).name);
  return *loaded.model->as_encoder();
}

int fill(const FillFlags& o) {
  parse_unknown_policy(o.unknown);
  if (o.threads != 0) set_threads(o.threads);
  LoadedModel loaded(choose_checkpoint(o.run, o.checkpoint));
  if (o.special) loaded.find_specials();
  const Encoder& encoder = masked_model(loaded);
  const MaskedText masked = encode_masked(*loaded.tokenizer, o.text, "text", o.unknown);
  check(!masked.masks.empty(), "text: must contain {} where a token is to be filled in; got {}", kMask,
        o.text.empty() ? "an empty text" : o.text);
  const Tensor logits = encoder.logits_at(tensor(masked.masks, {std::ssize(masked.masks)}),
                                          tensor(masked.ids, {1, std::ssize(masked.ids)}));
  check<CheckpointError>(std::isfinite(global_norm(logits)),
                         "{}: the logits of this model are not finite; the model has diverged", loaded.path);
  std::vector<std::vector<Candidate>> candidates;
  for (std::int64_t i = 0; i < std::ssize(masked.masks); ++i)
    candidates.push_back(best_candidates(logits, i, loaded.tokenizer->vocab_size(), o.top));
  if (o.json) {
    print_json(o, loaded, masked, candidates);
  } else {
    print_text(loaded, masked, candidates);
  }
  return 0;
}

}  // namespace

void add_fill(const Command& maki) {
  const Command command = maki.add_verb("fill", "Show what a masked language model expects in place of each [MASK]");
  const auto o = std::make_shared<FillFlags>();
  command.add_argument("RUN", o->run, "run directory or .maki file of an encoder").require();
  command.add_option("--text", o->text, "TEXT", "text with one or more [MASK]; each stands for one token").require();
  command.add_number("--top", o->top, 1, kMaxCount, "number of candidates to show for each mask");
  add_reading_options(command, "the text", o->unknown, o->special, o->checkpoint, o->threads);
  command.add_flag("--json", o->json, "print the candidates as JSON");
  command.set_action([o] { return fill(*o); });
}

}  // namespace maki
