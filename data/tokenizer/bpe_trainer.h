// Learns the merges of byte-level BPE from a text, with the result of Hugging Face's trainer: the pair that occurs most
// often is merged next, the one with the smaller ids among equal ones.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizer/bpe_encoder.h"
#include "data/tokenizer/pre_tokenizer.h"

namespace maki {

/// A piece of text and how often it occurs.
using PieceCounts = std::vector<std::pair<std::string_view, std::int64_t>>;
/// Counts the pieces of texts, on all threads. The order of the result is unspecified; the texts must outlive it.
PieceCounts count_pieces(std::span<const std::string_view> texts, const PreTokenizer& pre_tokenizer);

/// Learns merges until there are `max_tokens` tokens, the 256 bytes included, or no pair occurs twice. Tokens 0 to 255
/// are the bytes in the order of bytes_by_character(), and every merge makes the next token, except that a string that
/// is a token already keeps its id. Takes memory in proportion to the bytes of the pieces, however long a piece is, and
/// a merge visits only the places of its pair. Throws CorpusError for more than 4 GiB of different pieces.
std::vector<BpeMerge> train_bpe(const PieceCounts& pieces, std::int64_t max_tokens);

}  // namespace maki
