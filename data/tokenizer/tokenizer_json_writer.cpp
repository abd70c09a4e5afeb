// Writes vocabularies for other programs.
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/text/error.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/byte_characters.h"
#include "data/tokenizer/normalized_tokenizer.h"
#include "data/tokenizer/tokenizer_files.h"

namespace maki {
namespace {

const Tokenizer& without_normalization(const Tokenizer& tokenizer) {
  const auto* const normalized = dynamic_cast<const NormalizedTokenizer*>(&tokenizer);
  return normalized == nullptr ? tokenizer : normalized->inner();
}

const BpeParts* parts_of(const Tokenizer& tokenizer) {
  const auto* const bpe = dynamic_cast<const BpeTokenizer*>(&without_normalization(tokenizer));
  check<CorpusError>(bpe != nullptr || tokenizer.kind() == "byte",
                     "tokenizer: only byte-level BPE and bytes can be written for other programs; the kind is {}",
                     tokenizer.kind());
  return bpe == nullptr ? nullptr : &bpe->parts();
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string normalizer_json(const Tokenizer& tokenizer) {
  const auto* const normalized = dynamic_cast<const NormalizedTokenizer*>(&tokenizer);
  if (normalized == nullptr) return "null";
  return normalized->form() == Normalization::nfc ? R"({"type": "NFC"})" : R"({"type": "NFKC"})";
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
void write_list(std::string& json, const Items& items, const Write& write) {
  const char* separator = "\n      ";
  for (const auto& item : items) {
    json += std::exchange(separator, ",\n      ");
    write(item);
  }
}

}  // namespace

BpeVocabulary bpe_vocabulary(const Tokenizer& tokenizer) {
  const BpeParts* const parts = parts_of(tokenizer);
  BpeVocabulary vocabulary;
  vocabulary.end_of_text = tokenizer.end_of_text();
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const bool special = parts != nullptr && std::ranges::binary_search(parts->specials, id);
    const std::string_view bytes = tokenizer.bytes(id);
    vocabulary.tokens.push_back(special ? std::string(bytes) : to_byte_characters(bytes));
  }
  if (parts == nullptr) return vocabulary;
  for (const BpeMerge& merge : parts->merges) {
    vocabulary.merges.push_back(vocabulary.tokens[static_cast<std::size_t>(merge.left)] + ' ' +
                                vocabulary.tokens[static_cast<std::size_t>(merge.right)]);
  }
  return vocabulary;
}

std::string tokenizer_json(const Tokenizer& tokenizer) {
  const BpeParts* const parts = parts_of(tokenizer);
  const BpeVocabulary vocabulary = bpe_vocabulary(tokenizer);
  std::string json = R"({
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [)";
  write_list(json, parts == nullptr ? std::vector<std::int32_t>() : parts->specials, [&](std::int32_t id) {
    json += fmt::format(R"({{"id": {}, "content": {}, "single_word": false, "lstrip": false, "rstrip": false, )"
                        R"("normalized": false, "special": true}})",
                        id, json_string(vocabulary.tokens[static_cast<std::size_t>(id)]));
  });
  json += fmt::format(R"(],
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
                      normalizer_json(tokenizer), pre_tokenizer_json(parts == nullptr ? "gpt2" : parts->rule),
                      parts != nullptr && parts->whole_pieces);
  std::size_t id = 0;
  write_list(json, vocabulary.tokens,
             [&](const std::string& token) { json += fmt::format("{}: {}", json_string(token), id++); });
  json += "},\n    \"merges\": [";
  write_list(json, vocabulary.merges, [&](const std::string& merge) {
    const std::size_t space = merge.find(' ');
    json += fmt::format("[{}, {}]", json_string(merge.substr(0, space)), json_string(merge.substr(space + 1)));
  });
  return json += "]\n  }\n}\n";
}

}  // namespace maki
