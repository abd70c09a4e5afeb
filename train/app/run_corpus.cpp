#include "train/app/run_corpus.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/ranges.h>

#include "data/dataset/dataset.h"
#include "data/dataset/foreign_tokens.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/shell_quote.h"
#include "data/io/utf8.h"
#include "data/tokenizer/nanogpt_meta.h"
#include "data/tokenizer/special_text.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/app/progress.h"
#include "train/app/spelling.h"
#include "train/loop/taught_task.h"
#include "train/run/config/configured_tokenizer.h"
#include "train/run/config/field_effects.h"
#include "train/run/config/tasks.h"
#include "train/run/run_directory.h"
#include "train/run/verified_checkpoint.h"

namespace maki {
namespace {

constexpr std::array kDocumentFields = {"documents", "document_separator", "json_field"};

// The names of the stored reading fields that the configuration of another text takes over.
std::vector<std::string> fields_to_adopt(const Config& stored, const std::vector<std::string>& given,
                                         const Config& config) {
  const auto is_given = [&](std::string_view name) { return std::ranges::find(given, name) != given.end(); };
  const bool documents_given = std::ranges::any_of(kDocumentFields, is_given);
  std::vector<std::string> names;
  for (const std::string& name : reading_fields()) {
    const bool of_documents = std::ranges::find(kDocumentFields, name) != kDocumentFields.end();
    if (is_given(name) || (of_documents && documents_given)) continue;
    const std::string there = field_text(stored, find_field(name)), here = field_text(config, find_field(name));
    if (there != here && here == field_text(Config(), find_field(name))) names.push_back(name);
  }
  return names;
}

}  // namespace

std::optional<Config> stored_config(const std::string& run) {
  const RunDirectory directory(run);
  if (!file_exists(directory.config_file())) return std::nullopt;
  Config stored;
  directory.apply_config(stored);
  return stored;
}

Option add_corpus_argument(const Command& command, std::vector<std::string>& sources) {
  return command.add_argument("CORPUS", sources,
                              "files, directories, - for standard input, or a built-in text: " + builtin_corpora());
}

CorpusOptions corpus_options(const Config& config) {
  return {
      .invalid = config.invalid_utf8 == "replace" ? InvalidUtf8::replace : InvalidUtf8::error,
      .encoding = config.encoding,
      .include = config.include,
      .exclude = config.exclude,
      .documents = {.files = config.documents, .separator = config.document_separator, .json_field = config.json_field},
      .lines = !task_rule(config).plain_text()};
}

const std::vector<std::string>& reading_fields() {
  static const std::vector<std::string> names = {"invalid_utf8", "encoding",           "include",   "exclude",
                                                 "documents",    "document_separator", "json_field"};
  return names;
}

void adopt_reading_fields(const std::string& run, const std::vector<std::string>& given, Config& config) {
  const std::optional<Config> stored = stored_config(run);
  if (!stored) return;
  std::vector<std::string> adopted, undo;
  for (const std::string& name : fields_to_adopt(*stored, given, config)) {
    const Field& field = find_field(name);
    Config tried = config;
    copy_field(field, *stored, tried);
    if (!has_effect(tried, name)) continue;
    config = tried;
    adopted.push_back(fmt::format("{} = {}", name, field_text(config, field)));
    const std::string usual = field.usual.empty() ? option_text(Config(), field) : field.usual;
    undo.push_back(field.is_boolean() ? "--no-" + field.option().substr(2)
                                      : fmt::format("{} {}", field.option(), shell_quote(usual)));
  }
  if (adopted.empty()) return;
  to_stderr("{}: is read as the text of {} was, with {}; to read it otherwise: {}\n",
            fmt::format("{}", fmt::join(config.corpus, " ")), run, fmt::format("{}", fmt::join(adopted, ", ")),
            fmt::format("{}", fmt::join(undo, " ")));
}

void ask_for_text(const std::vector<std::string>& sources) {
  if (std::ranges::find(sources, "-") != sources.end()) ask("type the text, then press Enter and Ctrl-D");
}

std::string read_prompt_file(const std::string& path, const std::string& run) {
  ask_for_text({path});
  const std::string bytes = read_file(path);
  if (!invalid_utf8(bytes)) return bytes;
  const std::optional<Config> stored = stored_config(run);
  if (!stored || stored->encoding.empty()) return bytes;
  Decoder decoder(stored->encoding, path, InvalidUtf8::error);
  std::string text;
  decoder.push(bytes, text);
  decoder.finish(text);
  return text;
}

std::optional<Corpus> read_prepared(const std::vector<std::string>& sources) {
  std::optional<Corpus> corpus = prepared_corpus(sources);
  if (corpus) print_messages(corpus->notes);
  return corpus;
}

std::shared_ptr<const Tokenizer> tokenizer_beside_tokens(const std::string& source) {
  const std::filesystem::path path(source), folder = is_directory(source) ? path : path.parent_path();
  for (const char* const name : {kOwnTokenizerFile, kNanoGptMetaFile}) {
    const std::string file = (folder / name).string();
    if (file_exists(file)) return read_tokenizer(file);
  }
  return nullptr;
}

Corpus read_corpus(const std::vector<std::string>& sources, const CorpusOptions& options) {
  for (const std::string& source : sources) {
    const bool run = is_directory(source) && RunDirectory(source).exists();
    check(!run, "{}: is a run directory, not a text; continue the run with: maki train --resume {}", source,
          shell_quote(source));
  }
  if (auto prepared = read_prepared(sources)) return std::move(*prepared);
  ask_for_text(sources);
  Corpus corpus = load_corpus(sources, options);
  print_messages(corpus.notes);
  return corpus;
}

std::shared_ptr<const Tokenizer> adopt_prepared(Corpus& corpus, const ConfigFlags& flags,
                                                std::shared_ptr<const Tokenizer> tokenizer, Config& config) {
  static constexpr const char* kChosen[] = {"--tokenizer",  "--vocab-size",   "--normalize",         "--invalid-utf8",
                                            "--encoding",   "--include",      "--exclude",           "--documents",
                                            "--json-field", "--val-fraction", "--document-separator"};
  std::int64_t asked = 0;  // as in a run on the text
  const bool is_whole = corpus.prepared->tokenizer != nullptr;
  if (!is_whole && tokenizer == nullptr) tokenizer = tokenizer_beside_tokens(corpus.sources.front());
  for (const std::string& option : flags.given()) {
    if (!corpus.prepared->has_validation && option == "--val-fraction") continue;
    check(std::ranges::find(kChosen, option) == std::end(kChosen),
          "{}: is fixed in {}, which contains tokens and no text; omit it, or use the text itself", option,
          corpus.prepared->path);
  }
  if (is_whole) {
    config.val_fraction = corpus.prepared->facts.val_fraction;
    if (tokenizer == nullptr) {
      tokenizer = corpus.prepared->tokenizer;
      asked = corpus.prepared->facts.vocab_limit;
    }
  } else if (tokenizer != nullptr) {
    corpus.prepared = with_tokenizer(*corpus.prepared, tokenizer, config.val_fraction);
    corpus.characters = corpus.prepared->facts.characters;
  }
  check<CorpusError>(tokenizer != nullptr,
                     "{}: contains token ids, but not what they mean; name the tokenizer that made them with "
                     "--tokenizer-file, or the files of the text itself",
                     corpus.prepared->path);
  describe_tokenizer(*tokenizer, config);
  if (asked > 0) config.vocab_size = asked;
  return tokenizer;
}

std::optional<std::string> tokenizer_option(const ConfigFlags& flags) {
  for (const std::string& option : flags.given()) {
    if (option == "--tokenizer" || option == "--vocab-size" || option == "--normalize") return option;
  }
  return std::nullopt;
}

std::shared_ptr<const Tokenizer> tokenizer_of_teacher(const ConfigFlags& flags, Config& config) {
  const auto other = std::ranges::find_if(config.teacher, is_run);
  if (other == config.teacher.end() || tokenizer_option(flags)) return nullptr;
  const std::shared_ptr<const Tokenizer> tokenizer =
      reading_teacher([&] { return load_tokenizers(read_checked_state(ContainerReader(*other))).target; });
  describe_tokenizer(*tokenizer, config);
  return tokenizer;
}

Corpus reread_corpus(const Config& config, const std::string& hash, const std::string& advice) {
  Corpus corpus = read_corpus(config.corpus, corpus_options(config));
  check<CorpusError>(corpus.hash == hash, "{}: is not the text of this run: its hash is {}, not {}; {}",
                     fmt::join(config.corpus, " "), corpus.hash, hash, advice);
  return corpus;
}

std::vector<std::string> absolute_sources(std::vector<std::string> sources) {
  for (std::string& source : sources) {
    if (source == "-" || source.starts_with("@")) continue;
    std::error_code error;
    const std::filesystem::path path = std::filesystem::absolute(source, error);
    check<CorpusError>(!error, "{}: cannot be made an absolute path: {}", source, error.message());
    // What ".." means depends on the links before it, which only the system knows.
    const bool climbs = std::ranges::find(path, std::filesystem::path("..")) != path.end();
    source = (climbs ? path : path.lexically_normal()).string();
  }
  return sources;
}

std::vector<std::string> resume_sources(const std::string& run, const std::vector<std::string>& given,
                                        const std::vector<std::string>& stored) {
  if (!given.empty()) return given;
  check(!stored.empty(),
        "{0}: does not name the text of its training, because it {1}; name a CORPUS; to train this model on it: maki "
        "train CORPUS --init-from {0}",
        run,
        file_exists(RunDirectory(run).config_file()) ? "was imported, or exported without it" : "has no config.toml");
  check<CorpusError>(std::ranges::find(stored, "-") == stored.end(),
                     "{}: the text of this run came from standard input or a pipe; pass - again, with the same text",
                     run);
  const auto gone = std::ranges::find_if(stored, [](const std::string& source) {
    return !source.starts_with("@") && file_kind(source) == std::filesystem::file_type::not_found;
  });
  if (gone != stored.end())
    fail<CorpusError>("{}: the text of this run was {}, where there is nothing now; name its new place as CORPUS", run,
                      *gone);
  return stored;
}

void note_unread_specials(const Corpus& corpus, const Tokenizer* tokenizer, const Config& config) {
  if (corpus.prepared) return;
  const bool is_new = tokenizer == nullptr;
  const std::shared_ptr<const Tokenizer> empty =
      is_new ? make_tokenizer(config.tokenizer, "", tokenizer_options(config)) : nullptr;
  UnreadSpecials unread(is_new ? *empty : *tokenizer);
  for (const std::string_view text : document_texts(corpus)) unread.add(text);
  if (const std::string note = unread.note(is_new, config.document_separator); !note.empty()) print_messages({note});
}

}  // namespace maki
