// Byte-level BPE: the ids of Hugging Face's tokenizers and tiktoken for 10,000 strings, a trainer and an encoder that
// are too simple to be wrong, nothing is lost, and a saved form is either read back exactly or rejected.
#include <map>
#include <random>
#include <rapidcheck.h>

#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/bpe_trainer.h"
#include "data/tokenizer/byte_characters.h"
#include "data/tokenizer/tokenizer_files.h"
#include "tests/data/bpe_fixture.h"
#include "tests/data/random_bytes.h"
#include "tests/data/require_refused.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Ids = std::vector<std::int32_t>;

// The tokens of the 256 bytes, with the ids that a new vocabulary gives them.
std::array<std::int32_t, 256> byte_ids() {
  std::array<std::int32_t, 256> ids{};
  std::int32_t next = 0;
  for (const std::uint8_t byte : bytes_by_character()) ids[byte] = next++;
  return ids;
}

// Merges the pair of the lowest rank, the leftmost first, until there is none.
Ids encode_slowly(const std::vector<BpeMerge>& merges, std::string_view piece) {
  Ids ids;
  for (const char byte : piece) ids.push_back(byte_ids()[static_cast<unsigned char>(byte)]);
  for (std::size_t rank = 0; rank < merges.size();) {
    std::size_t at = 0;
    while (at + 1 < ids.size() && (ids[at] != merges[rank].left || ids[at + 1] != merges[rank].right)) ++at;
    if (at + 1 >= ids.size()) {
      ++rank;
      continue;
    }
    ids[at] = merges[rank].merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    rank = 0;
  }
  return ids;
}

// Counts all pairs anew before each merge.
std::vector<BpeMerge> learn_slowly(const PieceCounts& pieces, std::int64_t max_tokens) {
  std::vector<std::pair<Ids, std::int64_t>> words;
  for (const auto& [piece, count] : pieces) words.emplace_back(encode_slowly({}, piece), count);
  std::vector<BpeMerge> merges;
  for (std::int32_t next = 256; next < max_tokens; ++next) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> counts;
    for (const auto& [ids, count] : words) {
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) counts[{ids[i], ids[i + 1]}] += count;
    }
    std::pair<std::int32_t, std::int32_t> best;
    std::int64_t most = 1;
    for (const auto& [pair, count] : counts) {
      if (count > most) best = pair, most = count;
    }
    if (most < 2) break;
    merges.push_back({best.first, best.second, next});
    for (auto& [ids, count] : words) {
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        if (ids[i] != best.first || ids[i + 1] != best.second) continue;
        ids[i] = next;
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
  return merges;
}

std::string letters(const std::vector<std::uint8_t>& picks, std::uint8_t different) {
  std::string text;
  for (const std::uint8_t pick : picks) text += static_cast<char>('a' + pick % different);
  return text;
}

bool round_trip(const Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.decode(tokenizer.encode(text)) == text;
}

}  // namespace

TEST_CASE("10,000 strings have the ids of Hugging Face's tokenizers and tiktoken, by each pre-tokenizer") {
  const BpeFixture fixture;
  const auto read = read_tokenizer(fixture.tokenizer_path());
  BpeParts parts = *read->bpe_parts();
  REQUIRE(fixture.rules() == std::vector<std::string>{"cl100k", "gpt2", "o200k", "qwen2"});
  for (const std::string& rule : fixture.rules()) {
    parts.rule = rule;
    const BpeTokenizer tokenizer(parts);
    for (std::size_t block = 0; block < fixture.strings().size() / 100; ++block) {
      std::uint64_t hash = 0xCBF29CE484222325u;
      for (std::size_t i = 100 * block; i < 100 * (block + 1); ++i) {
        add_to_hash(hash, tokenizer.encode(fixture.strings()[i]));
        add_to_hash(hash, {-1});
        if (!round_trip(tokenizer, fixture.strings()[i])) FAIL("string " << i << " is not restored");
      }
      INFO(rule << ", strings from " << 100 * block << " on");
      REQUIRE(fmt::format("{:016x}", hash) == fixture.hash(rule, block));
    }
  }
}

