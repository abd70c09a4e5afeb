// maki tokenizer train CORPUS… --out FILE      maki tokenizer encode|decode TOKENIZER [FILE…]
// maki tokenizer inspect TOKENIZER
#include "train/app/verbs/tokenizer.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <fmt/ranges.h>
#include <sstream>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "data/dataset/dataset.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/number.h"
#include "data/io/output.h"
#include "data/io/printable.h"
#include "data/text/text_shape.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/special_text.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/app/flags.h"
#include "train/app/progress.h"
#include "train/app/reading.h"
#include "train/app/run_corpus.h"
#include "train/app/verbs.h"
#include "train/run/config/configured_tokenizer.h"

namespace maki {

void add_token_facts(const TokenFileFacts& facts, const Tokenizer& tokenizer, Report& report) {
  const std::int64_t tokens = std::max<std::int64_t>(1, facts.train_tokens + facts.val_tokens);
  const double bytes_per_token = static_cast<double>(facts.bytes) / static_cast<double>(tokens);
  report.add("tokenizer", tokenizer.kind())
      .add("vocab_size", facts.vocab_size)
      .add("train_tokens", facts.train_tokens)
      .add("val_tokens", facts.val_tokens)
      .add("val_fraction", facts.val_fraction)
      .add("documents", facts.documents)
      .add("characters", facts.characters)
      .add("bytes", facts.bytes)
      .add("bytes_per_token", bytes_per_token)
      .add("tokenizer_hash", facts.tokenizer_hash)
      .add("corpus_hash", facts.corpus_hash)
      .line("tokens",
            fmt::format("{} for training, {} for validation; {:.2f} bytes per token",
                        with_separators(facts.train_tokens), with_separators(facts.val_tokens), bytes_per_token))
      .line("text", fmt::format("{} bytes, {} characters, hash {}", with_separators(facts.bytes),
                                with_separators(facts.characters), facts.corpus_hash));
  if (facts.documents > 0) {
    const bool ended = tokenizer.end_of_text().has_value();
    report.line("documents",
                with_separators(facts.documents) + (ended ? ", each followed by the token that ends a text" : ""));
  }
  report.line("tokenizer", fmt::format("{}, vocabulary of {}, hash {}", tokenizer.kind(),
                                       with_separators(facts.vocab_size), facts.tokenizer_hash));
}

namespace {

// Adds TOKENIZER and which of the two of a run that translates.
void add_tokenizer_options(const Command& command, std::string& tokenizer, bool& of_sources) {
  command.add_argument("TOKENIZER", tokenizer, "tokenizer file or directory, run directory, or .maki file").require();
  command.add_flag("--source", of_sources,
                   "use the vocabulary of the sources of a run that translates, instead of that of the targets");
}

struct TokenizerTrainOptions {
  explicit TokenizerTrainOptions(const Command& command)
      : flags(command,
              {"vocab_size", "normalize", "invalid_utf8", "encoding", "include", "exclude", "document_separator",
               "json_field", "threads"},
              Unset::file) {}
  ConfigFlags flags;
  std::vector<std::string> corpus;
  std::string out;
  bool force = false, json = false;
};

int train_tokenizer(const TokenizerTrainOptions& o) {
  Config config;
  o.flags.apply(config, "quickstart");
  config.tokenizer = "bpe";
  config.corpus = o.corpus;
  o.flags.require_effect(config);
  use_threads(config);
  OutputPath out(o.out, o.force, o.corpus);
  if (!o.flags.config_file().empty()) out.inputs.push_back(o.flags.config_file());
  require_file_place(out);  // before time is spent
  const Corpus corpus = read_corpus(o.corpus, corpus_options(config));
  check<CorpusError>(!corpus.prepared, "{}: contains tokens; a tokenizer learns from text; name the text", o.corpus[0]);
  note_unread_specials(corpus, nullptr, config);
  const std::vector<std::string_view> texts = document_texts(corpus);
  const auto tokenizer = make_tokenizer(config.tokenizer, {texts, {}}, tokenizer_options(config));
  const std::string text = tokenizer_json(*tokenizer);
  write_output(posix_file_system(), out, {text_bytes(text)});
  const Tokens ids = encode_pieces(*tokenizer, texts);
  const double bytes_per_token = static_cast<double>(corpus.text.size()) / static_cast<double>(ids.size());
  Report()
      .beside(o.out)
      .add("vocab_size", tokenizer->vocab_size())
      .add("bytes", corpus.text.size())
      .add("characters", corpus.characters)
      .add("tokens", ids.size())
      .add("hash", tokenizer->hash())
      .text(fmt::format("{}: {} tokens; the text of {} bytes has {} of them, {:.2f} bytes per token",
                        escape_unprintable(o.out), with_separators(tokenizer->vocab_size()),
                        with_separators(std::ssize(corpus.text)),
                        with_separators(static_cast<std::int64_t>(ids.size())), bytes_per_token))
      .print(o.json);
  if (!o.json && tokenizer->vocab_size() < config.vocab_size)
    to_stderr("the vocabulary is smaller than --vocab-size {}, because no other pair of tokens occurs twice\n",
              config.vocab_size);
  return 0;
}

void add_tokenizer_train(const Command& tokenizer) {
  const Command command =
      tokenizer.add_verb("train", "Learn a byte-level BPE vocabulary from a text, and write it as a tokenizer.json");
  const auto o = std::make_shared<TokenizerTrainOptions>(command);
  add_corpus_argument(command, o->corpus).require();
  command.add_option("--out", o->out, "FILE", "tokenizer.json file to write").require();
  add_force(command, o->force);
  command.add_flag("--json", o->json, "print the results as JSON");
  command.set_action([o] { return train_tokenizer(*o); });
}

struct TokenizerTextOptions {
  std::string tokenizer;
  std::vector<std::string> files;
  std::int64_t threads = 0;
  bool of_sources = false, lines = false, special = false, json = false;

