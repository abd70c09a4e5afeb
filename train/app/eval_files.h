// maki eval --per-file: every file of a text by itself.
#pragma once

#include <vector>

#include "data/text/corpus.h"
#include "train/loop/tasks.h"
#include "train/run/loaded_model.h"

namespace maki {

/// What eval measures, for each file alone: a line of text, and in `files` an object. The model sees nothing of the
/// files before. Of the run's own text (request.own), these are the parts of the files that are for validation.
/// A file of fewer than two tokens has no target, and gets no loss. Throws CorpusError for a corpus of tokens, and for
/// unknown characters unless request.unknown is skip or replace; DivergedError if a loss is not finite. Requires: the
/// model learned a task on plain text.
std::vector<ReportLine> measure_files(const LoadedModel& loaded, const Corpus& corpus, const EvalRequest& request);

}  // namespace maki