TEST_CASE("the merges are those that Hugging Face's trainer learns, on any number of threads") {
  const BpeFixture fixture;
  const auto expected = read_tokenizer(fixture.tokenizer_path());
  for (const int count : {1, 3}) {
    const ThreadsScope scope(count);
    REQUIRE(BpeTokenizer(learn_bpe(fixture.training_text(), fixture.vocabulary() + 1)).hash() == expected->hash());
  }
}

TEST_CASE("merges are learned as by counting all pairs anew") {
  REQUIRE(rc::check([](const std::vector<std::vector<std::uint8_t>>& words, std::uint8_t different) {
    std::vector<std::string> texts;
    for (const auto& word : words) texts.push_back(letters(word, static_cast<std::uint8_t>(1 + different % 4)));
    PieceCounts pieces;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (!texts[i].empty()) pieces.emplace_back(texts[i], 1 + static_cast<std::int64_t>(i % 3));
    }
    RC_ASSERT(train_bpe(pieces, 256 + 40) == learn_slowly(pieces, 256 + 40));
  }));
}

TEST_CASE("no token is learned across two texts") {
  std::vector<std::string_view> texts;
  for (int i = 0; i < 9; ++i) texts.insert(texts.end(), {"ab", "cd"});
  const BpeTokenizer tokenizer(learn_bpe({texts, {}}, 300));
  REQUIRE(tokenizer.vocab_size() == 256 + 2 + 1);
  REQUIRE(tokenizer.encode("abcd").size() == 2);
}

TEST_CASE("counts beyond 32 bits decide which pair is merged first") {
  const PieceCounts pieces = {{"ab", std::int64_t{1} << 33}, {"cd", (std::int64_t{1} << 33) + 1}, {"ef", 5}};
  const std::vector<BpeMerge> merges = train_bpe(pieces, 256 + 3);
  REQUIRE(merges.size() == 3);
  REQUIRE(merges[0].left == byte_ids()['c']);
  REQUIRE(merges[1].left == byte_ids()['a']);
}

TEST_CASE("pieces of any length are encoded as by trying all merges in order") {
  REQUIRE(rc::check([](const std::vector<std::uint8_t>& text, std::vector<std::uint8_t> piece, std::uint8_t different) {
    const auto letters_used = static_cast<std::uint8_t>(1 + different % 4);
    const std::string learned = letters(text, letters_used);
    const std::vector<BpeMerge> merges = train_bpe({{learned, 2}}, 256 + 50);
    BpeEncoder encoder(byte_ids());
    for (const BpeMerge& merge : merges) RC_ASSERT(encoder.add(merge));
    if (!merges.empty()) RC_ASSERT(!encoder.add(merges[0]));
    // Lengths below, at and above the one from which on the other algorithm is used.
    for (const std::size_t size : {piece.size(), std::size_t{64}, std::size_t{65}, std::size_t{150}}) {
      piece.resize(size, different);
      const std::string bytes = letters(piece, letters_used);
      Ids ids = {7};
      encoder.encode(bytes, ids);
      ids.erase(ids.begin());
      RC_ASSERT(ids == encode_slowly(merges, bytes));
    }
  }));
}

TEST_CASE("every text is restored, also if it is not UTF-8") {
  const BpeFixture fixture;
  const auto tokenizer = read_tokenizer(fixture.tokenizer_path());
  for (int first = 0; first < 256; ++first) {
    std::string text(1, static_cast<char>(first));
    if (!round_trip(*tokenizer, text)) FAIL("byte " << first);
    text += ' ';
    for (int second = 0; second < 256; ++second) {
      text[1] = static_cast<char>(second);
      if (!round_trip(*tokenizer, text)) FAIL("bytes " << first << " and " << second);
    }
  }
  REQUIRE(rc::check([&](const std::vector<std::uint8_t>& bytes) {
    RC_ASSERT(round_trip(*tokenizer, std::string(bytes.begin(), bytes.end())));
  }));
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    std::string text = random_bytes(random, 64);
    if (i % 2 == 0) std::ranges::for_each(text, [](char& c) { c = static_cast<char>(c & 0x7F); });  // with more merges
    if (!round_trip(*tokenizer, text)) FAIL("random string " << i);
  }
}

