// Reading the corpus of a run, at its start and again when the run is resumed or evaluated.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/text/corpus.h"
#include "data/tokenizer/tokenizer.h"
#include "train/cli/flags.h"
#include "train/config/config.h"

namespace maki {

/// The options for reading the files of a run's corpus.
CorpusOptions corpus_options(const Config& config);

/// prepared_corpus() or load_corpus(), with its notes printed to stderr. Throws Error, naming --resume, for a source
/// that is a run directory.
Corpus read_corpus(const std::vector<std::string>& sources, const CorpusOptions& options);
/// For a new run on a corpus that was prepared: sets the fields of the configuration that follow from it and returns
/// its tokenizer. `tokenizer` is the one that is given, or null. Throws Error if an option was given that cannot change
/// the tokens, and CorpusError if the corpus has no tokenizer and none is given.
std::shared_ptr<const Tokenizer> adopt_prepared(Corpus& corpus, const ConfigFlags& flags,
                                                std::shared_ptr<const Tokenizer> tokenizer, Config& config);
/// Reads the corpus of an existing run again, in the form in which the run hashed it. Throws CorpusError if its hash is
/// not `hash`.
Corpus reread_corpus(const Config& config, const std::string& hash);

/// Makes paths absolute, so that a run can be resumed from another directory. "-" and names such as "@stories" stay.
std::vector<std::string> absolute_sources(std::vector<std::string> sources);

/// The sources from which to read the text of `run` again: those given now, else the stored ones. Throws CorpusError if
/// the stored text came from standard input, which cannot be read a second time.
std::vector<std::string> resume_sources(const std::string& run, const std::vector<std::string>& given,
                                        const std::vector<std::string>& stored);

}  // namespace maki
