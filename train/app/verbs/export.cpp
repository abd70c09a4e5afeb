// maki export RUN --format F --out PATH: a model for another program.
#include <fmt/ranges.h>
#include <memory>

#include "data/io/printable.h"
#include "train/app/flags.h"
#include "train/app/reading.h"
#include "train/app/report.h"
#include "train/app/spelling.h"
#include "train/app/verbs.h"
#include "train/run/convert/model_formats.h"

namespace maki {
namespace {

struct ExportVerbOptions {
  ReadingOptions reading;
  std::string format;
  ExportOptions options;
};

int export_run(ExportVerbOptions& o) {
  o.options.out.inputs = o.reading.inputs();
  const LoadedModel model = o.reading.open();
  const Exported exported = export_model(model, o.format, o.options);
  print_messages(exported.notes);
  Report report;
  report.beside(o.options.out.path).add("checkpoint", model.path).add("format", o.format).add("files", exported.files);
  for (const std::string& path : exported.files) report.text(escape_unprintable(path));
  report.print(o.reading.json, /*indent=*/-1);
  return 0;
}

}  // namespace

void add_export(const Command& command) {
  const auto o = std::make_shared<ExportVerbOptions>();
  o->reading.add_run(command, "run directory or .maki file");
  command
      .add_option("--format", o->format, fmt::format("{}", fmt::join(model_formats().names(), "|")),
                  "format to write (" + model_formats().help() + ")")
      .require();
  command
      .add_option("--out", o->options.out.path, "PATH",
                  fmt::format("directory to write for {}, or file for the other formats",
                              formats_with(&ModelFormat::is_directory)))
      .require();
  add_force(command, o->options.out.force);
  command.add_option("--gguf-type", o->options.gguf_type, "f32|f16|q8_0",
                     "data type of the matrices in a GGUF file [f32]");
  command.add_flag(
      "--gelu-as-tanh", o->options.gelu_as_tanh,
      fmt::format("write a model with the exact GELU although the other program computes its tanh form ({})",
                  formats_with(&ModelFormat::is_tanh, ", ")));
  add_checkpoint_option(command, o->reading.checkpoint);
  command.add_flag("--json", o->reading.json, "print the paths of the files as JSON");
  command.set_action([o] { return export_run(*o); });
}

}  // namespace maki