  void add(const Command& command, const char* what) {
    add_tokenizer_options(command, tokenizer, of_sources);
    command.add_argument("FILE", files, fmt::format("files with {}, read as one; - or none: standard input", what));
  }
};

std::string read_sources(const std::vector<std::string>& files) {
  std::string text;
  const std::vector<std::string> sources = files.empty() ? std::vector<std::string>{"-"} : files;
  ask_for_text(sources);
  for (const std::string& file : sources) append_input(file, text);
  return text;
}

std::vector<std::int32_t> encode_text(const Tokenizer& tokenizer, const std::string& text) {
  try {
    return encode_pieces(tokenizer, {text}).ids();  // on all threads
  } catch (const CorpusError&) {
    return tokenizer.encode(text);  // whose message is about the whole text, not about a part of it
  }
}

// Prints the ids of every line. Lines before one that cannot be encoded are printed, too.
void encode_lines(const Tokenizer& tokenizer, std::string_view text) {
  constexpr std::size_t kLinesAtOnce = 1 << 14;  // between two barriers: a megabyte or so
  constexpr std::int64_t kLineWork = 1 << 12;    // elementary operations, of a short line
  const std::vector<std::string_view> lines = lines_of(text);
  std::vector<std::vector<std::int32_t>> ids(std::min(kLinesAtOnce, lines.size()));
  std::vector<std::exception_ptr> errors(ids.size());
  for (std::size_t begin = 0; begin < lines.size(); begin += ids.size()) {
    const std::size_t count = std::min(ids.size(), lines.size() - begin);
    parallel_for(static_cast<std::int64_t>(count), kLineWork, [&](std::int64_t line) {
      const auto i = static_cast<std::size_t>(line);
      try {
        ids[i] = tokenizer.encode_line(lines[begin + i]);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
    for (std::size_t i = 0; i < count; ++i) {
      try {
        if (errors[i]) std::rethrow_exception(errors[i]);
      } catch (const CorpusError& error) {
        fail<CorpusError>("line {}: {}", begin + i + 1, error.what());
      }
      print_result(fmt::format("{}\n", fmt::join(ids[i], " ")));
    }
  }
}

int encode(const TokenizerTextOptions& o) {
  check(!o.lines || !o.json,
        "tokenizer: --lines prints one line per line of text, and --json a single object; use one");
  if (o.threads != 0) set_threads(o.threads);
  std::shared_ptr<const Tokenizer> tokenizer = open_tokenizer(o.tokenizer, o.of_sources);
  if (o.special) tokenizer = finding_specials(*tokenizer);
  const std::string text = read_sources(o.files);
  if (o.lines) {
    encode_lines(*tokenizer, text);
    return 0;
  }
  const std::vector<std::int32_t> ids = encode_text(*tokenizer, text);
  print_result(o.json ? json_text(Json{{"bytes", text.size()}, {"tokens", ids.size()}, {"ids", ids}})
                      : fmt::format("{}\n", fmt::join(ids, " ")));
  return 0;
}

int decode(const TokenizerTextOptions& o) {
  const auto tokenizer = open_tokenizer(o.tokenizer, o.of_sources);
  std::istringstream words(read_sources(o.files));
  std::string text;
  for (std::string word; words >> word;) {
    std::int32_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    check<CorpusError>(error == std::errc() && end == word.data() + word.size(),
                       "tokenizer: ids must be whole numbers in [0, {}); got {}", tokenizer->vocab_size(),
                       truncate_for_message(word));
    text += tokenizer->bytes(id);
  }
  print_result(text);
  return 0;
}

void add_tokenizer_encode(const Command& tokenizer) {
  const Command command = tokenizer.add_verb("encode", "Print the ids of a text");
  const auto o = std::make_shared<TokenizerTextOptions>();
  o->add(command, "text");
  command.add_flag("--lines", o->lines,
                   "encode each line by itself, without its end, and print one line of ids for it");
  add_special_option(command, "the text", o->special);
  command.add_flag("--json", o->json, "print the number of bytes and tokens, and the ids, as JSON");
  add_threads_option(command, o->threads);
  command.set_action([o] { return encode(*o); });
}

void add_tokenizer_decode(const Command& tokenizer) {
  const Command command = tokenizer.add_verb("decode", "Print the text of ids that are separated by white space");
  const auto o = std::make_shared<TokenizerTextOptions>();
  o->add(command, "ids");
  command.set_action([o] { return decode(*o); });
}

struct TokenizerInspectOptions {
  std::string tokenizer;
  bool of_sources = false;
  bool json = false;
};

// The token with the most bytes, without those that were added to the vocabulary.
std::int32_t longest_token(const Tokenizer& tokenizer, const std::vector<AddedToken>& added) {
  std::int32_t longest = 0;
  std::size_t most = 0;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (is_added(added, id) || tokenizer.bytes(id).size() <= most) continue;
    longest = id;
    most = tokenizer.bytes(id).size();
  }
  return longest;
}

int inspect_tokenizer(const TokenizerInspectOptions& o) {
  const auto tokenizer = open_tokenizer(o.tokenizer, o.of_sources);
  const auto shown = [&](std::int32_t id) { return escape_unprintable(tokenizer->bytes(id)); };
  const BpeParts none{"", {}, {}, {}}, &parts = tokenizer->bpe_parts() != nullptr ? *tokenizer->bpe_parts() : none;
  const std::int32_t longest = longest_token(*tokenizer, parts.added);
  const std::vector<std::int32_t> ends = tokenizer->ends();
  const std::string normalize = to_string(tokenizer->normalization());
  Report report;
  report.add("kind", tokenizer->kind(), "kind", tokenizer->kind())
      .add("vocab_size", tokenizer->vocab_size(), "vocabulary", with_separators(tokenizer->vocab_size()) + " tokens")
      .add("merges", parts.merges.size())
      .add("pre_tokenizer", parts.rule);
  if (!parts.rule.empty())
    report.line("merges", with_separators(std::ssize(parts.merges))).line("pre-tokenizer", parts.rule);
  report.line("normalize", normalize)
      .line("longest token",
            fmt::format("{}: \"{}\"", pluralize(std::ssize(tokenizer->bytes(longest)), "byte"), shown(longest)));
  Json special = Json::object(), added = special;
  for (const AddedToken& token : parts.added) {
    (token.special ? special : added)[shown(token.id)] = token.id;
    const bool end = std::ranges::find(ends, token.id) != ends.end();
    report.line(token.special ? "special" : "added",
                fmt::format("{} = {}{}{}", token.id, shown(token.id), end ? ", the end of a text" : "",
                            token.always ? ", found in every text" : ""));
  }
  report.add("special", special)
      .add("added", added)
      .add("normalize", normalize)
      .add("hash", tokenizer->hash(), "hash", tokenizer->hash())
      .add("longest_token", shown(longest));
  if (const auto end = tokenizer->end_of_text()) report.add("end_of_text", *end);
  if (ends.size() > 1) report.add("ends", ends);
  report.print(o.json);
  return 0;
}

void add_tokenizer_inspect(const Command& tokenizer) {
  const Command command = tokenizer.add_verb("inspect", "Show what a tokenizer consists of");
  const auto o = std::make_shared<TokenizerInspectOptions>();
  add_tokenizer_options(command, o->tokenizer, o->of_sources);
  command.add_flag("--json", o->json, "print the facts as JSON");
  command.set_action([o] { return inspect_tokenizer(*o); });
}

}  // namespace

void add_tokenizer(const Command& command) {
  add_tokenizer_train(command);
  add_tokenizer_encode(command);
  add_tokenizer_decode(command);
  add_tokenizer_inspect(command);
}

}  // namespace maki
