// Token files: what was prepared is read back, and damaged files are named errors that take little memory.
#include "data/dataset/token_file.h"

#include <cmath>
#include <limits>
#include <rapidcheck.h>

#include "data/dataset/dataset.h"
#include "data/io/error.h"
#include "data/io/utf8.h"
#include "tests/catch.h"
#include "tests/data/allocations.h"
#include "tests/train/prepared.h"
#include "train/run/token_file_writer.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Offsets in the header; docs/formats.md has the same table.
enum Offset : std::size_t {
  kVersion = 8,
  kWidth = 12,
  kTokenizerBytes = 16,
  kVocabSize = 24,
  kTrainTokens = 32,
  kValTokens = 40,
  kTrainJoins = 48,
  kValJoins = 56,
  kDocuments = 64,
  kBytes = 72,
  kValBytes = 80,
  kCharacters = 88,
  kValCharacters = 96,
  kValFraction = 104,
  kBestLoss = 112,
  kTokenizerHash = 120,
  kDataHash = 152,
  kVocabLimit = 168,
  kReserved = 176,
};

// Two files of 30 and 20 characters, of which 3 and 2 are for validation.
std::string good_file(const TemporaryFolder& folder) {
  const std::string first = folder.write("1.txt", "abcabcabcabcabcabcabcabcabcabc"),
                    second = folder.write("2.txt", "cbacbacbacbacbacbacb");
  prepare({first, second}, folder / "good.tokens");
  return read_bytes(folder / "good.tokens");
}

struct Damage {
  const char* words;  // of the message
  std::function<void(std::string&)> damage;
};

template <class Number>
Damage forged(const char* words, std::size_t offset, Number number) {
  return {words, [=](std::string& file) { forge(file, offset, number); }};
}

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

std::vector<Damage> damages() {
  const auto byte = [](const char* words, std::size_t at) {
    return Damage{words, [at](std::string& file) { file[at] ^= 1; }};
  };
  const auto size = [](const char* words, std::size_t bytes) {
    return Damage{words, [bytes](std::string& file) { file.resize(bytes); }};
  };
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  std::vector<Damage> list = {
      size("is too short for a token file", 8),
      size("is too short for a token file", 255),
      size("ends too early", 256),
      size("ends too early", 300),
      Damage{"ends too early", [](std::string& file) { file.pop_back(); }},
      Damage{"1 follow", [](std::string& file) { file += '\0'; }},
      Damage{"8 follow", [](std::string& file) { file.append(8, '\0'); }},
      Damage{"is not a token file", [](std::string& file) { file[0] = 'x'; }},
      byte("is not a token file", 7),
      byte("checksum mismatch of its header", kTrainTokens),
      byte("checksum mismatch of its header", kReserved + 3),
      byte("checksum mismatch of its header", 255),
      byte("checksum mismatch of its tokenizer", 256),
      forged("is a token file of version 0", kVersion, std::uint32_t{0}),
      forged("is a token file of version 2", kVersion, std::uint32_t{2}),
      forged("wrong width", kWidth, std::uint32_t{0}),
      forged("wrong width", kWidth, std::uint32_t{2}),
      forged("wrong width", kWidth, std::uint32_t{3}),
      forged("wrong width", kWidth, std::uint32_t{0x80000001}),
      forged("vocabulary is impossible", kVocabSize, std::uint64_t{0}),
      forged("vocabulary is impossible", kVocabSize, std::uint64_t{1} << 31),
      forged("vocabulary is impossible", kVocabSize, kHuge),
      forged("its tokenizer has 3 tokens, but its header says 4", kVocabSize, std::uint64_t{4}),
      forged("wrong width", kVocabSize, std::uint64_t{300}),
      forged("vocabulary was to have is impossible", kVocabLimit, std::uint64_t{1}),
      forged("vocabulary was to have is impossible", kVocabLimit, kHuge),
      forged("checksum mismatch of its tokenizer", kTokenizerHash, std::uint64_t{1}),
      forged("ends too early", kTokenizerBytes, kHuge),
      forged("ends too early", kTokenizerBytes, kHuge - 255),
      forged("ends too early", kTokenizerBytes, std::uint64_t{1} << 20),
      forged("must be zeros", kTokenizerBytes, std::uint64_t{10}),
      forged("checksum mismatch of its tokenizer", kTokenizerBytes, std::uint64_t{26}),
      forged("counts is impossible", kTrainTokens, kHuge),
      forged("counts is impossible", kValTokens, std::uint64_t{1} << 60),
      forged("ends too early", kTrainTokens, std::uint64_t{1} << 40),
      forged("must be zeros", kTrainTokens, std::uint64_t{30}),
      forged("ends too early", kValTokens, std::uint64_t{1000}),
      forged("must be zeros", kValTokens, std::uint64_t{4}),
      forged("ends too early", kTrainJoins, kHuge),
      forged("ends too early", kTrainJoins, std::uint64_t{1} << 61),
      forged("ends too early", kTrainJoins, std::uint64_t{2}),
      forged("8 follow", kTrainJoins, std::uint64_t{0}),
      forged("ends too early", kValJoins, kHuge),
      forged("8 follow", kValJoins, std::uint64_t{0}),
      forged("counts is impossible", kDocuments, kHuge),
      forged("counts is impossible", kBytes, kHuge),
      forged("contradict each other", kValBytes, std::uint64_t{51}),
      forged("contradict each other", kCharacters, std::uint64_t{51}),
      forged("contradict each other", kCharacters, std::uint64_t{4}),
      forged("contradict each other", kValCharacters, std::uint64_t{6}),
      forged("not in [0, 1)", kValFraction, 1.0),
      forged("not in [0, 1)", kValFraction, -0.1),
      forged("not in [0, 1)", kValFraction, nan),
      forged("loss is impossible", kBestLoss, nan),
      forged("loss is impossible", kBestLoss, infinity),
      forged("loss is impossible", kBestLoss, -1.0),
      forged("reserved bytes", kReserved, std::uint64_t{1}),
      forged("reserved bytes", kReserved + 56, std::uint64_t{1}),
  };
  // The joins, of which there is one for each part, are the last 16 bytes.
  for (const std::int64_t join : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{45}, std::int64_t{1} << 62}) {
    list.push_back({"must be ascending and below 45",
                    [join](std::string& file) { std::memcpy(file.data() + file.size() - 16, &join, sizeof(join)); }});
  }
  list.push_back({"must be ascending and below 5", [](std::string& file) { file[file.size() - 8] = 5; }});
  return list;
}

}  // namespace

