// Where the text of a run comes from, and where it is found again.
#pragma once

#include <string>
#include <vector>

#include "data/corpus.h"
#include "train/config.h"

namespace maki {

/// How the files of a run's corpus are read.
CorpusOptions corpus_options(const Config& config);

/// load_corpus(), with its notes on stderr. Throws Error for a source that is a run directory, naming --resume.
Corpus read_corpus(const std::vector<std::string>& sources, const CorpusOptions& options);
/// The corpus of a run once more, as the run knows it. Throws CorpusError when it is another text than that of `hash`.
Corpus read_corpus_again(const Config& config, const std::string& hash);

/// Paths made absolute, so that a run can be gone on with from another folder. "-" and "@stories" stay.
std::vector<std::string> absolute_sources(std::vector<std::string> sources);

/// The sources to read for a run once more: those given now, else the stored ones. Throws CorpusError where the stored
/// text came from standard input, which does not come twice by itself.
std::vector<std::string> sources_again(const std::string& run, const std::vector<std::string>& given,
                                       const std::vector<std::string>& stored);

}  // namespace maki
