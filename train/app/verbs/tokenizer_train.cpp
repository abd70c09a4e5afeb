// maki tokenizer train CORPUS… --out FILE [--force] [--vocab-size N] [--normalize FORM]
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "data/io/number.h"
#include "data/io/output.h"
#include "data/io/printable.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/app/flags.h"
#include "train/app/output_options.h"
#include "train/app/progress.h"
#include "train/app/run_corpus.h"
#include "train/app/verbs/tokenizer.h"
#include "train/run/config/configured_tokenizer.h"

namespace maki {
namespace {

struct TrainTokenizerOptions {
  explicit TrainTokenizerOptions(const Command& command)
      : flags(command, {"vocab_size", "normalize", "invalid_utf8", "encoding", "include", "exclude", "threads"}) {}
  ConfigFlags flags;
  std::vector<std::string> corpus;
  std::string out;
  bool force = false, json = false;
};

int train_tokenizer(const TrainTokenizerOptions& o) {
  check(!o.flags.has_preset(), "tokenizer: a preset describes a model and its training; omit --preset");
  Config config;
  o.flags.apply(config, "quickstart");
  config.tokenizer = "bpe";
  config.corpus = o.corpus;
  o.flags.require_effect(config);
  use_threads(config);
  const OutputPath out(o.out, o.force, o.corpus);
  require_file_place(out);  // before time is spent
  const Corpus corpus = read_corpus(o.corpus, corpus_options(config));
  check<CorpusError>(!corpus.prepared, "{}: contains tokens; a tokenizer learns from text; name the text", o.corpus[0]);
  const auto tokenizer = make_tokenizer(config.tokenizer, corpus.text, tokenizer_options(config));
  const std::string text = tokenizer_json(*tokenizer);
  write_output(posix_file_system(), out, {text_bytes(text)});
  Tokens ids(tokenizer->vocab_size());
  tokenizer->encode(corpus.text, ids);
  const double bytes_per_token = static_cast<double>(corpus.text.size()) / static_cast<double>(ids.size());
  if (o.json) {
    const nlohmann::ordered_json facts = {{"vocab_size", tokenizer->vocab_size()},
                                          {"bytes", corpus.text.size()},
                                          {"characters", corpus.characters},
                                          {"tokens", ids.size()},
                                          {"hash", tokenizer->hash()}};
    fmt::print("{}\n", facts.dump(2));
    return 0;
  }
  fmt::print("{}: {} tokens; the text of {} bytes has {} of them, {:.2f} bytes per token\n", escape_unprintable(o.out),
             with_separators(tokenizer->vocab_size()), with_separators(std::ssize(corpus.text)),
             with_separators(static_cast<std::int64_t>(ids.size())), bytes_per_token);
  if (tokenizer->vocab_size() < config.vocab_size)
    to_stderr("the vocabulary is smaller than --vocab-size {}, because no other pair of tokens occurs twice\n",
              config.vocab_size);
  return 0;
}

}  // namespace

void add_tokenizer_train(const Command& tokenizer) {
  const Command command =
      tokenizer.add_verb("train", "Learn a byte-level BPE vocabulary from a text, and write it as a tokenizer.json");
  const auto o = std::make_shared<TrainTokenizerOptions>(command);
  command
      .add_argument("CORPUS", o->corpus,
                    "files, directories, - for standard input, or a built-in text: " + builtin_corpora())
      .require();
  command.add_option("--out", o->out, "FILE", "tokenizer.json file to write").require();
  add_force(command, o->force);
  command.add_flag("--json", o->json, "print the results as JSON");
  command.set_action([o] { return train_tokenizer(*o); });
}

}  // namespace maki
