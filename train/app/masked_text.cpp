#include "train/app/masked_text.h"

#include "train/app/encodable_text.h"

namespace maki {
namespace {

// The pieces of the text around its masks.
std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (std::size_t at = text.find(kMask); at != std::string_view::npos; at = text.find(kMask)) {
    pieces.push_back(text.substr(0, at));
    text.remove_prefix(at + kMask.size());
  }
  pieces.push_back(text);
  return pieces;
}

}  // namespace

MaskedText encode_masked(const Tokenizer& tokenizer, std::string_view text, std::string_view name,
                         const std::string& unknown) {
  std::vector<std::string_view> pieces = pieces_of(text);
  const bool spaced_words = tokenizer_kind(tokenizer.kind()).spaced_words;
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
    if (spaced_words && pieces[i].ends_with(' ')) pieces[i].remove_suffix(1);
  }
  MaskedText masked;
  const std::vector<std::string> known = encodable_pieces(tokenizer, pieces, name, unknown);
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i > 0) {
      masked.masks.push_back(static_cast<std::int32_t>(masked.ids.size()));
      masked.ids.push_back(static_cast<std::int32_t>(tokenizer.vocab_size()));
    }
    const std::vector<std::int32_t> ids = tokenizer.encode(known[i]);
    masked.ids.insert(masked.ids.end(), ids.begin(), ids.end());
  }
  return masked;
}

}  // namespace maki
