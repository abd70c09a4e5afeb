// Token files of nanoGPT and llm.c: the bytes of their formats, and what of them is refused.
#include "data/dataset/foreign_tokens.h"

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <tuple>

#include "data/io/error.h"
#include "data/io/utf8.h"
#include "data/tokenizer/tokenizer_files.h"
#include "tests/train/faulty_file_system.h"
#include "tests/train/prepared.h"
#include "train/run/convert/token_formats.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("token files of nanoGPT and llm.c have the bytes of their formats and are read back") {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", words(9000, 4));
  for (const std::int64_t vocab_size : {std::int64_t{300}, std::int64_t{70000}}) {
    const std::shared_ptr<const Tokenizer> tokenizer =
        vocab_size < 65536 ? make_tokenizer("bpe", words(9000, 4), {.vocab_size = vocab_size}) : [] {
          std::string all;
          for (char32_t c = 0x3400; c < 0x3400 + 70000; ++c) append_utf8(all, c < 0xD800 ? c : c + 0x10000);
          return make_tokenizer("char", all + words(9000, 4));
        }();
    const Dataset data = make_dataset(load_corpus({text}), 0.1, 4, "", tokenizer);
    for (const std::string format : {"nanogpt", "llm.c"}) {
      INFO(format << ", " << vocab_size);
      const std::string out = folder / (format + std::to_string(vocab_size));
      const PrepareOptions options{.sources = {}, .tokenizer = tokenizer, .out = {}, .format = format};
      if (format == "nanogpt" && vocab_size > 65536) {
        REQUIRE_THROWS_AS(prepare({text}, out, options), Error);
        continue;
      }
      REQUIRE(prepare({text}, out, options).files ==
              std::vector{out + "/train.bin", out + "/val.bin", out + "/maki-tokenizer"});
      REQUIRE(read_tokenizer(out)->hash() == tokenizer->hash());
      const std::string bytes = read_bytes(out + "/train.bin");
      const std::size_t header = format == "llm.c" ? 1024 : 0, width = vocab_size > 65536 ? 4 : 2;
      REQUIRE(bytes.size() == header + width * data.train.size());
      std::int32_t numbers[4] = {};
      std::memcpy(numbers, bytes.data(), sizeof(numbers));
      if (header > 0) {
        REQUIRE(numbers[0] == (width == 2 ? 20240520 : 20240801));
        REQUIRE(numbers[1] == (width == 2 ? 1 : 7));
        REQUIRE(numbers[2] == static_cast<std::int32_t>(data.train.size()));
        REQUIRE(numbers[3] == 0);
      }
      for (std::size_t i = 0; i < data.train.size(); ++i) {
        std::uint32_t id = 0;
        std::memcpy(&id, bytes.data() + header + width * i, width);
        REQUIRE(static_cast<std::int32_t>(id) == data.train[i]);
      }
      const auto corpus = prepared_corpus({out});
      REQUIRE(corpus);
      const Dataset read = make_dataset(*corpus, 0.1, 4, "", tokenizer);
      REQUIRE(read.train.ids() == data.train.ids());
      REQUIRE(read.val.ids() == data.val.ids());
      REQUIRE(read.characters == data.characters);
      const auto bytes_of = [&](const Tokens& ids) { return std::ssize(tokenizer->decode(ids)); };
      REQUIRE(read.prepared->facts.bytes == bytes_of(data.train) + bytes_of(data.val));
      REQUIRE(read.prepared->facts.val_bytes == bytes_of(data.val));
      REQUIRE(read.prepared->facts.val_characters == count_code_points(tokenizer->decode(data.val)));
      const auto single = prepared_corpus({out + "/train.bin"});
      const Dataset split = make_dataset(*single, 0.25, 4, "", tokenizer);
      REQUIRE(split.val.size() ==
              static_cast<std::size_t>(std::llround(0.25 * static_cast<double>(data.train.size()))));
      REQUIRE(split.train.ids() == data.train.view().ids(0, split.train.size()));
      require_same(make_dataset(prepared_corpus({out + "/train.bin", out + "/val.bin"}).value(), 0.1, 4, "", tokenizer),
                   read);
    }
  }
}

