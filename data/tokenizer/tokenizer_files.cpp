// Temporary: the saved form alone, until byte-level BPE is here.
#include "data/tokenizer/tokenizer_files.h"

#include "data/text/error.h"
#include "data/text/file.h"
#include "data/text/utf8.h"

namespace maki {

std::unique_ptr<Tokenizer> read_tokenizer(const std::string& path) { return load_tokenizer(read_file(path)); }

std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view) {
  fail<CorpusError>("tokenizer: byte-level BPE is not supported");
}

std::string tokenizer_json(const Tokenizer& tokenizer) {
  check<CorpusError>(tokenizer.kind() == "byte", "tokenizer: {} cannot be expressed", tokenizer.kind());
  return "{}\n";
}

BpeVocabulary bpe_vocabulary(const Tokenizer& tokenizer) {
  check<CorpusError>(tokenizer.kind() == "byte", "tokenizer: {} cannot be expressed", tokenizer.kind());
  BpeVocabulary vocabulary;
  char32_t next = 256;
  for (char32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    append_utf8(vocabulary.tokens.emplace_back(), printable ? b : next++);
  }
  return vocabulary;
}

}  // namespace maki
