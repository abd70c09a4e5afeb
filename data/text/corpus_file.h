// Reads and decodes one file of a corpus.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/corpus.h"

namespace maki {

/// Appends the text of a file, or of standard input ("-"), to corpus.text, what follows from it to corpus.joins, files
/// and documents, and messages for the user to corpus.notes. Returns how many lines separated documents in it. Throws
/// CorpusError, naming the file, if it cannot be read, is compressed or of another kind that is not text, is not text
/// in the given encoding or does not consist of the documents that the options describe; Error if iconv does not know
/// the encoding. The corpus may then have a part of the text.
std::int64_t append_corpus_file(Corpus& corpus, const std::string& path, const CorpusOptions& options);

/// Reads a file or standard input that does not have to fit into memory, without looking for documents: calls `block`
/// with the text as UTF-8, in blocks of whole characters, and appends messages to `notes`. A block comes from
/// `block_size` bytes or up to 64 KiB more; the last may be shorter, but none is empty. The file can be refused after
/// blocks of it were given. What `block` throws is passed on.
void read_corpus_file(const std::string& path, const CorpusOptions& options, std::size_t block_size,
                      const std::function<void(std::string_view)>& block, std::vector<std::string>& notes);

/// Whether text in this encoding contains zero bytes: UTF-16, UTF-32, UCS-2 or UCS-4, with all their variants. Empty is
/// UTF-8.
bool has_zero_bytes(const std::string& encoding);

}  // namespace maki