TEST_CASE("a long text has the same ids in parts as in one piece") {
  const BpeFixture fixture;
  const auto tokenizer = read_tokenizer(fixture.tokenizer_path());
  std::string text;
  while (text.size() < 3'000'000) text += fixture.training_text() + "\xFF";
  const Ids whole = tokenizer->encode(text);
  for (const int count : {1, 2, 5}) {
    const ThreadsScope scope(count);
    Tokens ids(tokenizer->vocab_size());
    ids.append(Ids{1});
    tokenizer->encode(text, ids);
    REQUIRE(ids.size() == whole.size() + 1);
    REQUIRE(ids.view().ids(1) == whole);
  }
}

TEST_CASE("a piece of a megabyte is learned and encoded in time and memory in proportion to it") {
  const std::string one_letter(1 << 20, 'a');
  const BpeTokenizer tokenizer(learn_bpe(one_letter, 300));
  REQUIRE(tokenizer.vocab_size() ==
          256 + 20 - 1 + 1);  // 2, 4, … 2^19 letters, which occur twice, and the end of a text
  REQUIRE(tokenizer.encode(one_letter) == Ids{274, 274});
  std::string japanese;
  for (std::uint32_t i = 0; japanese.size() < 1 << 20; ++i) append_utf8(japanese, char32_t{0x3041 + i * i % 80});
  const BpeTokenizer other(learn_bpe(japanese, 2000));
  REQUIRE(round_trip(other, japanese));
}

TEST_CASE("special tokens are found in a text only on request") {
  const BpeTokenizer tokenizer(learn_bpe("the cat the cat", 300));
  REQUIRE(tokenizer.end_of_text() == tokenizer.vocab_size() - 1);
  REQUIRE(tokenizer.bytes(*tokenizer.end_of_text()) == kEndOfText);
  const std::string text = "the<|endoftext|> cat<|endoftext";
  const Ids plain = tokenizer.encode(text), special = tokenizer.encode_with_specials(text);
  REQUIRE(std::ranges::count(plain, *tokenizer.end_of_text()) == 0);
  REQUIRE(std::ranges::count(special, *tokenizer.end_of_text()) == 1);
  REQUIRE(tokenizer.decode(plain) == text);
  REQUIRE(tokenizer.decode(special) == text);
  Ids parts = tokenizer.encode("the");
  parts.push_back(*tokenizer.end_of_text());
  for (const std::int32_t id : tokenizer.encode(" cat<|endoftext")) parts.push_back(id);
  REQUIRE(special == parts);
}

TEST_CASE("of special tokens that begin alike, the longest is found") {
  BpeParts parts = learn_bpe("", 257);
  parts.tokens.add("<|endoftext|>!");
  parts.added.push_back({.id = 257});
  REQUIRE(BpeTokenizer(parts).encode_with_specials("<|endoftext|>!<|endoftext|>") == Ids{257, 256});
}

TEST_CASE("whole pieces are tokens before merges where a vocabulary asks for it") {
  BpeParts parts = learn_bpe("", 257);
  parts.tokens.add("ab");
  parts.tokens.add("bc");
  parts.tokens.add("abc");
  parts.merges = {{byte_ids()['b'], byte_ids()['c'], 258}};
  REQUIRE(BpeTokenizer(parts).encode("abc") == Ids{byte_ids()['a'], 258});
  parts.whole_pieces = true;
  REQUIRE(BpeTokenizer(parts).encode("abc ab") == Ids{259, byte_ids()[' '], byte_ids()['a'], byte_ids()['b']});
  REQUIRE(BpeTokenizer(parts).hash() != BpeTokenizer(learn_bpe("", 257)).hash());
}

