// maki prepare CORPUS… --out FILE [options]
#include "train/run/convert/prepare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>

#include "autograd/core/check.h"
#include "data/tokenizer/special_text.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/app/flags.h"
#include "train/app/progress.h"
#include "train/app/reading.h"
#include "train/app/run_corpus.h"
#include "train/app/spelling.h"
#include "train/app/verbs/tokenizer.h"
#include "train/run/config/configured_tokenizer.h"

namespace maki {
namespace {

struct PrepareVerbOptions {
  explicit PrepareVerbOptions(const Command& command)
      : flags(command,
              {"tokenizer", "vocab_size", "normalize", "val_fraction", "documents", "document_separator", "json_field",
               "invalid_utf8", "encoding", "include", "exclude", "threads"},
              Unset::file) {}
  ConfigFlags flags;
  std::vector<std::string> corpus;
  std::string out, tokenizer_file, format = "maki";
  bool force = false, special = false, json = false;
};

PrepareOptions prepare_options(const PrepareVerbOptions& o) {
  Config config;
  config.corpus = o.corpus;
  o.flags.apply(config, "");
  check_paths(config);
  PrepareOptions options{.sources = o.corpus,
                         .corpus = corpus_options(config),
                         .val_fraction = config.val_fraction,
                         .tokenizer_kind = config.tokenizer,
                         .tokenizer_options = tokenizer_options(config),
                         .out = {o.out, o.force, o.corpus},
                         .format = o.format,
                         .on_notes = print_messages};
  if (!o.flags.config_file().empty()) options.out.inputs.push_back(o.flags.config_file());
  if (!o.tokenizer_file.empty()) {
    for (const std::string& option : o.flags.given()) {
      check(option != "--tokenizer" && option != "--vocab-size" && option != "--normalize",
            "tokenizer_file: describes the whole tokenizer; omit {}", option);
    }
    for (const std::string& file : files_of_tokenizer(o.tokenizer_file)) options.out.inputs.push_back(file);
    options.tokenizer = open_tokenizer(o.tokenizer_file);
    describe_tokenizer(*options.tokenizer, config);
  }
  if (o.special) {
    check(options.tokenizer != nullptr,
          "special: needs a tokenizer that has special tokens already; name it with --tokenizer-file");
    options.tokenizer = finding_specials(*options.tokenizer);
  }
  o.flags.require_effect(config);
  use_threads(config);
  return options;
}

void say_what_was_learned_from(const Prepared& prepared) {
  if (prepared.learned_bytes == 0 || prepared.learned_bytes == prepared.training_bytes) return;
  to_stderr(
      "the vocabulary was learned from {} of the {} bytes of training text, in parts spread evenly over it; to learn "
      "from more: maki tokenizer train, and --tokenizer-file\n",
      prepared.learned_bytes, prepared.training_bytes);
}

int prepare(const PrepareVerbOptions& o) {
  const PrepareOptions options = prepare_options(o);
  ask_for_text(o.corpus);
  const Prepared prepared = prepare_corpus(posix_file_system(), options);
  say_what_was_learned_from(prepared);
  Report report;
  for (const std::string& file : prepared.files) report.text(escape_unprintable(file));
  add_token_facts(prepared.facts, *prepared.tokenizer, report);
  report.add("format", o.format).add("files", prepared.files);
  if (prepared.learned_bytes > 0) report.add("learned_bytes", prepared.learned_bytes);
  report.print(o.json);
  return 0;
}

}  // namespace

void add_prepare(const Command& command) {
  const auto o = std::make_shared<PrepareVerbOptions>(command);
  add_corpus_argument(command, o->corpus).require();
  command.add_option("--out", o->out, "PATH", "token file to write, or directory for every format but maki").require();
  add_force(command, o->force);
  command.add_option(
      "--tokenizer-file", o->tokenizer_file, "PATH",
      "use this tokenizer instead of a new one: that of a run or token file, a tokenizer.json, vocab.json "
      "with merges.txt beside it, or .tiktoken file");
  add_special_option(command, "the text", o->special);
  command.add_option("--format", o->format, fmt::format("{}", fmt::join(token_formats(), "|")),
                     "format to write (all but maki: train.bin, val.bin and the tokenizer) [maki]");
  command.add_flag("--json", o->json, "print the facts as JSON");
  command.set_action([o] { return prepare(*o); });
}

}  // namespace maki
