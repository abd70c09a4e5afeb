#include "data/tokenizer/tokenizer_files.h"

#include <filesystem>

#include "data/dataset/token_file.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/tokenizer/nanogpt_meta.h"
#include "data/tokenizer/tokenizer_config.h"
#include "data/tokenizer/vocabulary_text.h"

namespace maki {
namespace {

namespace fs = std::filesystem;

// The two files of a vocabulary have other names in OpenAI's own release.
constexpr std::pair<const char*, const char*> kVocabularyFiles[] = {{"vocab.json", "merges.txt"},
                                                                    {"encoder.json", "vocab.bpe"}};

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string read_limited(const fs::path& path) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 30;  // far above real files; a TokenList holds less than 4 GiB
  const std::size_t size = file_size(path.string());
  check<CorpusError>(size <= kMaxBytes, "a tokenizer file may have at most {} bytes; it has {}", kMaxBytes, size);
  return read_file(path.string());
}

// Of a vocabulary in a folder of Hugging Face, with what lies beside it.
std::unique_ptr<Tokenizer> make_tokenizer(VocabularyText text, const fs::path& folder) {
  add_tokens_beside(folder, text);
  std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(std::move(text));
  tokenizer->set_use(read_token_use(folder, *tokenizer));
  return tokenizer;
}

std::unique_ptr<Tokenizer> read_vocabulary_files(const fs::path& folder, const char* vocab, const char* merges) {
  VocabularyText text;
  text.unreachable_are_special = true;
  read_vocab_json(read_limited(folder / vocab), text);
  read_merges_text(read_limited(folder / merges), text);
  return make_tokenizer(std::move(text), folder);
}

std::unique_ptr<Tokenizer> read_one_file(const fs::path& path) {
  for (const auto& [vocab, merges] : kVocabularyFiles) {
    if (path.filename() == vocab || path.filename() == merges)
      return read_vocabulary_files(path.parent_path(), vocab, merges);
  }
  if (is_token_file(path.string())) return load_tokenizer(open_token_file(path.string())->tokenizer->save());
  const std::string text = read_limited(path);
  if (path.filename() == kNanoGptMetaFile) return read_nanogpt_meta(text);
  if (text.starts_with("maki ")) return load_tokenizer(text);
  if (path.filename() == "tokenizer.json") {
    VocabularyText vocabulary;
    read_tokenizer_json(text, vocabulary);
    return make_tokenizer(std::move(vocabulary), path.parent_path());
  }
  if (path.extension() == ".json") return read_tokenizer_json(text);
  check<CorpusError>(path.extension() == ".tiktoken" || path.filename() == "tokenizer.model",
                     "a tokenizer must be a .json or .tiktoken file, merges.txt beside vocab.json, or a directory with "
                     "one of them");
  return read_tiktoken(text);
}

// The file of a directory that describes its tokenizer.
fs::path tokenizer_in(const fs::path& folder) {
  for (const char* const name :
       {"tokenizer.json", kOwnTokenizerFile, "vocab.json", "encoder.json", "tokenizer.model"}) {
    if (is_file(folder / name)) return folder / name;
  }
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".tiktoken") files.push_back(entry->path());
  }
  check<CorpusError>(files.size() == 1,
                     "a directory with a tokenizer must contain a tokenizer.json, vocab.json with merges.txt, or one "
                     ".tiktoken file; it has {} of the latter",
                     files.size());
  return files[0];
}

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer(const std::string& path) {
  try {
    return read_one_file(is_directory(path) ? tokenizer_in(path) : fs::path(path));
  } catch (const CorpusError& error) {
    const std::string_view message = error.what();
    if (message.starts_with(path)) throw;  // the message names the file already
    fail<CorpusError>("{}: {}", path, message);
  }
}

std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view file) {
  VocabularyText text;
  read_tokenizer_json(file, text);
  return make_tokenizer(std::move(text));
}

}  // namespace maki