TEST_CASE("token files without validation are split where that is asked for") {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", words(9000, 4)), out = folder / "tokens";
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer("char", words(9000, 4));
  prepare({text}, out, {.sources = {}, .val_fraction = 0, .tokenizer = tokenizer, .out = {}, .format = "nanogpt"});
  REQUIRE(std::filesystem::exists(out + "/val.bin"));
  const Corpus corpus = prepared_corpus({out}).value();
  REQUIRE(make_dataset(corpus, 0, 4, "", tokenizer).val.empty());
  REQUIRE_FALSE(make_dataset(corpus, 0.5, 4, "", tokenizer).val.empty());
}

TEST_CASE("token files of other programs that are damaged or belong to another tokenizer are refused") {
  const TemporaryFolder folder;
  const auto numbers = [](std::vector<std::int32_t> first, std::size_t bytes) {
    first.resize(256);
    return std::string(reinterpret_cast<const char*>(first.data()), 1024) + std::string(bytes, '\1');
  };
  const std::vector<std::pair<std::string, std::string>> damaged = {
      {"abc", "has 2 bytes per token"},
      {numbers({20240520, 1, 10}, 19), "must have 20 bytes after its header"},
      {numbers({20240520, 1, 10}, 21), "must have 20 bytes"},
      {numbers({20240520, 1, 10}, 22), "must have 20 bytes"},
      {numbers({20240520, 1, -1}, 20), "must have -2 bytes"},
      {numbers({20240520, 1, 2147483647}, 20), "must have 4294967294 bytes"},
      {numbers({20240520, 2, 10}, 20), "and version 2; maki reads version 1"},
      {numbers({20240520, 7, 10}, 20), "and version 7"},
      {numbers({20240801, 1, 10}, 40), "maki reads version 7"},
      {numbers({20240801, 7, 10}, 20), "must have 40 bytes"},
      {numbers({20240801, 7, 10}, 41), "must have 40 bytes"},
      {numbers({20240801, 7, 2147483647}, 0), "must have 8589934588 bytes"},
      {numbers({20240520, 1, 10}, 0).substr(0, 4), "header of 1024 bytes; the file has 4 in total"},
      {numbers({20240801, 7, 10}, 0).substr(0, 10), "header of 1024 bytes; the file has 10"},
      {numbers({20240520, 1, 10}, 0).substr(0, 12), "header of 1024 bytes; the file has 12"},
      {numbers({20240520, 1, 0}, 0).substr(0, 1022), "header of 1024 bytes; the file has 1022"},
      {numbers({20240326, 3, 10}, 20),
       "is a checkpoint of llm.c, not a run or tokens; make a run of it with: maki import"},
  };
  for (const auto& [bytes, words_of_error] : damaged) {
    const std::string path = folder.write("t.bin", bytes);
    INFO(words_of_error);
    REQUIRE_THAT(error_message<CorpusError>([&] { prepared_corpus({path}); }),
                 Catch::Matchers::StartsWith(path) && ContainsSubstring(words_of_error));
  }
  const std::shared_ptr<const Tokenizer> letters = make_tokenizer("char", "abc");
  const Corpus foreign =
      prepared_corpus({folder.write("t.bin", std::string(100, '\0') + "\3" + std::string(99, '\0'))}).value();
  REQUIRE_THAT(error_message<CorpusError>([&] { make_dataset(foreign, 0.1, 4, "", letters); }),
               ContainsSubstring("contains the id 3, but the tokenizer has 3 tokens"));
  REQUIRE_THAT(error_message<CorpusError>([&] { make_dataset(foreign, 0.1, 4, "char"); }),
               ContainsSubstring("`tokenizer_file`"));
  folder.write("d/train.bin", "ab");
  REQUIRE(prepared_corpus({folder / "d"}));
  folder.write("d/notes.txt", "text");
  REQUIRE_THAT(error_message<CorpusError>([&] { prepared_corpus({folder / "d"}); }),
               ContainsSubstring("contains train.bin") && ContainsSubstring("no val.bin"));
  folder.write("e/other.bin", "ab");
  folder.write("e/notes.txt", "text");
  REQUIRE_FALSE(prepared_corpus({folder / "e"}));
  REQUIRE_FALSE(prepared_corpus({folder / "t.txt"}));
}

