#include "train/app/verbs/token_facts.h"

#include <algorithm>
#include <fmt/format.h>

#include "data/io/number.h"
#include "data/io/printable.h"

namespace maki {

void add_token_facts(const TokenFileFacts& facts, const Tokenizer& tokenizer, Report& report) {
  const std::int64_t tokens = std::max<std::int64_t>(1, facts.train_tokens + facts.val_tokens);
  const double bytes_per_token = static_cast<double>(facts.bytes) / static_cast<double>(tokens);
  report.add("tokenizer", tokenizer.kind())
      .add("vocab_size", facts.vocab_size)
      .add("train_tokens", facts.train_tokens)
      .add("val_tokens", facts.val_tokens)
      .add("val_fraction", facts.val_fraction)
      .add("documents", facts.documents)
      .add("characters", facts.characters)
      .add("bytes", facts.bytes)
      .add("bytes_per_token", bytes_per_token)
      .add("tokenizer_hash", facts.tokenizer_hash)
      .add("corpus_hash", facts.corpus_hash)
      .line("tokens",
            fmt::format("{} for training, {} for validation; {:.2f} bytes per token",
                        with_separators(facts.train_tokens), with_separators(facts.val_tokens), bytes_per_token))
      .line("text", fmt::format("{} bytes, {} characters, hash {}", with_separators(facts.bytes),
                                with_separators(facts.characters), facts.corpus_hash));
  if (facts.documents > 0) {
    const bool ended = tokenizer.end_of_text().has_value();
    report.line("documents",
                with_separators(facts.documents) + (ended ? ", each followed by the token that ends a text" : ""));
  }
  report.line("tokenizer", fmt::format("{}, vocabulary of {}, hash {}", tokenizer.kind(),
                                       with_separators(facts.vocab_size), facts.tokenizer_hash));
}

int inspect_token_file(const std::string& path, bool verify, bool json) {
  const auto file = open_token_file(path);
  if (verify) verify_token_file(*file);
  const auto bytes = static_cast<std::int64_t>(file->files[0]->size());
  Report report;
  report.add("path", path)
      .text(escape_unprintable(path))
      .add("verified", verify)
      .line("bytes", with_separators(bytes) + (verify ? ", all verified" : ""));
  add_token_facts(file->facts, *file->tokenizer, report);
  report.add("pieces", {{"train", file->facts.train_joins + 1}, {"val", file->facts.val_joins + 1}})
      .add("bytes_of_file", bytes)
      .print(json);
  return 0;
}

}  // namespace maki
