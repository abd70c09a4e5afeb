// maki classify RUN [TEXT…] [options]: the label that a classifier gives each text.
#include <cerrno>
#include <cmath>
#include <fmt/core.h>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "autograd/core/parallel.h"
#include "data/dataset/labelled.h"
#include "data/io/error.h"
#include "data/io/number.h"
#include "data/tokenizer/unknown_characters.h"
#include "nn/models/encoder.h"
#include "optim/clip.h"
#include "train/app/choose_checkpoint.h"
#include "train/app/encodable_text.h"
#include "train/app/flags.h"
#include "train/app/interrupt.h"
#include "train/app/progress.h"
#include "train/app/verbs.h"
#include "train/loop/best_candidates.h"
#include "train/run/loaded_model.h"

namespace maki {
namespace {

struct ClassifyFlags {
  std::string run, checkpoint, unknown = "error";
  std::vector<std::string> texts;
  std::int64_t threads = 0;
  bool special = false, json = false;
};

// Gives texts their labels, and writes a line for each.
class Classifier {
 public:
  Classifier(const ClassifyFlags& o, const LoadedModel& loaded) : o_(o), loaded_(loaded) {
    check(task_rule(loaded.state.config).labels,
          "{}: is a model of kind {} for the task {}, which gives no labels; train one with --model encoder --task "
          "classify on lines of a text, a tab and a label",
          loaded.path, loaded.model->kind(), task_rule(loaded.state.config).name);
    encoder_ = loaded.model->as_encoder();
    labels_ = load_labels(loaded.state.labels);
  }

  /// Writes one line for the text. One that has no token is refused, or with `aligned` gets an empty line, in JSON one
  /// without a label.
  void answer(const std::string& text, const std::string& name, bool aligned) const {
    const std::vector<std::int32_t> ids =
        loaded_.tokenizer->encode_line(encodable_text(*loaded_.tokenizer, text, name, o_.unknown));
    check<CorpusError>(aligned || !ids.empty(), "{}: must have at least one token; got none", name);
    check<CorpusError>(std::ssize(ids) <= loaded_.state.config.block_size,
                       "{}: may have at most {} tokens, the block_size of the model; it has {}; shorten it", name,
                       loaded_.state.config.block_size, ids.size());
    if (ids.empty()) to_stderr("{}: has no token, and therefore gets no label\n", name);
    const std::vector<Candidate> ranking = ids.empty() ? std::vector<Candidate>() : ranked_labels(ids);
    if (o_.json) {
      print_json(text, ranking);
    } else if (ranking.empty()) {
      fmt::print("\n");
    } else {
      fmt::print("{}\t{:.4f}\t{}\n", label(ranking[0]), ranking[0].probability, escape_unprintable(text));
    }
    if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
  }

 private:
  std::string label(const Candidate& candidate) const { return labels_[static_cast<std::size_t>(candidate.id)]; }

  std::vector<Candidate> ranked_labels(const std::vector<std::int32_t>& ids) const {
    const Tensor logits = encoder_->class_logits(tensor(ids, {1, std::ssize(ids)}));
    check<CheckpointError>(std::isfinite(global_norm(logits)),
                           "{}: the logits of this model are not finite; the model has diverged", loaded_.path);
    const std::int64_t classes = std::ssize(labels_);
    return best_candidates(logits, 0, classes, classes);
  }

  void print_json(const std::string& text, const std::vector<Candidate>& ranking) const {
    nlohmann::ordered_json probabilities = nlohmann::ordered_json::object(), best;
    if (!ranking.empty()) best = label(ranking[0]);
    for (const Candidate& c : ranking) probabilities[label(c)] = c.probability;
    const nlohmann::ordered_json facts{{"checkpoint", loaded_.path},
                                       {"step", loaded_.state.step},
                                       {"text", text},
                                       {"label", best},
                                       {"probabilities", probabilities}};
    fmt::print("{}\n", facts.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }

  const ClassifyFlags& o_;
  const LoadedModel& loaded_;
  const Encoder* encoder_;
  std::vector<std::string> labels_;
};

// Answers each line of standard input before it reads the next.
int classify_lines(const Classifier& classifier) {
  const DeferInterrupts deferred;
  std::string line;
  for (std::int64_t number = 1; interrupted() == 0 && std::getline(std::cin, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    classifier.answer(line, fmt::format("line {}", number), /*aligned=*/true);
  }
  return interrupted() == 0 ? 0 : interrupt_exit_code();
}

int classify(const ClassifyFlags& o) {
  parse_unknown_policy(o.unknown);
  if (o.threads != 0) set_threads(o.threads);
  LoadedModel loaded(choose_checkpoint(o.run, o.checkpoint));
  if (o.special) loaded.find_specials();
  const Classifier classifier(o, loaded);
  if (o.texts.empty()) return classify_lines(classifier);
  for (std::size_t i = 0; i < o.texts.size(); ++i)
    classifier.answer(o.texts[i], fmt::format("text {}", i + 1), /*aligned=*/false);
  return 0;
}

}  // namespace

void add_classify(const Command& maki) {
  const Command command =
      maki.add_verb("classify", "Give each text a label, with the probability that the model assigns to it");
  const auto o = std::make_shared<ClassifyFlags>();
  command.add_argument("RUN", o->run, "run directory or .maki file of a classifier").require();
  command.add_argument("TEXT", o->texts, "texts [the lines of standard input]");
  add_reading_options(command, "the texts", o->unknown, o->special, o->checkpoint, o->threads);
  command.add_flag("--json", o->json, "print a line of JSON for each text, with the probabilities of all labels");
  command.set_action([o] { return classify(*o); });
}

}  // namespace maki
