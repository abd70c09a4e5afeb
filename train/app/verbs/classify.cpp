// maki classify RUN [TEXT…] [options]: the label that a classifier gives each text.
#include <fmt/core.h>
#include <iostream>
#include <memory>

#include "data/dataset/labelled.h"
#include "data/io/error.h"
#include "nn/models/encoder.h"
#include "train/app/interrupt.h"
#include "train/app/progress.h"
#include "train/app/reading.h"
#include "train/app/report.h"
#include "train/app/verbs.h"
#include "train/loop/best_candidates.h"

namespace maki {
namespace {

struct ClassifyOptions {
  ReadingOptions reading;
  std::vector<std::string> texts;
};

// Gives texts their labels, and writes a line for each.
class Classifier {
 public:
  Classifier(const ReadingOptions& reading, const LoadedModel& loaded) : reading_(reading), loaded_(loaded) {
    require_ability(loaded, task_rule(loaded.state.config).labels, "gives no labels",
                    "train one with --model encoder --task classify on lines of a text, a tab and a label");
    encoder_ = loaded.model->as_encoder();
    labels_ = load_labels(loaded.state.labels);
  }

  /// Writes one line for the text. One that has no token is refused, or with `aligned` gets an empty line, in JSON one
  /// without a label.
  void answer(const std::string& text, const std::string& name, bool aligned) const {
    const std::vector<std::int32_t> ids =
        loaded_.tokenizer->encode_line(encodable_text(*loaded_.tokenizer, text, name, reading_.policy()));
    check<CorpusError>(aligned || !ids.empty(), "{}: must have at least one token; got none", name);
    check<CorpusError>(std::ssize(ids) <= loaded_.state.config.block_size,
                       "{}: may have at most {} tokens, the block_size of the model; it has {}; shorten it", name,
                       loaded_.state.config.block_size, ids.size());
    if (ids.empty()) to_stderr("{}: has no token, and therefore gets no label\n", name);
    Json best, probabilities = Json::object();
    std::string line;
    for (const Candidate& c : ranked_labels(ids)) {
      const std::string& label = labels_[static_cast<std::size_t>(c.id)];
      probabilities[label] = c.probability;
      if (!best.is_null()) continue;
      best = label;
      line = fmt::format("{}\t{:.4f}\t{}", escape_unprintable(label), c.probability, escape_unprintable(text));
    }
    Report()
        .add("checkpoint", loaded_.path)
        .add("step", loaded_.state.step)
        .add("text", text)
        .add("label", best)
        .add("probabilities", probabilities)
        .text(line)
        .print(reading_.json, /*indent=*/-1);
    flush_results();
  }

 private:
  // All labels, the most probable first; none for a text without a token.
  std::vector<Candidate> ranked_labels(const std::vector<std::int32_t>& ids) const {
    if (ids.empty()) return {};
    const Tensor logits = encoder_->class_logits(tensor(ids, {1, std::ssize(ids)}));
    require_finite(loaded_, logits, "logits");
    const std::int64_t classes = std::ssize(labels_);
    return best_candidates(logits, 0, classes, classes);
  }

  const ReadingOptions& reading_;
  const LoadedModel& loaded_;
  const Encoder* encoder_;
  std::vector<std::string> labels_;
};

// Answers each line of standard input before it reads the next.
int classify_lines(const Classifier& classifier) {
  ask("type a line to label it; end with Ctrl-D");
  std::string line;
  for (std::int64_t number = 1; interrupted() == 0 && next_line(std::cin, line); ++number) {
    const DeferInterrupts deferred;  // not while waiting for a line, when there is nothing to end
    classifier.answer(line, fmt::format("line {}", number), /*aligned=*/true);
  }
  return interrupted() == 0 ? 0 : interrupt_exit_code();
}

int classify(const ClassifyOptions& o) {
  const LoadedModel loaded = o.reading.open();
  const Classifier classifier(o.reading, loaded);
  if (o.texts.empty()) return classify_lines(classifier);
  for (std::size_t i = 0; i < o.texts.size(); ++i)
    classifier.answer(o.texts[i], fmt::format("text {}", i + 1), /*aligned=*/false);
  return 0;
}

}  // namespace

void add_classify(const Command& command) {
  const auto o = std::make_shared<ClassifyOptions>();
  o->reading.add_run(command, "run directory or .maki file of a classifier");
  command.add_argument("TEXT", o->texts, "texts [the lines of standard input]").may_be_empty();
  o->reading.add_options(command, "the texts",
                         "print a line of JSON for each text, with the probabilities of all labels");
  command.set_action([o] { return classify(*o); });
}

}  // namespace maki
