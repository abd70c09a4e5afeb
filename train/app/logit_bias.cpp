#include "train/app/logit_bias.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "data/io/error.h"
#include "data/io/number.h"

namespace maki {
namespace {

bool is_whole_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::int32_t> ids_of(const std::string& text, const Tokenizer& tokenizer) {
  try {
    return tokenizer.encode_with_specials(text);
  } catch (const CorpusError& error) {  // rethrown as Error: a wrong value of an option is a usage error (exit code 2)
    fail("logit-bias: {}: {}", text, error.what());
  }
}

// The id of the token that an entry names before its '='. Digits are always an id, so a token whose text consists of
// digits can be named by its id only.
std::int32_t token_named(const std::string& text, const Tokenizer& tokenizer) {
  const std::int64_t vocabulary = tokenizer.vocab_size();
  if (is_whole_number(text))
    return static_cast<std::int32_t>(parse_integer("logit-bias: the id", text, 0, static_cast<double>(vocabulary - 1)));
  const std::vector<std::int32_t> ids = ids_of(text, tokenizer);
  check(ids.size() == 1, "logit-bias: must name one token; \"{}\" is {} ({}); give each an option of its own", text,
        pluralize(std::ssize(ids), "token"), fmt::join(ids, ", "));
  return ids.front();
}

}  // namespace

std::vector<LogitBias> parse_logit_bias(const std::vector<std::string>& entries, const Tokenizer& tokenizer) {
  std::vector<LogitBias> list;
  for (const std::string& entry : entries) {
    const std::size_t sign = entry.rfind('=');  // the last one: the text of a token may contain '=', a number cannot
    check(sign != std::string::npos && sign > 0, "logit-bias: must be ID=BIAS or TEXT=BIAS, such as 5=-2.5; got {}",
          entry);
    const std::int32_t id = token_named(entry.substr(0, sign), tokenizer);
    const double bias = parse_number("logit-bias", entry.substr(sign + 1), -kMaxCount, kMaxCount);
    std::erase_if(list, [&](const LogitBias& other) { return other.id == id; });
    list.push_back({id, bias});
  }
  return list;
}

}  // namespace maki
