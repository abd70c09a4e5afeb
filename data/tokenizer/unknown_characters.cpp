#include "data/tokenizer/unknown_characters.h"

#include <map>
#include <set>

#include "autograd/core/table.h"
#include "data/io/error.h"
#include "data/io/utf8.h"
#include "data/tokenizer/byte_tokenizer.h"
#include "data/tokenizer/char_tokenizer.h"

namespace maki {
namespace {

struct NamedPolicy {
  const char* name;
  Unknown policy;
};
constexpr NamedPolicy kPolicyRows[] = {
    {"error", Unknown::error}, {"skip", Unknown::skip}, {"replace", Unknown::replace}};
constexpr Table kPolicies("unknown", kPolicyRows);

using Counts = std::map<char32_t, std::int64_t>;

std::string replacement_in(const Tokenizer& tokenizer) {
  for (const char* const candidate : {"\uFFFD", " ", "?"}) {
    if (tokenizer.unknown(candidate).empty()) return candidate;
  }
  fail<CorpusError>(
      "tokenizer: the vocabulary has none of U+FFFD, space and ? to replace unknown characters with; leave them out "
      "with `unknown` skip");
}

std::string without(std::string_view text, const Counts& unknown, const std::string& replacement) {
  std::string known;
  known.reserve(text.size());
  while (!text.empty()) {
    const std::string_view before = text;
    const bool lacks = unknown.contains(next_code_point(text));
    known += lacks ? std::string_view(replacement) : before.substr(0, before.size() - text.size());
  }
  return known;
}

// The text as the tokenizer normalizes it, without unknown characters; adds their number to `count`. Characters between
// which one was left out may combine to another unknown one.
std::string known_part(const Tokenizer& tokenizer, std::string_view text, const std::string& replacement,
                       std::int64_t& count) {
  const Normalization form = tokenizer.normalization();
  std::string known = normalize(text, form);
  for (Counts unknown = tokenizer.unknown(known); !unknown.empty(); unknown = tokenizer.unknown(known)) {
    for (const auto& [c, times] : unknown) count += times;
    known = normalize(without(known, unknown, replacement), form);
  }
  return known;
}

}  // namespace

Counts as_written(Counts lacking, const Counts& written, Normalization form) {
  Counts found;
  std::set<char32_t> named;
  for (const auto& [c, count] : written) {
    std::string character;
    append_utf8(character, c);
    const std::string normal = normalize(character, form);
    for (std::string_view rest = normal; !rest.empty();) {
      const char32_t part = next_code_point(rest);
      if (!lacking.contains(part)) continue;
      found[c] = count;
      named.insert(part);
    }
  }
  for (const char32_t c : named) lacking.erase(c);
  lacking.merge(found);
  return lacking;
}

Unknown parse_unknown_policy(const std::string& name) { return kPolicies.row(name).policy; }

std::string KnownText::describe() const {
  if (unknown == 0) return {};
  const std::string by = replacement == " " ? "a space" : replacement == "?" ? "?" : "U+FFFD";
  return fmt::format("{} that the vocabulary lacks {} {}",
                     unknown == 1 ? "1 character" : fmt::format("{} characters", unknown),
                     unknown == 1 ? "was" : "were", replacement.empty() ? "left out" : "replaced with " + by);
}

KnownText known_text(const Tokenizer& tokenizer, std::vector<std::string_view> pieces, Unknown policy) {
  KnownText known{.pieces = std::move(pieces), .changed = {}, .unknown = 0, .replacement = {}};
  Counts unknown;
  for (const std::string_view piece : known.pieces) {
    for (const auto& [c, count] : tokenizer.unknown(piece)) unknown[c] += count;
  }
  if (unknown.empty()) return known;
  check<CorpusError>(policy != Unknown::error && policy != Unknown::refuse, "{}{}",
                     unknown_sentence(tokenizer.vocab_size(), unknown),
                     policy == Unknown::refuse ? "" : " with `unknown` skip, or replace them with `unknown` replace");
  if (policy == Unknown::replace) known.replacement = replacement_in(tokenizer);
  known.changed.reserve(known.pieces.size());
  for (std::string_view& piece : known.pieces) {
    if (!tokenizer.unknown(piece).empty())
      piece = known.changed.emplace_back(known_part(tokenizer, piece, known.replacement, known.unknown));
  }
  return known;
}

}  // namespace maki
