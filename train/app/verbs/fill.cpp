// maki fill RUN --text TEXT [options]: what a masked language model expects in place of each [MASK].
#include <fmt/core.h>
#include <memory>

#include "data/dataset/masking.h"
#include "data/io/number.h"
#include "data/io/printable.h"
#include "train/app/reading.h"
#include "train/app/report.h"
#include "train/app/verbs.h"

namespace maki {
namespace {

struct FillOptions {
  ReadingOptions reading;
  std::string text;
  std::int64_t top = 5;
};

// What the text becomes if every mask is filled with its best candidate.
std::string filled_text(const MaskedText& masked, const std::vector<std::vector<Candidate>>& candidates,
                        const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ids = masked.ids;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    ids[static_cast<std::size_t>(masked.masks[i])] = candidates[i].front().id;
  return tokenizer.decode(ids);
}

void print_candidates(const FillOptions& o, const LoadedModel& loaded, const MaskedText& masked,
                      const std::vector<std::vector<Candidate>>& candidates) {
  const Tokenizer& tokenizer = *loaded.tokenizer;
  const std::string filled = filled_text(masked, candidates, tokenizer);
  Report report;
  report.add("checkpoint", loaded.path)
      .add("step", loaded.state.step)
      .add("text", o.text)
      .add("filled", filled)
      .text(escape_unprintable(filled));
  Json masks = Json::array();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    report.text(fmt::format("{} {}", kMask, i + 1));
    Json list = Json::array();
    for (const Candidate& c : candidates[i]) {
      list.push_back({{"token", tokenizer.bytes(c.id)}, {"id", c.id}, {"probability", c.probability}});
      report.text(fmt::format("  {:7.2f} %  \"{}\"", 100 * c.probability, escape_unprintable(tokenizer.bytes(c.id))));
    }
    masks.push_back({{"position", masked.masks[i]}, {"candidates", list}});
  }
  report.add("masks", masks).print(o.reading.json);
}

int fill(const FillOptions& o) {
  const LoadedModel loaded = o.reading.open();
  require_ability(loaded, task_rule(loaded.state.config).fills_masks, "fills no masks",
                  "use a run of the task masked, which --model encoder learns");
  const MaskedText masked = encode_masked(*loaded.tokenizer, o.text, "text", o.reading.policy());
  check(!masked.masks.empty(), "text: must contain {} where a token is to be filled in; got {}", kMask,
        truncate_for_message(o.text));
  require_positions(loaded, "text", std::ssize(masked.ids));
  print_candidates(o, loaded, masked, fill_masks(loaded, masked, o.top));
  return 0;
}

}  // namespace

void add_fill(const Command& command) {
  const auto o = std::make_shared<FillOptions>();
  o->reading.add_run(command, "run directory or .maki file of an encoder");
  command.add_option("--text", o->text, "TEXT", "text with one or more [MASK]; each stands for one token").require();
  command.add_number("--top", o->top, 1, kMaxCount, "number of candidates to show for each mask");
  o->reading.add_options(command, "the text", "print the candidates as JSON");
  command.set_action([o] { return fill(*o); });
}

}  // namespace maki
