// Reads tokenizer.json and vocab.json. Vocabulary and merges, which are nearly all of the text, are taken out while it
// is parsed, so that memory stays in proportion to the file.
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/text/error.h"
#include "data/text/printable.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "data/tokenizer/vocabulary_text.h"

namespace maki {
namespace {

using nlohmann::json;

class Parser {
 public:
  /// The names and ids are the members of the object at this depth: 1 for the root, 3 for model.vocab.
  Parser(VocabularyText& vocabulary, int vocab_depth) : vocabulary_(vocabulary), vocab_depth_(vocab_depth) {}

  // The rest of the document.
  json parse(std::string_view text) {
    try {
      return json::parse(text.begin(), text.end(), [this](int depth, json::parse_event_t event, json& parsed) {
        return take(depth, event, parsed);
      });
    } catch (const json::parse_error& error) {
      fail<CorpusError>("tokenizer: the text must be valid JSON; byte {} is not", error.byte);
    } catch (const json::exception&) {
      fail<CorpusError>("tokenizer: the text must be JSON with numbers that can be represented");
    }
  }

 private:
  bool in_vocab(int depth) const {
    return depth == vocab_depth_ && (depth == 1 || (keys_[1] == "model" && keys_[2] == "vocab"));
  }
  bool in_merges(int depth) const {
    return vocab_depth_ == 3 && depth >= 3 && keys_[1] == "model" && keys_[2] == "merges";
  }

  // Called for every part of the document; the result says whether to keep it.
  bool take(int depth, json::parse_event_t event, json& parsed) {
    check<CorpusError>(depth < kMaxDepth, "tokenizer: the JSON text may be nested {} levels deep; it is nested deeper",
                       kMaxDepth);
    using enum json::parse_event_t;
    if (event == key) {
      keys_[static_cast<std::size_t>(depth)] = parsed.get_ref<const std::string&>();
      return !in_vocab(depth);
    }
    if (event == value && depth == 2 && keys_[1] == "model" && keys_[2] == "type") {
      check<CorpusError>(parsed == json("BPE"), "tokenizer: the model must be byte-level BPE; got {}",
                         truncate_for_message(parsed.dump(-1, ' ', true, json::error_handler_t::replace)));
    }
    if (in_vocab(depth) && event != object_end) return take_token(event, parsed);
    if (in_merges(depth)) return take_merge(depth, event, parsed);
    check<CorpusError>(event == object_end || event == array_end || ++kept_ <= kMaxKept,
                       "tokenizer: besides vocabulary and merges, the JSON text may have {} values; it has more",
                       kMaxKept);
    return true;
  }

  bool take_token(json::parse_event_t event, const json& parsed) {
    const std::string& name = keys_[static_cast<std::size_t>(vocab_depth_)];
    const bool id = event == json::parse_event_t::value && parsed.is_number_unsigned() &&
                    parsed.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max();
    check<CorpusError>(
        id, "tokenizer: the id of {} must be a whole number below 2^31; got {}", truncate_for_message(name),
        event == json::parse_event_t::value ? truncate_for_message(parsed.dump()) : "a list or an object");
    vocabulary_.names.add(name);
    vocabulary_.ids.push_back(parsed.get<std::int32_t>());
    return true;
  }

  // A merge is "left right" or ["left", "right"].
  bool take_merge(int depth, json::parse_event_t event, const json& parsed) {
    using enum json::parse_event_t;
    const auto require = [](bool good) {
      check<CorpusError>(good, "tokenizer: a merge must be a string or a list of two strings; one is neither");
    };
    require(event != object_start && event != object_end && depth <= 4);
    if (depth == 4) {
      require(event == value && parsed.is_string() && ++pair_size_ <= 2);
      return true;
    }
    if (event == array_start) {
      pair_size_ = 0;
      return true;
    }
    if (event == value) {
      require(parsed.is_string());
      vocabulary_.merges.add(parsed.get_ref<const std::string&>());
    } else {
      require(parsed.size() == 2);
      vocabulary_.merges.add(parsed[0].get<std::string>() + ' ' + parsed[1].get<std::string>());
    }
    return false;
  }