TEST_CASE("the size of a learned vocabulary is limited by the text and by the option") {
  REQUIRE(make_tokenizer("bpe", "ab ab ab ab", {.vocab_size = 258})->vocab_size() == 258);
  REQUIRE(make_tokenizer("bpe", "abc", {.vocab_size = 1000})->vocab_size() == 257);
  require_refused([] { make_tokenizer("bpe", "ab", {.vocab_size = 256}); }, {"vocab_size", "257", "256"});
  require_refused([] { make_tokenizer("bpe", "ab", {.vocab_size = (1 << 24) + 1}); }, {"vocab_size", "16777216"});
}

TEST_CASE("a saved BPE tokenizer is read back exactly, and damaged ones are refused") {
  const BpeTokenizer tokenizer(learn_bpe("the cat\nthe cat", 262));
  const std::string saved = tokenizer.save();
  const auto loaded = load_tokenizer(saved);
  REQUIRE(loaded->kind() == "bpe");
  REQUIRE(loaded->save() == saved);
  REQUIRE(loaded->encode("the cat sat\xFF") == tokenizer.encode("the cat sat\xFF"));
  REQUIRE(loaded->end_of_text() == tokenizer.end_of_text());
  for (std::size_t size = 0; size < saved.size(); ++size)
    require_refused([&] { load_tokenizer(std::string_view(saved).substr(0, size)); }, {"tokenizer"});
  const auto with = [&](const std::string& part, const std::string& other) {
    std::string changed = saved;
    return changed.replace(changed.find(part), part.size(), other);
  };
  REQUIRE(with("gpt2 0 ", "gpt2 0 ") == saved);
  for (const std::string& changed : {with("gpt2 0 ", "gpt2 00 "), with("gpt2 0 ", "gpt2 2 "), with(" 262 ", " 0262 "),
                                     with(" 262 ", " 4294967558 "), with("\n261 s\n", "\n0261 s\n"), saved + "\n"})
    require_refused([&] { load_tokenizer(changed); }, {"tokenizer"});
  REQUIRE(rc::check([&](std::uint16_t at, std::uint8_t byte) {
    std::string changed = saved;
    changed[at % saved.size()] = static_cast<char>(byte);
    try {
      RC_ASSERT(load_tokenizer(changed)->save() == changed);
    } catch (const CorpusError&) {
    }
  }));
}

TEST_CASE("parts that are no byte-level BPE are refused") {
  const auto refused = [](const auto& change, const std::vector<std::string>& words) {
    BpeParts parts = learn_bpe("the cat the cat", 260);
    change(parts);
    require_refused([&] { BpeTokenizer tokenizer(parts); }, words);
  };
  refused([](BpeParts& p) { p.tokens = {}; }, {"0x00"});
  refused([](BpeParts& p) { p.tokens.add(""); }, {"empty", "260"});
  refused([](BpeParts& p) { p.tokens.add("a"); }, {"distinct", "64", "260", "a"});
  refused([](BpeParts& p) { p.added = {{.id = 5}}; }, {"special", "5"});
  refused([](BpeParts& p) { p.added = {{.id = 260}}; }, {"[0, 260)", "260"});
  refused([](BpeParts& p) { p.added = {{.id = 259}, {.id = 259}}; }, {"ascending"});
  refused([](BpeParts& p) { p.added = {{.id = 257}, {.id = 259}}; }, {"merge", "added", "257"});
  refused([](BpeParts& p) { p.merges.push_back({0, 1, 258}); }, {"merge", "!\"", "makes"});
  refused([](BpeParts& p) { p.merges.push_back({-1, 1, 258}); }, {"-1"});
  refused([](BpeParts& p) { p.merges.push_back({0, 260, 258}); }, {"260"});
  refused([](BpeParts& p) { p.merges.push_back(p.merges[0]); }, {"repeats"});
  refused([](BpeParts& p) { p.rule = "gpt5"; }, {"gpt5"});
  refused([](BpeParts& p) { p.rule = std::string(3'000, 'r'); }, {"rrr… (3000 bytes)"});
}
