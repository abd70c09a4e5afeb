// Added tokens in texts, beside the ids of Hugging Face's tokenizers (tests/fixtures/make_added_tokens.py).
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/normalized_tokenizer.h"
#include "data/tokenizer/special_text.h"
#include "data/tokenizer/tokenizer_files.h"
#include "tests/data/require_refused.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;
using nlohmann::json;

namespace {

using Ids = std::vector<std::int32_t>;

const json& fixture() {
  static const json read = json::parse(read_bytes(std::string(MAKI_SOURCE_DIR) + "/tests/fixtures/added_tokens.json"));
  return read;
}

// A vocabulary of bytes with these added tokens.
std::unique_ptr<Tokenizer> with_added(const json& added, const json& normalizer = nullptr) {
  json document = fixture().at("tokenizer");
  document["added_tokens"] = added;
  document["normalizer"] = normalizer;
  return read_tokenizer_json(document.dump());
}

json added_token(const char* content, bool special, const std::vector<const char*>& flags = {}) {
  json token = {{"id", 256}, {"content", content}, {"special", special}};
  for (const char* const flag : flags) token[flag] = true;
  return token;
}

Ids encode_long(const Tokenizer& tokenizer, const std::string& text) {
  Tokens ids(tokenizer.vocab_size());
  tokenizer.encode(text, ids);
  return ids.ids();
}

}  // namespace

TEST_CASE("added tokens of every kind have the ids of Hugging Face's tokenizers") {
  for (const json& group : fixture().at("groups")) {
    const auto tokenizer = with_added(group.at("added_tokens"), group.at("normalizer"));
    for (const json& each : group.at("texts")) {
      const auto text = each.at("text").get<std::string>();
      INFO(group.at("added_tokens").dump() << group.at("normalizer").dump() << each.at("text").dump());
      REQUIRE(tokenizer->encode(text) == each.at("ids").get<Ids>());
      REQUIRE(tokenizer->encode_with_specials(text) == each.at("special_ids").get<Ids>());
      REQUIRE(encode_long(*tokenizer, text) == each.at("ids").get<Ids>());
      REQUIRE(finding_specials(*tokenizer)->encode(text) == each.at("special_ids").get<Ids>());
    }
  }
}

TEST_CASE("a long text is cut where no added token stands") {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += i % 7 == 0 ? "w <a b> " : i % 5 == 0 ? "<x>  end\n" : "word 猫 ";
  for (const json& added : std::vector<json>{added_token("<a b>", false), added_token("<x>", false, {"rstrip"}),
                                             added_token("<x>", false, {"lstrip", "normalized"})}) {
    for (const json& normalizer : std::vector<json>{nullptr, {{"type", "NFC"}}}) {
      const auto tokenizer = with_added(json::array({added}), normalizer);
      INFO(added.dump());
      REQUIRE(std::ranges::count(tokenizer->encode(text), 256) > 400);
      REQUIRE(encode_long(*tokenizer, text) == tokenizer->encode(text));
    }
  }
  const auto cut = [](const json& added) { return with_added(json::array({added}))->next_cut("one two", 1); };
  REQUIRE(cut(added_token("<x>", false)) == 3);
  REQUIRE(cut(added_token("<x>", false, {"lstrip"})) == 3);
  REQUIRE(cut(added_token("<a b>", true)) == 3);
  REQUIRE(cut(added_token("<a b>", false)) == 7);  // nowhere, since the token may stand there
  REQUIRE(cut(added_token("<a\u3000b>", false)) == 7);
  REQUIRE(cut(added_token("<x>", false, {"rstrip"})) == 7);
  // A cut can only be where white space begins.
  for (const char* const spaces : {"  ", " two", "\n\n", "\u3000"}) REQUIRE(cut(added_token(spaces, false)) == 3);
  REQUIRE(cut(added_token(" two", false, {"lstrip", "normalized"})) == 3);
  REQUIRE(cut(added_token("  x ", false)) == 7);
  REQUIRE(cut(added_token(" two", false, {"single_word"})) == 7);     // depends on the character before
  REQUIRE(cut(added_token("<\u00a8>", false, {"normalized"})) == 7);  // NFKC makes a space of it, and a mark
}

