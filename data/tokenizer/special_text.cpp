#include "data/tokenizer/special_text.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "data/io/error.h"
#include "data/io/printable.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/normalized_tokenizer.h"

namespace maki {

bool has_specials(const Tokenizer& tokenizer) {
  const BpeParts* const bpe = tokenizer.bpe_parts();
  return bpe != nullptr && !bpe->added.empty();
}

std::shared_ptr<const Tokenizer> finding_specials(const Tokenizer& tokenizer) {
  check<CorpusError>(
      has_specials(tokenizer),
      "special: needs a vocabulary with special tokens; the tokenizer, of the kind {}, has none; omit the "
      "option",
      tokenizer.kind());
  BpeParts parts = *tokenizer.bpe_parts();
  for (AddedToken& token : parts.added) token.always = true;
  std::unique_ptr<Tokenizer> finding =
      with_normalization(std::make_unique<BpeTokenizer>(std::move(parts)), tokenizer.normalization());
  finding->set_use(tokenizer.use());
  return finding;
}

bool same_ids(const Tokenizer& a, const Tokenizer& b) {
  if (a.encodes_like(b)) return true;
  return has_specials(a) && has_specials(b) && finding_specials(a)->encodes_like(*finding_specials(b));
}

bool is_unread_special(const Tokenizer& tokenizer, std::int32_t id) {
  const BpeParts* const bpe = tokenizer.bpe_parts();
  if (bpe == nullptr) return false;
  const auto found = std::ranges::lower_bound(bpe->added, id, {}, &AddedToken::id);
  return found != bpe->added.end() && found->id == id && !found->always;
}

UnreadSpecials::UnreadSpecials(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  const BpeParts* const bpe = tokenizer.bpe_parts();
  if (bpe == nullptr) return;
  std::vector<AddedToken> unread;
  std::ranges::copy_if(bpe->added, std::back_inserter(unread), [](const AddedToken& t) { return !t.always; });
  if (!unread.empty()) unread_.emplace(unread, bpe->tokens);
}

void UnreadSpecials::add(std::string_view text) {
  if (!unread_) return;
  unread_->split(
      text, Normalization::none, /*specials=*/true, [](std::string_view) {}, [&](std::int32_t id) { ++counts_[id]; });
}

std::string UnreadSpecials::list() const {
  constexpr std::size_t kMaxListed = 8;  // enough for a message
  std::vector<std::string> list;
  for (const auto& [id, count] : counts_) {
    if (list.size() == kMaxListed) break;
    list.push_back(
        fmt::format("{} ({} time{})", escape_unprintable(tokenizer_.bytes(id)), count, count == 1 ? "" : "s"));
  }
  if (counts_.size() > list.size()) list.push_back(fmt::format("{} more", counts_.size() - list.size()));
  return fmt::format("{}", fmt::join(list, ", "));
}

std::string UnreadSpecials::note(bool is_new, std::string_view separator) const {
  if (counts_.empty()) return "";
  const bool divides =
      std::ranges::any_of(counts_, [&](const auto& each) { return tokenizer_.bytes(each.first) == separator; });
  const char* advice = "`special` reads them as the special tokens";
  if (is_new)
    advice = divides ? "`document_separator` divides documents only where it stands alone on its line"
                     : "divide documents that end with it with `document_separator`";
  return fmt::format("the text contains {}, read as ordinary characters; {}", list(), advice);
}

}  // namespace maki
