// Writes vocabularies for other programs.
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/io/error.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/byte_characters.h"
#include "data/tokenizer/tokenizer_files.h"

namespace maki {
namespace {

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string pre_tokenizer_json(const std::string& rule) {
  constexpr const char* kByteLevel =
      R"({{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": {}}})";
  if (rule == "gpt2") return fmt::format(fmt::runtime(kByteLevel), true);
  return fmt::format(
      R"({{"type": "Sequence", "pretokenizers": [{{"type": "Split", "pattern": {{"Regex": {}}}, "behavior": "Isolated", )"
      R"("invert": false}}, {}]}})",
      json_string(PreTokenizer::expression_of_rule(rule)), fmt::format(fmt::runtime(kByteLevel), false));
}

template <class Items, class Write>
void write_list(std::string& out, const Items& items, const Write& write) {
  const char* separator = "\n      ";
  for (const auto& item : items) {
    out += std::exchange(separator, ",\n      ");
    write(item);
  }
}

}  // namespace

std::string normalizer_json(const Tokenizer& tokenizer) {
  const Normalization form = tokenizer.normalization();
  if (form == Normalization::none) return "null";
  return form == Normalization::nfc ? R"({"type": "NFC"})" : R"({"type": "NFKC"})";
}

bool is_byte_level(const Tokenizer& tokenizer) {
  return tokenizer.bpe_parts() != nullptr || tokenizer_kind(tokenizer.kind()).vocabulary == Vocabulary::bytes;
}

BpeVocabulary bpe_vocabulary(const Tokenizer& tokenizer) {
  check<CorpusError>(is_byte_level(tokenizer),
                     "tokenizer: only byte-level BPE and bytes can be written for other programs; the kind is {}",
                     tokenizer.kind());
  const BpeParts* const parts = tokenizer.bpe_parts();
  BpeVocabulary vocabulary;
  if (parts != nullptr) {
    vocabulary.added = parts->added;
    vocabulary.rule = parts->rule;
    vocabulary.whole_pieces = parts->whole_pieces;
  }
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string_view bytes = tokenizer.bytes(id);
    vocabulary.tokens.push_back(is_added(vocabulary.added, id) ? std::string(bytes) : to_byte_characters(bytes));
  }
  if (parts == nullptr) return vocabulary;
  for (const BpeMerge& merge : parts->merges) {
    vocabulary.merges.push_back(vocabulary.tokens[static_cast<std::size_t>(merge.left)] + ' ' +
                                vocabulary.tokens[static_cast<std::size_t>(merge.right)]);
  }
  return vocabulary;
}

std::string tokenizer_json(const Tokenizer& tokenizer) {
  const BpeVocabulary vocabulary = bpe_vocabulary(tokenizer);
  std::string out = R"({
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [)";
  write_list(out, vocabulary.added, [&](const AddedToken& token) {
    out += fmt::format(
        R"({{"id": {}, "content": {}, "single_word": {}, "lstrip": {}, "rstrip": {}, "normalized": {}, "special": {}}})",
        token.id, json_string(vocabulary.tokens[static_cast<std::size_t>(token.id)]), token.single_word, token.lstrip,
        token.rstrip, token.normalized, token.special);
  });
  out += fmt::format(R"(],
  "normalizer": {},
  "pre_tokenizer": {},
  "post_processor": null,
  "decoder": {{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}},
  "model": {{
    "type": "BPE",
    "dropout": null,
    "unk_token": null,
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": false,
    "byte_fallback": false,
    "ignore_merges": {},
    "vocab": {{)",
                     normalizer_json(tokenizer), pre_tokenizer_json(vocabulary.rule), vocabulary.whole_pieces);
  std::size_t id = 0;
  write_list(out, vocabulary.tokens,
             [&](const std::string& token) { out += fmt::format("{}: {}", json_string(token), id++); });
  out += "},\n    \"merges\": [";
  write_list(out, vocabulary.merges, [&](const std::string& merge) {
    const std::size_t space = merge.find(' ');
    out += fmt::format("[{}, {}]", json_string(merge.substr(0, space)), json_string(merge.substr(space + 1)));
  });
  return out += "]\n  }\n}\n";
}

}  // namespace maki
