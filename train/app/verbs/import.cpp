// maki import PATH --out RUN: a run made of a model of another program.
#include <memory>

#include "data/io/error.h"
#include "data/io/number.h"
#include "data/io/shell_quote.h"
#include "data/tokenizer/byte_tokenizer.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/app/flags.h"
#include "train/app/progress.h"
#include "train/app/reading.h"
#include "train/app/report.h"
#include "train/app/verbs.h"
#include "train/run/convert/import_run.h"
#include "train/run/convert/model_formats.h"
#include "train/run/run_directory.h"

namespace maki {
namespace {

struct ImportOptions {
  std::string path, out, tokenizer;
  bool force = false, json = false;
};

// Another process may meanwhile have taken the default directory: then the next.
Imported import_to_default(const ForeignModel& model, const Tokenizer& tokenizer, ImportOptions& o) {
  for (;;) {
    o.out = default_run_path(o.path);
    try {
      return import_run(model, tokenizer, OutputPath(o.out));
    } catch (const OccupiedOutput&) {
      to_stderr("another run has taken {}; this one gets the next number\n", escape_unprintable(o.out));
    }
  }
}

int import_model(ImportOptions& o) {
  check_force("--out", o.out, o.force);
  OutputPath out(o.out, o.force, {o.path});
  if (!o.tokenizer.empty() && o.tokenizer != kByteTokenizer.name) {
    for (const std::string& file : files_of_tokenizer(o.tokenizer)) out.inputs.push_back(file);
  }
  if (!o.out.empty()) require_directory_place(out);  // before time is spent
  const ForeignModel model = open_foreign_model(o.path);
  std::shared_ptr<const Tokenizer> given;
  if (o.tokenizer == kByteTokenizer.name) {
    given = std::make_shared<ByteTokenizer>();
  } else if (!o.tokenizer.empty()) {
    given = open_tokenizer(o.tokenizer);
  }
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_for(model, given.get());
  const Imported run = o.out.empty() ? import_to_default(model, *tokenizer, o) : import_run(model, *tokenizer, out);
  if (run.padding > 0) {
    to_stderr("left out {} of the embedding that no token has; the vocabulary has {}\n", pluralize(run.padding, "row"),
              pluralize(run.vocab_size, "token"));
  }
  Report()
      .add("run", o.out)
      .add("parameters", run.parameters)
      .add("vocab_size", run.vocab_size)
      .add("tokenizer", run.config.tokenizer)
      .add("dtype", to_string(run.config.dtype))
      .text(fmt::format("{}: {} parameters, {} tokenizer with a vocabulary of {}", escape_unprintable(o.out),
                        with_separators(run.parameters), run.config.tokenizer, with_separators(run.vocab_size)))
      .print(o.json, /*indent=*/-1);
  if (o.json) return 0;
  to_stderr("to continue a text: maki generate {0}; to train it further: maki train CORPUS --init-from {0}\n",
            shell_quote(o.out));
  return 0;
}

}  // namespace

void add_import(const Command& command) {
  const auto o = std::make_shared<ImportOptions>();
  command.add_argument("PATH", o->path, import_format_help()).require();
  command.add_option("--out", o->out, "DIR", "directory of the run [runs/<path>-<n>]");
  add_force(command, o->force);
  command.add_option("--tokenizer", o->tokenizer, "PATH",
                     "tokenizer.json, vocab.json or .tiktoken file of the model, a run with its tokenizer, or byte "
                     "[the file beside the model]");
  command.add_flag("--json", o->json, "print the results as JSON");
  command.set_action([o] { return import_model(*o); });
}

}  // namespace maki
