// The sections of `maki report`, as HTML. What a run did not measure, or a kind of model does not have, is left out.
#pragma once

#include <string>
#include <vector>

#include "train/app/report/html.h"
#include "train/app/report/measured_run.h"

namespace maki {

/// What the measurements of the runs show: one run in full, or several side by side.
std::string measured_sections(const std::vector<MeasuredRun>& runs, const PageLanguage& say);
/// What the best checkpoint of a run shows of the validation text, of which it reads a sample. Where the text or the
/// checkpoint cannot be read, a sentence says so.
std::string model_sections(const MeasuredRun& run, const PageLanguage& say);

/// All sections of a report on these runs.
std::string report_sections(const std::vector<MeasuredRun>& runs, const PageLanguage& say);

}  // namespace maki
