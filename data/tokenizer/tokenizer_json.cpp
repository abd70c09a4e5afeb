// Reads tokenizer.json and vocab.json. Vocabulary and merges, which are nearly all of the text, are taken out while it
// is parsed, so that memory stays in proportion to the file.
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "data/io/json_text.h"
#include "data/tokenizer/json_members.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "data/tokenizer/vocabulary_text.h"

namespace maki {
namespace {

using nlohmann::json;

// Builds the tree of the document event by event, except for vocabulary and merges.
class Parser final : public nlohmann::json_sax<json> {
 public:
  /// The names and ids are the members of the object at this depth: 1 for the root, 3 for model.vocab.
  Parser(VocabularyText& vocabulary, std::size_t vocab_depth) : vocabulary_(vocabulary), vocab_depth_(vocab_depth) {}

  // The rest of the document.
  json parse(std::string_view text) {
    read_json_text(text, *this);
    return std::move(root_);
  }

  bool null() override { return take(nullptr); }
  bool boolean(bool parsed) override { return take(parsed); }
  bool number_integer(number_integer_t parsed) override { return take(parsed); }
  bool number_unsigned(number_unsigned_t parsed) override { return take(parsed); }
  bool number_float(number_float_t parsed, const string_t&) override { return take(parsed); }
  bool string(string_t& parsed) override { return take(std::move(parsed)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return start(json::object()); }
  bool start_array(std::size_t) override { return start(json::array()); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& name) override {
    keys_[depth()] = std::move(name);
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int kNumberOverflow = 406;  // json.exception.out_of_range.406
    check<CorpusError>(error.id != kNumberOverflow,
                       "tokenizer: the text must be JSON with numbers that can be represented");
    fail<CorpusError>("tokenizer: the text must be valid JSON; byte {} is not", at);
  }

 private:
  std::size_t depth() const { return open_.size(); }
  // Whether the next value is the member `name` of the model.
  bool at_member(const char* name) const { return depth() == 2 && keys_[1] == "model" && keys_[2] == name; }
  bool in_vocab() const {
    return depth() == vocab_depth_ && (depth() == 1 || (keys_[1] == "model" && keys_[2] == "vocab"));
  }
  bool in_merges() const { return vocab_depth_ == 3 && depth() == 3 && keys_[1] == "model" && keys_[2] == "merges"; }

  // A value that is neither a list nor an object.
  bool take(json parsed) {
    if (in_vocab()) {
      take_token(parsed);
    } else if (in_merges()) {
      take_merge(parsed);
    } else {
      if (at_member("type"))
        check<CorpusError>(parsed == json("BPE"), "tokenizer: the model must be byte-level BPE; got {}",
                           text_of(parsed));
      put(std::move(parsed));
    }
    return true;
  }
  bool start(json container) {
    check<CorpusError>(depth() + 1 < kMaxDepth,
                       "tokenizer: the JSON text may be nested {} levels deep; it is nested deeper", kMaxDepth);
    if (in_vocab()) refuse_id("a list or an object");
    if (in_merges()) {
      require_merge(container.is_array() && !pair_);
      pair_.emplace();
      return true;
    }
    if (vocab_depth_ == 1 ? depth() == 0 : at_member("vocab"))
      check<CorpusError>(container.is_object(), "tokenizer: a vocabulary must be an object of names and ids");
    if (at_member("merges")) check<CorpusError>(container.is_array(), "tokenizer: the merges must be a list");
    open_.push_back(put(std::move(container)));
    keys_[depth()].clear();
    return true;
  }
  bool end() {
    if (!pair_) {
      open_.pop_back();
      return true;
    }
    require_merge(pair_->size() == 2);
    vocabulary_.merges.add((*pair_)[0] + ' ' + (*pair_)[1]);
    pair_.reset();
    return true;
  }

  void take_token(const json& parsed) {
    if (!parsed.is_number_unsigned() || parsed.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max())
      refuse_id(text_of(parsed));
    vocabulary_.names.add(keys_[depth()]);
    vocabulary_.ids.push_back(parsed.get<std::int32_t>());
  }
  [[noreturn]] void refuse_id(const std::string& got) const {
    fail<CorpusError>("tokenizer: the id of {} must be a whole number below 2^31; got {}",
                      truncate_for_message(keys_[depth()]), got);
  }
  // A merge is "left right" or ["left", "right"].
  void take_merge(const json& parsed) {
    require_merge(parsed.is_string() && (!pair_ || pair_->size() < 2));
    const auto& text = parsed.get_ref<const std::string&>();
    if (pair_) {
      pair_->push_back(text);
    } else {
      vocabulary_.merges.add(text);
    }
  }
  static void require_merge(bool good) {
    check<CorpusError>(good, "tokenizer: a merge must be a string or a list of two strings; one is neither");
  }

  // Adds a value to the innermost list or object that is open.
  json* put(json value) {
    check<CorpusError>(++kept_ <= kMaxKept,
                       "tokenizer: besides vocabulary and merges, the JSON text may have {} values; it has more",
                       kMaxKept);
    if (open_.empty()) return &(root_ = std::move(value));
    json& parent = *open_.back();
    if (parent.is_array()) return &parent.emplace_back(std::move(value));
    return &(parent[keys_[depth()]] = std::move(value));
  }

  static constexpr std::size_t kMaxDepth = 16;  // lists and objects in each other, far beyond real files
  static constexpr int kMaxKept = 100'000;      // values of about a hundred bytes each: 10 MB, whatever a file contains
  VocabularyText& vocabulary_;
  std::size_t vocab_depth_;
  int kept_ = 0;
  json root_;
  std::vector<json*> open_;                       // the lists and objects that have not ended, the outermost first
  std::array<std::string, kMaxDepth + 1> keys_;   // the name of the current member of each
  std::optional<std::vector<std::string>> pair_;  // a merge that is a list, as far as it is read
};

std::string type_of(const json& object) {
  const json& type = member(object, "type");
  return type.is_string() ? type.get<std::string>() : "";
}
bool is_empty(const json& value) {
  return value.is_null() || value == json("") || value == json(0.0) || value == json(0);
}

void read_model(const json& model, VocabularyText& vocabulary) {
  check<CorpusError>(model.is_object() && vocabulary.names.size() > 0,
                     "tokenizer: a tokenizer.json must have a model with a vocabulary");
  if (!member(model, "merges").is_array())
    refuse("merges", member(model, "merges"), "a list, without which most tokens would never be used");
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
  const json& added = member(root, "added_tokens");
  if (!added.is_null() && !added.is_array()) refuse("added_tokens", added, "a list");
  for (const json& token : added) add_token(token, member(token, "id"), vocabulary);
}

}  // namespace maki
