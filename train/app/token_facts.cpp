#include "train/app/token_facts.h"

#include <fmt/format.h>

#include "data/io/number.h"
#include "data/io/printable.h"

namespace maki {

nlohmann::ordered_json token_facts_json(const TokenFileFacts& facts, const Tokenizer& tokenizer) {
  return {{"tokenizer", tokenizer.kind()},
          {"vocab_size", facts.vocab_size},
          {"train_tokens", facts.train_tokens},
          {"val_tokens", facts.val_tokens},
          {"val_fraction", facts.val_fraction},
          {"documents", facts.documents},
          {"characters", facts.characters},
          {"bytes", facts.bytes},
          {"bytes_per_token", static_cast<double>(facts.bytes) / static_cast<double>(std::max<std::int64_t>(
                                                                     1, facts.train_tokens + facts.val_tokens))},
          {"tokenizer_hash", facts.tokenizer_hash},
          {"corpus_hash", facts.corpus_hash}};
}

void print_token_facts(const TokenFileFacts& facts, const Tokenizer& tokenizer) {
  const std::int64_t tokens = facts.train_tokens + facts.val_tokens;
  fmt::print("tokens      {} for training, {} for validation; {:.2f} bytes per token\n",
             with_separators(facts.train_tokens), with_separators(facts.val_tokens),
             static_cast<double>(facts.bytes) / static_cast<double>(std::max<std::int64_t>(1, tokens)));
  fmt::print("text        {} bytes, {} characters, hash {}\n", with_separators(facts.bytes),
             with_separators(facts.characters), facts.corpus_hash);
  if (facts.documents > 0) {
    fmt::print("documents   {}{}\n", with_separators(facts.documents),
               tokenizer.end_of_text() ? ", each followed by the token that ends a text" : "");
  }
  fmt::print("tokenizer   {}, vocabulary of {}, hash {}\n", tokenizer.kind(), with_separators(facts.vocab_size),
             facts.tokenizer_hash);
}

int inspect_token_file(const std::string& path, bool verify, bool json) {
  const auto file = open_token_file(path);
  if (verify) verify_token_file(*file);
  if (json) {
    nlohmann::ordered_json facts = {{"path", path}, {"verified", verify}};
    facts.update(token_facts_json(file->facts, *file->tokenizer));
    facts["pieces"] = {{"train", file->facts.train_joins + 1}, {"val", file->facts.val_joins + 1}};
    facts["bytes_of_file"] = file->files[0]->size();
    fmt::print("{}\n", facts.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return 0;
  }
  fmt::print("{}\nbytes       {}{}\n", escape_unprintable(path),
             with_separators(static_cast<std::int64_t>(file->files[0]->size())), verify ? ", all verified" : "");
  print_token_facts(file->facts, *file->tokenizer);
  return 0;
}

}  // namespace maki
