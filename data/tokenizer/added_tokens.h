// Tokens that were added to a vocabulary beside those that merges make: special tokens, such as <|endoftext|>, and
// others that stand for a piece of text. They are found in a text before it is normalized and cut into pieces, as in
// the library tokenizers of Hugging Face.
//
// Thread safety: immutable, and may be used by several threads at once.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "data/tokenizer/normalization.h"
#include "data/tokenizer/token_list.h"

namespace maki {

struct AddedToken {
  std::int32_t id = 0;
  bool special = true;  ///< controls the model, and is not part of the text that it reads and writes
  /// Found in every text; otherwise only where special tokens are asked for (Tokenizer::encode_with_specials()).
  bool always = false;
  bool lstrip = false, rstrip = false;  ///< includes the white space to its left, to its right
  bool single_word = false;             ///< is found only where no word character is beside it
  bool normalized = false;              ///< its normal form is found in the normalized text, not itself in the text

  bool operator==(const AddedToken&) const = default;
};

/// Whether a token of this id is among them. Requires: they are in ascending order of their ids.
bool is_added(std::span<const AddedToken> added, std::int32_t id);

class AddedTokens {
 public:
  using OnText = std::function<void(std::string_view)>;
  using OnToken = std::function<void(std::int32_t)>;

  AddedTokens() = default;
  AddedTokens(std::span<const AddedToken> added, const TokenList& tokens);

  /// Whether some are found in every text.
  bool any_always() const { return any_always_; }
  /// Whether it may depend on the other side of a cut if one of those is found. A text is cut before white space that
  /// follows another character.
  bool may_span_cuts() const { return any_always_ && may_span_cuts_; }

  /// Calls `on_token` for the added tokens in a text, with `specials` for all and otherwise for those that are always
  /// found, and `on_text` for the normalized text between them, in order. Of several that begin at one place, the
  /// longest is found.
  void split(std::string_view text, Normalization form, bool specials, const OnText& on_text,
             const OnToken& on_token) const;

 private:
  struct Finder {
    using ByText = std::map<std::string, AddedToken, std::less<>>;
    ByText by_text;
    std::set<std::size_t, std::greater<>> sizes;  // of these texts
    std::array<bool, 256> begins{};               // whether one begins with this byte

    void add(const std::string& text, const AddedToken& token);
    const ByText::value_type* longest_at(std::string_view text) const;
    void split(std::string_view text, bool specials, const OnText& on_text, const OnToken& on_token) const;
  };

  Finder in_text_;
  std::array<Finder, kNormalizations> in_normalized_;  // by Normalization
  bool any_always_ = false, may_span_cuts_ = false;    // the latter for all, also those that are not always found
};

}  // namespace maki