  static constexpr int kMaxDepth = 16;
  // Of about a hundred bytes each. The end of an object costs time in proportion to the length of the list that it is
  // in.
  static constexpr int kMaxKept = 100'000;
  VocabularyText& vocabulary_;
  int vocab_depth_, pair_size_ = 0, kept_ = 0;
  std::array<std::string, kMaxDepth> keys_;
};

std::string text_of(const json& value) {
  return truncate_for_message(value.dump(-1, ' ', true, json::error_handler_t::replace));
}

// The member of an object; null if there is none.
const json& member(const json& object, const char* name) {
  static const json kNull;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : kNull;
}
std::string type_of(const json& object) {
  const json& type = member(object, "type");
  return type.is_string() ? type.get<std::string>() : "";
}
bool is_true(const json& object, const char* name) { return member(object, name) == json(true); }
bool is_empty(const json& value) {
  return value.is_null() || value == json("") || value == json(0.0) || value == json(0);
}

[[noreturn]] void refuse(const char* what, const json& value, const char* known) {
  fail<CorpusError>("tokenizer: {} must be {}; got {}", what, known, text_of(value));
}

void read_model(const json& model, VocabularyText& vocabulary) {
  check<CorpusError>(model.is_object() && vocabulary.names.size() > 0,
                     "tokenizer: a tokenizer.json must have a model with a vocabulary");
  for (const char* const name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!is_empty(member(model, name)))
      refuse(name, member(model, name), "absent, because byte-level BPE here has none");
  }
  if (is_true(model, "byte_fallback"))
    refuse("byte_fallback", true, "false, because the tokens of byte-level BPE are bytes already");
  vocabulary.whole_pieces = is_true(model, "ignore_merges");
}

void read_normalizer(const json& normalizer, VocabularyText& vocabulary) {
  if (normalizer.is_null()) return;
  const std::string type = type_of(normalizer);
  const json& parts = member(normalizer, "normalizers");
  if (type == "Sequence" && parts.is_array() && parts.size() <= 1)
    return read_normalizer(parts.empty() ? json() : parts[0], vocabulary);
  if (type != "NFC" && type != "NFKC") refuse("normalizer", normalizer, "null, NFC or NFKC");
  vocabulary.normalization = type == "NFC" ? Normalization::nfc : Normalization::nfkc;
}

// The rule of a ByteLevel pre-tokenizer with its own expression, or of a Split followed by a ByteLevel without.
std::string rule_of(const json& pre_tokenizer) {
  constexpr const char* kKnown =
      "ByteLevel without add_prefix_space, or a Split by the expression of a known tokenizer, followed by such a "
      "ByteLevel";
  const json& parts = member(pre_tokenizer, "pretokenizers");
  const bool sequence =
      type_of(pre_tokenizer) == "Sequence" && parts.is_array() && (parts.size() == 1 || parts.size() == 2);
  const json& bytes = sequence ? parts.back() : pre_tokenizer;
  if (type_of(bytes) != "ByteLevel" || is_true(bytes, "add_prefix_space"))
    refuse("pre_tokenizer", pre_tokenizer, kKnown);
  const bool own_expression = member(bytes, "use_regex") != json(false);
  if (!sequence || parts.size() == 1) {
    if (!own_expression) refuse("pre_tokenizer", pre_tokenizer, kKnown);
    return "gpt2";
  }
  const json& split = parts[0];
  const json& expression = member(member(split, "pattern"), "Regex");
  const std::string rule =
      expression.is_string() ? PreTokenizer::rule_of_expression(expression.get_ref<const std::string&>()) : "";
  if (own_expression || type_of(split) != "Split" || member(split, "behavior") != json("Isolated") ||
      is_true(split, "invert") || rule.empty())
    refuse("pre_tokenizer", pre_tokenizer, kKnown);
  return rule;
}

void read_added_tokens(const json& added, VocabularyText& vocabulary) {
  if (added.is_null()) return;
  if (!added.is_array()) refuse("added_tokens", added, "a list");
  for (const json& token : added) {
    const json &id = member(token, "id"), &content = member(token, "content");
    if (!content.is_string() || content.get_ref<const std::string&>().empty() || !id.is_number_unsigned() ||
        id.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max())
      refuse("added_tokens", token, "a list of tokens with a content and an id below 2^31");
    vocabulary.specials.add(content.get_ref<const std::string&>());
    vocabulary.special_ids.push_back(id.get<std::int32_t>());
  }
}

}  // namespace

void read_vocab_json(std::string_view text, VocabularyText& vocabulary) {
  const json root = Parser(vocabulary, 1).parse(text);
  check<CorpusError>(root.is_object(), "tokenizer: a vocab.json must be an object of names and ids");
}

void read_tokenizer_json(std::string_view text, VocabularyText& vocabulary) {
  const json root = Parser(vocabulary, 3).parse(text);
  read_model(member(root, "model"), vocabulary);
  read_normalizer(member(root, "normalizer"), vocabulary);
  vocabulary.rule = rule_of(member(root, "pre_tokenizer"));
  const json& decoder = member(root, "decoder");
  if (!decoder.is_null() && type_of(decoder) != "ByteLevel") refuse("decoder", decoder, "ByteLevel");
  read_added_tokens(member(root, "added_tokens"), vocabulary);
}

}  // namespace maki
