#include "train/app/eval_files.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

#include "data/dataset/dataset.h"
#include "data/io/error.h"
#include "data/io/number.h"
#include "data/io/printable.h"
#include "train/loop/evaluate.h"

namespace maki {
namespace {

// The name of the file that a part of the corpus comes from.
const std::string& file_of(const Corpus& corpus, std::string_view part) {
  const auto offset = static_cast<std::size_t>(part.data() - corpus.text.data());
  const auto join = std::ranges::upper_bound(corpus.joins, offset);
  return corpus.files.at(static_cast<std::size_t>(join - corpus.joins.begin()));
}

// All facts about a text; without targets there is nothing else to say about it.
Facts facts_of(const LoadedModel& loaded, const std::string& text, std::int64_t stride) {
  if (encode_pieces(*loaded.tokenizer, {text}).size() < 2) return Facts{{"targets", 0}};
  Corpus alone;
  alone.text = text;
  const std::unique_ptr<Task> task = make_eval_task(loaded.state.config, alone, loaded.tokenizers,
                                                    {.ngram_counts = loaded.state.ngram_counts, .stride = stride});
  const std::int64_t batches = task->eval_batches(Part::val);
  const MeanLoss loss = mean_loss(*loaded.model, *task, Part::val, 0, {}).value();
  check<DivergedError>(std::isfinite(loss.mean), "{}: the loss of this model is {}; the model has diverged",
                       loaded.path, loss.mean);
  constexpr std::string_view kOfTheWhole[] = {"part",   "unknown", "unknown_characters",
                                              "stride", "batches", "batches_of_text"};
  Facts facts;
  for (const ReportLine& line : task->measure(*loaded.model, {loss, batches, batches}, {}, {})) {
    std::ranges::copy_if(line.facts, std::back_inserter(facts), [&](const Fact& fact) {
      return std::ranges::find(kOfTheWhole, fact.name) == std::end(kOfTheWhole);
    });
  }
  return facts;
}

std::string describe(const Facts& facts) {
  const auto has = [&](const char* name) { return std::ranges::find(facts, name, &Fact::name) != facts.end(); };
  const auto value = [&](const char* name) { return std::ranges::find(facts, name, &Fact::name)->value; };
  const auto number = [&](const char* name) { return std::get<double>(value(name)); };
  const std::string targets = pluralize(std::get<std::int64_t>(value("targets")), "target");
  if (!has("val_loss")) return targets;
  if (!has("bits_per_byte")) return fmt::format("{:.4f} nats per target, {}", number("val_loss"), targets);
  return fmt::format("{:.4f} nats per token, {:.4f} bits/byte, {:.4f} bits/char, {}", number("val_loss"),
                     number("bits_per_byte"), number("bits_per_character"), targets);
}

}  // namespace

std::vector<ReportLine> measure_files(const LoadedModel& loaded, const Corpus& corpus, const EvalRequest& request) {
  std::vector<ReportLine> list;
  Facts files;
  check<CorpusError>(corpus.prepared == nullptr, "{}: contains tokens, and --per-file measures files of text; omit it",
                     corpus.files.at(0));
  const std::vector<std::string_view> parts =
      request.own ? split_text(corpus, loaded.state.config.val_fraction).val : file_texts(corpus);
  for (const std::string_view part : parts) {
    const KnownText known = known_text(*loaded.tokenizer, {part}, parse_unknown_policy(request.unknown));
    Facts facts = facts_of(loaded, std::string(known.pieces.at(0)), request.stride);
    const std::string& name = file_of(corpus, part);
    list.push_back({"file", fmt::format("{}: {}", escape_unprintable(name), describe(facts))});
    facts.insert(facts.begin(), Fact("file", name));
    facts.emplace_back("unknown_characters", known.unknown);
    files.emplace_back("", std::move(facts));
  }
  list.push_back({"", "", {{"files", files}}});
  return list;
}

}  // namespace maki
