// Text in any encoding. The first byte chooses how it is read.
#include <algorithm>
#include <stdexcept>

#include "data/io/error.h"
#include "data/io/utf8.h"
#include "data/text/corpus_file.h"
#include "tests/fuzz/targets.h"

namespace maki::fuzz {
namespace {

constexpr const char* kEncodings[] = {"", "UTF-16", "UTF-16LE", "SHIFT_JIS", "EUC-JP", "ISO-2022-JP", "WINDOWS-1252"};

void read_as_text_file(const std::string& bytes) {
  const std::size_t choice = bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]);
  const CorpusOptions options{.invalid = choice % 2 == 0 ? InvalidUtf8::error : InvalidUtf8::replace,
                              .encoding = kEncodings[choice / 2 % std::size(kEncodings)]};
  const std::string path = scratch_file("text.txt", std::string_view(bytes).substr(bytes.empty() ? 0 : 1));
  Corpus corpus;
  append_corpus_file(corpus, path, options);
  // Blocks as short as a character, unless there would be more than 4,096.
  const std::size_t block_bytes = std::max(1 + choice / 16, bytes.size() / 4096);
  std::string blocks;
  std::vector<std::string> notes;
  read_corpus_file(
      path, options, block_bytes, [&](std::string_view block) { blocks += block; }, notes);
  if (blocks != corpus.text || invalid_utf8(blocks))
    throw std::logic_error("a text is not the same in blocks, or is not well-formed");
}

std::vector<std::string> text_file_seeds() {
  return {std::string("\0The cat, 猫 and e\u0301.\r\n", 23),
          "\x8cThe cat, 猫.\n",
          std::string("\x02\xff\xfeT\0h\0e\0", 9),
          "\x07\x94\x4c\x82\xc5\x82\xa0\x82\xe9",
          "\x08\xc7\xad\xa4\xc7\xa4\xa2\xa4\xeb",
          "\x0b\x1b$BG-\x1b(B"};
}

}  // namespace

const Target kTextFile = {"text_file", read_as_text_file, is<CorpusError>, text_file_seeds};

}  // namespace maki::fuzz