namespace {

// As many tokens as fit. None can be read.
class TooMany final : public TokenSource {
 public:
  std::size_t size() const override { return (std::size_t{1} << 31) - 1; }
  void copy(std::size_t, std::span<std::int32_t>) const override { throw std::logic_error("read"); }
  std::span<const std::int64_t> joins() const override { return {}; }
};

}  // namespace

TEST_CASE("a file of llm.c has at most as many tokens as its header can say, for training and for validation") {
  const TemporaryFolder folder;
  for (const std::string part : {"training", "validation"}) {
    const std::string out = folder / part;
    std::vector<std::string> files;
    folder.write(part + "/train.bin", "before");
    const auto writer =
        make_token_writer(posix_file_system(), "llm.c", {out, true}, *make_tokenizer("char", "abc"), files);
    const TooMany more;
    if (part == "validation") {
      writer->append(std::vector<std::int32_t>{2});
      writer->begin_validation();
    }
    writer->append(std::vector<std::int32_t>{1});
    REQUIRE_THAT(error_message<Error>([&] { writer->append(more); }),
                 ContainsSubstring("at most 2147483647 tokens") &&
                     ContainsSubstring(fmt::format("the {} text has 2147483648 or more", part)));
    REQUIRE(read_bytes(out + "/train.bin") == "before");
    REQUIRE_FALSE(std::filesystem::exists(out + "/val.bin"));
  }
}

TEST_CASE("whether the place of token files is free is known before they are made") {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "before"), full = folder / "full", none = folder / "none";
  for (const char* const name : {"train.bin", "val.bin", "maki-tokenizer"})
    folder.write("full/" + std::string(name), "before");
  const auto said = [](const std::string& format, const OutputPath& out) {
    return error_message<Error>([&] { require_token_place(format, out); });
  };
  for (const char* const format : {"maki", "nanogpt", "llm.c"}) REQUIRE(said(format, none).empty());
  REQUIRE_THAT(said("maki", file), ContainsSubstring(file + ": exists already"));
  REQUIRE(said("maki", {file, true}).empty());
  REQUIRE_THAT(said("maki", {full, true}), ContainsSubstring(full + ": is a directory; name a file"));
  REQUIRE_THAT(said("llm.c", full), ContainsSubstring(full + ": exists already"));
  REQUIRE(said("llm.c", {full, true}).empty());
  folder.write("full/notes.txt", "the user's");
  REQUIRE_THAT(said("nanogpt", {full, true}),
               ContainsSubstring(full + ": contains notes.txt, which this command does not write"));
}

TEST_CASE("whichever call fails while token files are replaced, all are those of before, or all are new") {
  int kept = 0, replaced = 0;
  for (int at = 0; at < 100; ++at) {
    const TemporaryFolder folder;
    const std::string out = folder / "tokens";
    std::vector<std::string> files;
    for (const char* const name : {"train.bin", "val.bin", "maki-tokenizer"})
      folder.write("tokens/" + std::string(name), "before");
    Faulty fs;
    const auto writer = make_token_writer(fs, "llm.c", {out, true}, *make_tokenizer("char", "abc"), files);
    writer->append(std::vector<std::int32_t>{0, 1, 2});
    fs.kind = Faulty::Kind::error;
    fs.error = ENOSPC;
    fs.at = static_cast<int>(fs.calls.size()) + at;
    const std::string said =
        error_message<CheckpointError>([&] { writer->commit({.train_tokens = 3, .val_tokens = 0}); });
    INFO("call " << at << ": " << said);
    if (said.empty() && static_cast<int>(fs.calls.size()) <= fs.at) break;
    const bool is_new = said.empty() || contains(said, out + ": is complete");
    for (const std::string& file : files) REQUIRE((read_bytes(file) == "before") != is_new);
    ++(is_new ? replaced : kept);
  }
  REQUIRE(kept >= 12);
  REQUIRE(replaced >= 1);
}
