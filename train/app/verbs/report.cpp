// maki report RUN… [options]: a page that shows what runs have measured and what a model has learned.
#include <fmt/ranges.h>
#include <memory>

#include "autograd/core/check.h"
#include "data/io/file.h"
#include "train/app/draw/words.h"
#include "train/app/flags.h"
#include "train/app/reading.h"
#include "train/app/report/sections.h"
#include "train/app/terminal.h"
#include "train/app/verbs.h"
#include "train/app/verbs/drawing_options.h"

namespace maki {
namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string out, lang;
  bool force = false;
};

// The language of the texts: the one that was chosen, or that of the locale.
std::string language_of(const ReportOptions& o) {
  if (!o.lang.empty()) return words_in(o.lang).name;
  return locale_name("LC_MESSAGES").starts_with("ja") ? "ja" : "en";
}

// A run directory keeps its reports, each named by the step that it shows.
std::string out_of(const ReportOptions& o, const MeasuredRun& run) {
  if (!o.out.empty()) return o.out;
  check(o.runs.size() == 1, "report: of several runs needs a file to write to; add --out FILE");
  check(is_directory(run.path, throw_as<CheckpointError>),
        "report: of a file needs a file to write to; add --out FILE");
  return fmt::format("{}/report-{}.html", run.path, run.state.step);
}

std::vector<std::string> inputs_of(const std::vector<MeasuredRun>& runs) {
  std::vector<std::string> inputs;
  for (const MeasuredRun& run : runs)
    for (const auto& paths : {inputs_of_run(run.path), run.sources})
      inputs.insert(inputs.end(), paths.begin(), paths.end());
  return inputs;
}

int report(const ReportOptions& o) {
  const PageLanguage language(language_of(o));
  const std::vector<MeasuredRun> runs = read_measured_runs(o.runs);
  const std::string out = out_of(o, runs.front());
  const OutputPath place{out, o.force, inputs_of(runs)};
  require_place_for_browsers(place, ".html");  // before time is spent on reading
  const std::string title = fmt::format("maki: {}", fmt::join(o.runs, ", "));
  const std::string page = html_page(title, language, report_sections(runs, language));
  write_for_browsers(place, page);
  return 0;
}

}  // namespace

void add_report(const Command& command) {
  const auto o = std::make_shared<ReportOptions>();
  command.add_argument("RUN", o->runs, "run directories or .maki files; several are shown side by side").require();
  command.add_option("--out", o->out, "FILE", "write the page to this file [RUN/report-STEP.html]");
  add_force(command, o->force);
  command.add_option("--lang", o->lang, fmt::format("{}", fmt::join(languages(), "|")),
                     "language of the page [that of the locale]");
  command.set_action([o] { return report(*o); });
}

}  // namespace maki
