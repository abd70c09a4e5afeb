// Reads and decodes one file of a corpus.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/corpus.h"

namespace maki {

/// Appends the text of a file, or of standard input ("-"), to corpus.text and messages for the user to corpus.notes.
/// Throws CorpusError, naming the file, if it cannot be read, is compressed or is not text in the given encoding.
void append_corpus_file(Corpus& corpus, const std::string& path, const CorpusOptions& options);

/// The same for a text that does not have to fit into memory: calls `block` with the text as UTF-8, in blocks of whole
/// characters of about `block_size` bytes, and appends messages to `notes`.
void read_corpus_file(const std::string& path, const CorpusOptions& options, std::size_t block_size,
                      const std::function<void(std::string_view)>& block, std::vector<std::string>& notes);

/// Whether text in this encoding, by its name in iconv, contains zero bytes: UTF-16 and UTF-32 in all their variants.
bool has_zero_bytes(const std::string& encoding);

}  // namespace maki