TEST_CASE("wherever a text is cut, its added tokens are those of the whole text") {
  const auto two = [](json first, const json& second) {
    first["id"] = 257;
    return json::array({second, first});
  };
  const std::vector<json> vocabularies = {
      json::array({added_token("  ", false)}),
      json::array({added_token(" ab", false)}),
      json::array({added_token(" ab", false, {"single_word"})}),
      json::array({added_token("  ", false, {"lstrip", "normalized"})}),
      json::array({added_token("ab\u00a8", false, {"normalized"})}),
      two(added_token("\u3000<", false), added_token("ab", false, {"lstrip", "single_word"})),
      two(added_token("ab", false), added_token("< ab", true)),  // which hides the other
  };
  std::vector<std::string> texts = {""};
  for (std::size_t i = 0; texts.size() < 700; ++i) {
    for (const char* const more : {" ", "ab", "<", "\u3000", "\u0308"}) texts.push_back(texts[i] + more);
  }
  std::int64_t cuts = 0;
  for (const json& added : vocabularies) {
    for (const json& normalizer : std::vector<json>{nullptr, {{"type", "NFC"}}, {{"type", "NFKC"}}}) {
      const auto tokenizer = with_added(added, normalizer);
      for (const std::string& text : texts) {
        const Ids whole = tokenizer->encode(text);
        for (std::size_t at = 1; at < text.size(); ++at) {
          const std::size_t cut = tokenizer->next_cut(text, at);
          Ids both = tokenizer->encode(text.substr(0, cut));
          const Ids rest = tokenizer->encode(text.substr(cut));
          both.insert(both.end(), rest.begin(), rest.end());
          INFO(added.dump() << normalizer.dump() << text << cut);
          REQUIRE(both == whole);
          cuts += cut < text.size();
        }
      }
    }
  }
  REQUIRE(cuts > 1000);
}

TEST_CASE("a token that is a single word has no word character beside it") {
  const auto tokenizer = with_added(json::array({added_token("ab", false, {"single_word"})}));
  const auto found = [&](const std::string& text) { return std::ranges::count(tokenizer->encode(text), 256) == 1; };
  // Of each kind: capital, small, title case, modifier, other letter; the three kinds of marks; digits, also Roman and
  // wide ones; connectors; joiners.
  for (const std::string c :
       {"A", "ß", "ǅ", "ʰ", "猫", "\u0301", "\u0903", "\u20dd", "7", "Ⅳ", "７", "_", "‿", "\u200c", "\u200d"}) {
    INFO(c);
    REQUIRE_FALSE(found(c + "ab"));
    REQUIRE_FALSE(found("ab" + c));
  }
  for (const std::string c : {" ", "-", "½", "²", "。", "€", "\u200b", "\u00ad", "\u3000"}) {
    INFO(c);
    REQUIRE(found(c + "ab" + c));
  }
}

TEST_CASE("special tokens that a normal form changes are found") {
  for (const auto& [type, content] : {std::pair{"NFKC", "<｜end｜>"}, {"NFC", "<\u212b>"}, {"NFC", "<cafe\u0301>"}}) {
    const auto tokenizer = with_added(json::array({added_token(content, true)}), {{"type", type}});
    INFO(type << " " << content);
    REQUIRE(tokenizer->encode_with_specials(std::string("a") + content).back() == 256);
    REQUIRE(std::ranges::count(tokenizer->encode(content), 256) == 0);
  }
}

TEST_CASE("of many added tokens that begin at one place, the longest is found, and of one normal form the first") {
  json many = json::array();
  for (int i = 0; i < 1200; ++i)
    many.push_back({{"id", 256 + i}, {"content", fmt::format("<{}", i)}, {"special", true}});
  const auto tokenizer = with_added(many);
  for (int i = 0; i < 1200; ++i) {
    const Ids ids = tokenizer->encode_with_specials(fmt::format("<{}x", i));
    REQUIRE((ids.size() == 2 && ids[0] == 256 + i));
  }
  for (const auto& [first, second] : {std::pair{"<a>", "<ａ>"}, {"<ａ>", "<a>"}}) {
    json other = added_token(second, true, {"normalized"});
    other["id"] = 257;
    const auto normal = with_added(json::array({added_token(first, true, {"normalized"}), other}), {{"type", "NFKC"}});
    REQUIRE(normal->encode_with_specials("<a><ａ>") == Ids{256, 256});
  }
}

