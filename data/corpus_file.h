// One file of a corpus: read, decoded, and refused by name when it is no UTF-8 text.
#pragma once

#include <string>

#include "data/corpus.h"

namespace maki {

/// Appends the text of a file, or of standard input ("-"), to that of the corpus. What a person should know of it goes
/// to corpus.notes. Throws CorpusError.
void append_corpus_file(Corpus& corpus, const std::string& path, const CorpusOptions& options);

/// Is the encoding that the options name one in which zero bytes are part of text?
bool has_zero_bytes(const std::string& encoding);

}  // namespace maki
