// maki export RUN --format F --out PATH: a model for another program.
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "train/app/choose_checkpoint.h"
#include "train/app/output_options.h"
#include "train/app/progress.h"
#include "train/app/verbs.h"
#include "train/run/convert/export_model.h"

namespace maki {
namespace {

struct ExportFlags {
  std::string run, format, checkpoint;
  ExportOptions options;
  bool json = false;
};

int export_run(ExportFlags& o) {
  o.options.out.inputs = inputs_of_run(o.run);
  const LoadedModel model(choose_checkpoint(o.run, o.checkpoint));
  const std::vector<std::string> written = export_model(model, o.format, o.options);
  if (o.json) {
    const nlohmann::ordered_json facts = {{"checkpoint", model.path}, {"format", o.format}, {"files", written}};
    fmt::print("{}\n", facts.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return 0;
  }
  for (const std::string& path : written) fmt::print("{}\n", escape_unprintable(path));
  return 0;
}

}  // namespace

void add_export(const Command& maki) {
  const Command command = maki.add_verb("export", "Write a model for another program");
  const auto o = std::make_shared<ExportFlags>();
  command.add_argument("RUN", o->run, "run directory or .maki file").require();
  command
      .add_option("--format", o->format, fmt::format("{}", fmt::join(export_format_names(), "|")),
                  "format to write (" + export_format_help() + ")")
      .require();
  command
      .add_option("--out", o->options.out.path, "PATH",
                  "directory to write for hf and maki, or file for the other formats")
      .require();
  add_force(command, o->options.out.force);
  command.add_option("--gguf-type", o->options.gguf_type, "f32|f16|q8_0",
                     "data type of the matrices in a GGUF file [f32]");
  command.add_flag("--gelu-as-tanh", o->options.gelu_as_tanh,
                   "write a model with the exact GELU although the other program computes its tanh form (gguf, llm.c)");
  command.add_option("--checkpoint", o->checkpoint, "last|best|STEP",
                     "checkpoint to export: the last, the best, or that of a step [best, else last]");
  command.add_flag("--json", o->json, "print the paths of the files as JSON");
  command.set_action([o] { return export_run(*o); });
}

}  // namespace maki
