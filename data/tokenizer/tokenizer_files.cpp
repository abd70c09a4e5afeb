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

constexpr const char* kTokenizerJson = "tokenizer.json";
// The two files of a vocabulary have other names in OpenAI's own release.
constexpr std::pair<const char*, const char*> kVocabularyFiles[] = {{"vocab.json", "merges.txt"},
                                                                    {"encoder.json", "vocab.bpe"}};

bool is_file(const fs::path& path) { return file_kind(path.string()) == fs::file_type::regular; }

std::string read_limited(const fs::path& path) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 30;  // far above real files; a TokenList holds less than 4 GiB
  return read_file_limited(posix_file_system(), path.string(), kMaxBytes, throw_as<CorpusError>);
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
  if (path.filename() == kTokenizerJson) {
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

// The file of a directory that describes its tokenizer. That of maki comes first: it alone can express any tokenizer.
fs::path tokenizer_in(const fs::path& folder) {
  for (const char* const name : {kOwnTokenizerFile, kTokenizerJson, "vocab.json", "encoder.json", "tokenizer.model"}) {
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

// What tells a tokenizer.json from one that is written of this tokenizer; empty if nothing does. One that is not read
// here is not compared with a tokenizer that is not written in a form that is read here, such as that of characters.
std::string difference(const fs::path& path, const Tokenizer& tokenizer) {
  try {
    const std::unique_ptr<Tokenizer> other = read_one_file(path);
    return is_byte_level(tokenizer) && tokenizer_json(*other) == tokenizer_json(tokenizer) ? "" : "they differ";
  } catch (const CorpusError& error) {
    return is_byte_level(tokenizer) ? fmt::format("the latter cannot be read ({})", error.what()) : "";
  }
}

std::unique_ptr<Tokenizer> read_folder(const fs::path& folder) {
  const fs::path file = tokenizer_in(folder), theirs = folder / kTokenizerJson;
  std::unique_ptr<Tokenizer> tokenizer = read_one_file(file);
  if (file.filename() != kOwnTokenizerFile || !is_file(theirs)) return tokenizer;
  const std::string found = difference(theirs, *tokenizer);
  check<CorpusError>(found.empty(),
                     "the tokenizers in {} and {} must be the same; {}, as after a change by another program; name the "
                     "file of the right one as the tokenizer, or remove the other",
                     kOwnTokenizerFile, kTokenizerJson, found);
  return tokenizer;
}

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer(const std::string& path) {
  check<CorpusError>(path != "-", "-: a tokenizer cannot be read from the standard input; name its file");
  try {
    return is_directory(path) ? read_folder(path) : read_one_file(path);
  } catch (const CorpusError& error) {
    const std::string_view message = error.what();
    if (message.starts_with(path)) throw;  // the message names the file already
    fail<CorpusError>("{}: {}", path, message);
  }
}

std::vector<std::string> files_of_tokenizer(const std::string& path) {
  std::vector<std::string> names = files_beside_vocabulary();
  for (const auto& [vocab, merges] : kVocabularyFiles) names.insert(names.end(), {vocab, merges});
  std::vector<std::string> files = {path};
  for (const std::string& name : names) files.push_back((fs::path(path).parent_path() / name).string());
  return files;
}

std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view file) {
  VocabularyText text;
  read_tokenizer_json(file, text);
  return make_tokenizer(std::move(text));
}

}  // namespace maki
