// maki's token files, as they are and with right checksums: a mutation hardly ever hits those.
#include "data/dataset/token_file.h"

#include <cstring>

#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/hash.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/unsynced.h"
#include "train/run/convert/prepare.h"

namespace maki::fuzz {
namespace {

constexpr std::size_t kTokenFileHeader = TokenFileLayout::kHeaderBytes, kTokenizerSize = 16, kTokenizerHash = 120,
                      kDataHash = 152, kHeaderHash = 240;

void put_hash(std::string& bytes, std::size_t at, std::size_t begin, std::size_t size) {
  const auto hash = hash128(std::string_view(bytes).substr(begin, size));
  std::memcpy(bytes.data() + at, hash.data(), hash.size());
}

std::string with_token_checksums(std::string bytes) {
  if (bytes.size() < kTokenFileHeader) return bytes;
  std::uint64_t tokenizer = 0;
  std::memcpy(&tokenizer, bytes.data() + kTokenizerSize, sizeof tokenizer);
  put_hash(bytes, kTokenizerHash, kTokenFileHeader,
           static_cast<std::size_t>(std::min<std::uint64_t>(tokenizer, bytes.size() - kTokenFileHeader)));
  put_hash(bytes, kDataHash, kTokenFileHeader, bytes.size() - kTokenFileHeader);
  put_hash(bytes, kHeaderHash, 0, kHeaderHash);
  return bytes;
}

void read_as_token_file(const std::string& bytes) {
  const std::string forged = with_token_checksums(bytes);
  verify_token_file(*open_token_file(scratch_file("tokens.maki", forged)));
  if (forged != bytes) open_token_file(scratch_file("tokens.maki", bytes));
}

std::vector<std::string> token_file_seeds() {
  Unsynced fs;
  std::vector<std::string> files;
  const std::string text = scratch_file("text.txt", "The cat and the other cat.\n%\n猫である。\n%\nThe end.\n");
  for (const char* const kind : {"byte", "char", "word"}) {
    const std::string out = scratch_folder() + "/prepared.maki";
    prepare_corpus(fs, {.sources = {text, text},
                        .corpus = {.documents = {.separator = kind[0] == 'b' ? "" : "%"}},
                        .val_fraction = 0.3,
                        .tokenizer_kind = kind,
                        .out = out});
    files.push_back(read_file(out));
    remove_scratch_file("prepared.maki");
  }
  return files;
}

}  // namespace

const Target kTokenFile = {"token_file", read_as_token_file, is<CorpusError>, token_file_seeds};

}  // namespace maki::fuzz
