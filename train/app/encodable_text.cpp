#include "train/app/encodable_text.h"

#include "data/io/error.h"
#include "data/io/utf8.h"
#include "data/tokenizer/unknown_characters.h"
#include "train/app/progress.h"

namespace maki {

std::vector<std::string> encodable_pieces(const Tokenizer& tokenizer, const std::vector<std::string_view>& pieces,
                                          std::string_view name, const std::string& unknown) {
  for (const std::string_view piece : pieces) {
    const auto bad = invalid_utf8(piece);
    // The offset in the text, not in the piece: both pointers are into the same string.
    check<CorpusError>(!bad, "{}: must be UTF-8; the byte at offset {} is not", name,
                       piece.data() - pieces[0].data() + static_cast<std::ptrdiff_t>(bad.value_or(0)));
  }
  try {
    const KnownText known = known_text(tokenizer, pieces, parse_unknown_policy(unknown));
    if (known.unknown > 0) to_stderr("{}: {}\n", name, known.describe());
    return {known.pieces.begin(), known.pieces.end()};
  } catch (const CorpusError& error) {
    fail<CorpusError>("{}: {}", name, error.what());
  }
}

std::string encodable_text(const Tokenizer& tokenizer, std::string_view text, std::string_view name,
                           const std::string& unknown) {
  return encodable_pieces(tokenizer, {text}, name, unknown).front();
}

}  // namespace maki