TEST_CASE("flags of added tokens are saved") {
  const auto usual = with_added(json::array({added_token("<x>", true)}));
  REQUIRE(usual->save().starts_with("maki bpe tokenizer 1\n"));
  REQUIRE(usual->save().ends_with("\n256 s\n"));
  const auto other = with_added(json::array({added_token("<x>", false, {"lstrip", "normalized"})}));
  REQUIRE(other->save().ends_with("\n256 oaln\n"));
  for (const Tokenizer* const each : {usual.get(), other.get()}) {
    const auto loaded = load_tokenizer(each->save());
    REQUIRE(loaded->save() == each->save());
    REQUIRE(loaded->encode("a <x>") == each->encode("a <x>"));
    const json written = json::parse(tokenizer_json(*loaded)).at("added_tokens");
    const json again = json::parse(tokenizer_json(*read_tokenizer_json(tokenizer_json(*loaded)))).at("added_tokens");
    REQUIRE(written == again);
    REQUIRE(written[0].at("special") == (each == usual.get()));
  }
  std::string damaged = other->save();
  damaged.replace(damaged.size() - 3, 2, "nl");
  require_refused([&] { load_tokenizer(damaged); }, {"damaged"});
}

TEST_CASE("a tokenizer finds special tokens in every text if it is asked to, and says which it does not read") {
  const auto tokenizer =
      make_tokenizer("bpe", "the cat the cat", {.vocab_size = 270, .normalization = Normalization::nfc});
  const auto finding = finding_specials(*tokenizer);
  const std::int32_t end = tokenizer->end_of_text().value();
  REQUIRE(finding->encode("the cat<|endoftext|>").back() == end);
  REQUIRE(load_tokenizer(finding->save())->encode("<|endoftext|>") == Ids{end});
  REQUIRE_FALSE(finding->encodes_like(*tokenizer));
  const auto unread = [](const Tokenizer& one, std::string_view text) {
    UnreadSpecials found(one);
    found.add(text);
    return found;
  };
  UnreadSpecials twice = unread(*tokenizer, "a<|endoftext|>b");
  REQUIRE(twice.note(/*is_new=*/false).ends_with("; `special` reads them as the special tokens"));
  for (const char* const separator : {"", "==="}) {
    REQUIRE_THAT(twice.note(/*is_new=*/true, separator),
                 ContainsSubstring("divide documents that end with it with `document_separator`"));
  }
  REQUIRE_THAT(twice.note(/*is_new=*/true, "<|endoftext|>"),
               ContainsSubstring("`document_separator` divides documents only where it stands alone on its line"));
  twice.add("<|endoftext|>");
  REQUIRE(twice.list() == "<|endoftext|> (2 times)");
  REQUIRE(unread(*tokenizer, "a <|endof").note(/*is_new=*/true).empty());
  json many = json::array();
  std::string all;
  for (int i = 0; i < 10; ++i) {
    many.push_back({{"id", 256 + i}, {"content", fmt::format("<{}>", i)}, {"special", true}});
    all += fmt::format("<{}>", i);
  }
  REQUIRE(unread(*with_added(many), all + "<0>").list().starts_with("<0> (2 times), <1> (1 time), "));
  REQUIRE(unread(*with_added(many), all).list().ends_with(", <7> (1 time), 2 more"));
  REQUIRE(unread(*finding, "a<|endoftext|>").list().empty());
  require_refused([] { finding_specials(*make_tokenizer("char", "ab")); }, {"special", "char"});
}

TEST_CASE("ids mean the same whether special tokens are found or not, and however they are used") {
  const std::string text = "the cat the cat";
  const TokenizerOptions nfc{.vocab_size = 262, .normalization = Normalization::nfc};
  const auto tokenizer = make_tokenizer("bpe", text, nfc), used = load_tokenizer(tokenizer->save());
  used->set_use({.ends = {0}});
  const auto finding = finding_specials(*used);
  const std::vector<const Tokenizer*> same = {tokenizer.get(), used.get(), finding.get()};
  for (const Tokenizer* const one : same) {
    for (const Tokenizer* const other : same) REQUIRE(same_ids(*one, *other));
  }
  const auto none = with_added(json::array());
  for (const auto& other : {make_tokenizer("bpe", text, {.vocab_size = 262}),
                            make_tokenizer("bpe", "a dog, a dog", nfc), make_tokenizer("char", text)}) {
    REQUIRE_FALSE(same_ids(*finding, *other));
    REQUIRE_FALSE(same_ids(*other, *finding));
    REQUIRE_FALSE(same_ids(*other, *none));
  }
}