TEST_CASE("every damage of a token file that opening can notice is refused with a sentence that names the file") {
  const TemporaryFolder folder;
  const std::string good = good_file(folder), path = folder / "bad.tokens";
  write_bytes(path, good);
  REQUIRE(open_token_file(path)->train.size() == 45);
  const std::vector<Damage> list = damages();
  REQUIRE(list.size() >= 55);
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::string file = good;
    list[i].damage(file);
    write_bytes(path, file);
    start_peak();
    const std::string said = error_message<CorpusError>([&] { open_token_file(path); });
    INFO(i << ": " << list[i].words << "; said: " << said);
    REQUIRE_THAT(said, Catch::Matchers::StartsWith(path) && ContainsSubstring(list[i].words));
    REQUIRE(said.find('\n') == std::string::npos);
    REQUIRE(peak_bytes() < static_cast<std::int64_t>(8 * file.size() + (16 << 20)));
  }
}

TEST_CASE("a changed byte anywhere in a token file is found by verifying it, and never crashes") {
  const TemporaryFolder folder;
  const std::string good = good_file(folder), path = folder / "bad.tokens";
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char change : {'\x01', '\x40'}) {
      std::string file = good;
      file[at] = static_cast<char>(file[at] ^ change);
      write_bytes(path, file);
      INFO("byte " << at);
      REQUIRE_FALSE(error_message<CorpusError>([&] { verify_token_file(*open_token_file(path)); }).empty());
    }
  }
  write_bytes(path, good);
  verify_token_file(*open_token_file(path));
}

TEST_CASE("verifying an id that the vocabulary lacks names the file") {
  const TemporaryFolder folder;
  std::string file = good_file(folder);
  file[320 + 7] = 3;  // see below
  const auto hash = hash128(std::string_view(file).substr(256));
  std::copy(hash.begin(), hash.end(), file.begin() + kDataHash);
  forge(file, kVersion, 1);  // gives the header its hash
  const std::string path = folder.write("bad.tokens", file);
  REQUIRE_THAT(error_message<CorpusError>([&] { verify_token_file(*open_token_file(path)); }),
               Catch::Matchers::StartsWith(path) && ContainsSubstring("got 3"));
}

