// maki embed RUN TEXT… [options]: contextual vectors of tokens, and their similarities.
#include <fmt/format.h>
#include <iterator>
#include <memory>

#include "data/io/number.h"
#include "train/app/flags.h"
#include "train/app/progress.h"
#include "train/app/reading.h"
#include "train/app/report.h"
#include "train/app/verbs.h"
#include "train/loop/embed_texts.h"
#include "train/run/npy.h"

namespace maki {
namespace {

struct EmbedOptions {
  ReadingOptions reading;
  std::string word, npy;
  std::vector<std::string> texts;
  bool force = false;
};

std::vector<EmbeddedText> embed_all(const EmbedOptions& o, const LoadedModel& loaded) {
  const Encoder* const encoder = loaded.model->as_encoder();
  require_ability(loaded, encoder != nullptr, "gives no contextual vectors", "use a run of --model encoder");
  std::vector<EmbeddedText> texts;
  for (std::size_t i = 0; i < o.texts.size(); ++i) {
    const std::string name = fmt::format("text {}", i + 1),
                      text = encodable_text(*loaded.tokenizer, o.texts[i], name, o.reading.policy());
    require_positions(loaded, name, std::ssize(loaded.tokenizer->encode_line(text)));
    texts.push_back(embed_text(*encoder, *loaded.tokenizer, text));
    require_finite(loaded, texts.back().vectors, "vectors");
  }
  return texts;
}

std::vector<Similarity> compare(const EmbedOptions& o, const Tokenizer& tokenizer,
                                const std::vector<EmbeddedText>& texts) {
  if (o.word.empty()) return shared_similarities(texts);
  const std::string word = encodable_text(tokenizer, o.word, "word", o.reading.policy());
  std::vector<Similarity> list;
  if (!word.empty()) list = similarities(texts, spellings(tokenizer, word));
  check(!list.empty(), "word: must occur at least twice in the texts, to be compared; {} does not", o.word);
  return list;
}

// The vectors of all texts as float32, one after the other.
std::vector<float> flat_vectors(const std::vector<EmbeddedText>& texts) {
  std::vector<float> all;
  for (const EmbeddedText& text : texts) {
    const Tensor vectors = convert(text.vectors, DType::float32);
    const auto values = vectors.values<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void print_line(const FloatJson& facts) { print_result(json_text(facts)); }

FloatJson place(const Occurrence& at) { return {{"text", at.text}, {"position", at.position}}; }

void print_json(const LoadedModel& loaded, const std::vector<EmbeddedText>& texts,
                const std::vector<Similarity>& compared) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::vector<float> vectors = flat_vectors({texts[i]});
    const auto width = static_cast<std::ptrdiff_t>(vectors.size() / texts[i].ids.size());
    for (std::size_t k = 0; k < texts[i].ids.size(); ++k) {
      const auto from = vectors.begin() + static_cast<std::ptrdiff_t>(k) * width;
      print_line({{"text", i},
                  {"position", k},
                  {"token", std::string(loaded.tokenizer->bytes(texts[i].ids[k]))},
                  {"id", texts[i].ids[k]},
                  {"vector", std::vector<float>(from, from + width)}});
    }
  }
  for (const Similarity& s : compared) {
    print_line({{"tokens", loaded.tokenizer->decode(s.ids)},
                {"first", place(s.first)},
                {"second", place(s.second)},
                {"cosine", static_cast<float>(s.cosine)}});
  }
}

void print_similarities(const Tokenizer& tokenizer, const std::vector<Similarity>& compared, const std::string& npy) {
  std::string text;
  for (const Similarity& s : compared) {
    fmt::format_to(std::back_inserter(text), "{:7.4f}  \"{}\"  text {} token {}, text {} token {}\n", s.cosine,
                   escape_unprintable(tokenizer.decode(s.ids)), s.first.text + 1, s.first.position + 1,
                   s.second.text + 1, s.second.position + 1);
  }
  print_beside(npy, text);
  if (compared.empty()) to_stderr("no token is in two of the texts, so nothing is compared\n");
}

int embed(const EmbedOptions& o) {
  check(!o.reading.json || o.npy.empty(),
        "embed: --json and --npy are two ways to write the vectors; use only one of them");
  check_force("--npy", o.npy, o.force);
  const LoadedModel loaded = o.reading.open();
  const std::vector<EmbeddedText> texts = embed_all(o, loaded);
  const std::vector<Similarity> compared = compare(o, *loaded.tokenizer, texts);
  if (o.reading.json) {
    print_json(loaded, texts, compared);
    return 0;
  }
  if (!o.npy.empty()) {
    const std::vector<float> vectors = flat_vectors(texts);
    const std::int64_t width = texts.front().vectors.shape()[1], rows = std::ssize(vectors) / width;
    write_npy(posix_file_system(), {o.npy, o.force, o.reading.inputs()}, vectors, rows, width);
    to_stderr("{}: {} of {} numbers, in the order of the texts\n", o.npy, pluralize(rows, "vector"), width);
  }
  print_similarities(*loaded.tokenizer, compared, o.npy);
  return 0;
}

}  // namespace

void add_embed(const Command& command) {
  const auto o = std::make_shared<EmbedOptions>();
  o->reading.add_run(command, "run directory or .maki file of an encoder");
  command.add_argument("TEXT", o->texts, "texts; tokens that are in two of them are compared").may_be_empty().require();
  command.add_option("--word", o->word, "TEXT",
                     "compare the occurrences of this word, by the means of the vectors of its tokens");
  command.add_option("--npy", o->npy, "FILE",
                     "write the vectors to this file, as a NumPy array of float32 [tokens, n_embd]");
  add_force(command, o->force);
  o->reading.add_options(command, "the texts",
                         "print a line of JSON for each token, with its vector, and for each comparison");
  command.set_action([o] { return embed(*o); });
}

}  // namespace maki
