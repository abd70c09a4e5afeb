#include "train/cli/encodable_text.h"

#include "data/text/error.h"
#include "data/text/unknown.h"
#include "data/text/utf8.h"
#include "train/cli/progress.h"

namespace maki {

std::string encodable_text(const Tokenizer& tokenizer, std::string_view text, std::string_view name,
                           const std::string& unknown) {
  const auto bad = invalid_utf8(text);
  check<CorpusError>(!bad, "{}: must be UTF-8; the byte at offset {} is not", name, bad.value_or(0));
  try {
    const KnownText known = known_text(tokenizer, {text}, parse_unknown_policy(unknown));
    if (known.unknown > 0) to_stderr("{}: {}\n", name, known.describe());
    return std::string(known.pieces[0]);
  } catch (const CorpusError& error) {
    fail<CorpusError>("{}: {}", name, error.what());
  }
}

}  // namespace maki