TEST_CASE("an id that the vocabulary lacks is refused when a batch reads it") {
  const TemporaryFolder folder;
  std::string file = good_file(folder);
  const std::string path = folder / "bad.tokens";
  file[320 + 7] = 3;  // the ids follow the header and the tokenizer, which has one line and three letters
  write_bytes(path, file);
  const auto opened = open_token_file(path);
  std::vector<std::int32_t> ids(7);
  opened->train.copy(0, ids);
  REQUIRE(ids == std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0});
  REQUIRE_THAT(error_message<CorpusError>([&] { opened->train.copy(1, ids); }),
               ContainsSubstring("must be below the 3 of its vocabulary; got 3"));
  REQUIRE_THAT(error_message<CorpusError>([&] { (void)opened->train[7]; }), ContainsSubstring("got 3"));
  const Tokens shared(opened->train, opened);
  REQUIRE_THROWS_AS(shared.ids(), CorpusError);
}

TEST_CASE("what is not a token file, or not even a file, is no token file") {
  const TemporaryFolder folder;
  REQUIRE_FALSE(is_token_file(folder.write("text", "text")));
  REQUIRE_FALSE(is_token_file(folder.write("empty", "")));
  REQUIRE_FALSE(is_token_file(folder.path()));
  REQUIRE_FALSE(is_token_file(folder / "missing"));
  REQUIRE_THAT(error_message<CorpusError>([&] { open_token_file(folder / "missing"); }),
               ContainsSubstring("cannot be opened"));
  REQUIRE_THAT(error_message<CorpusError>([&] { open_token_file(folder.path()); }),
               ContainsSubstring("is not a regular file"));
}

TEST_CASE("ids of every width and pieces of any length are read back as they were written") {
  REQUIRE(rc::check("tokens and joins", [] {
    const TemporaryFolder folder;
    const std::int64_t vocab = *rc::gen::element<std::int64_t>(3, 256, 257, 65536, 65537);
    std::string characters;
    for (char32_t c = 0; static_cast<std::int64_t>(c) < vocab; ++c)
      append_utf8(characters, c < 0xD7FF ? c + 1 : c + 0x3000);
    const auto tokenizer = make_tokenizer("char", characters);
    RC_ASSERT(tokenizer->vocab_size() == vocab);
    TokenFileWriter writer(posix_file_system(), folder / "t", *tokenizer);
    Tokens parts[2] = {Tokens(vocab), Tokens(vocab)};
    for (Tokens& part : parts) {
      if (&part == &parts[1]) writer.begin_validation();
      const int blocks = *rc::gen::inRange(0, 5);
      for (int block = 0; block < blocks; ++block) {
        Tokens ids(vocab);
        const int pieces = *rc::gen::inRange(0, 4);
        for (int piece = 0; piece < pieces; ++piece) {
          const auto length = static_cast<std::size_t>(*rc::gen::inRange(0, 5));
          const auto id = rc::gen::inRange<std::int32_t>(0, static_cast<std::int32_t>(vocab));
          const auto more = *rc::gen::container<std::vector<std::int32_t>>(length, id);
          ids.append(more);
          part.append(more);
          const bool ends = *rc::gen::arbitrary<bool>();
          if (ends && !more.empty()) ids.begin_piece();
          if (ends && !more.empty()) part.begin_piece();
        }
        writer.append(ids);
      }
    }
    writer.commit({.corpus_hash = std::string(32, 'a'), .bytes = 9, .characters = 7});
    const auto file = open_token_file(folder / "t");
    verify_token_file(*file);
    RC_ASSERT(file->facts.vocab_size == vocab);
    for (int i = 0; i < 2; ++i) {
      const TokenSpan read = i == 0 ? file->train : file->val;
      RC_ASSERT(read.ids() == parts[i].ids());
      const auto joins = parts[i].view().joins();
      // A boundary after the last token is none.
      const bool trailing = !joins.empty() && joins.back() == static_cast<std::int64_t>(parts[i].size());
      const auto expected = joins.first(joins.size() - (trailing ? 1 : 0));
      RC_ASSERT(std::vector(read.joins().begin(), read.joins().end()) == std::vector(expected.begin(), expected.end()));
    }
  }));
}
