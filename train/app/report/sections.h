// The sections of `maki report`, as HTML. What a run did not measure, or a kind of model does not have, is left out.
#pragma once

#include <string>
#include <vector>

#include "train/app/report.h"
#include "train/app/report/html.h"
#include "train/app/report/measured_run.h"

namespace maki {

/// What the best checkpoint of a run shows of the validation text, of which it reads a sample. Where the text or the
/// checkpoint cannot be read, a sentence says so.
std::string model_sections(const MeasuredRun& run, const PageLanguage& say);

/// The labels of texts against the answers of a classifier, or its most frequent mistakes if there are many labels: the
/// facts "labels" and "confusion" of an evaluation. `part` says, as HTML, of which part of the text they are.
std::string answers_section(const Json& facts, const std::string& part, const PageLanguage& say);

/// All sections of a report: what one run measured and what its model shows, or the measurements of several runs side
/// by side.
std::string report_sections(const std::vector<MeasuredRun>& runs, const PageLanguage& say);

}  // namespace maki
