#include "train/run/convert/prepare.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <map>

#include "data/dataset/token_shards.h"
#include "data/io/error.h"
#include "data/io/utf8.h"
#include "data/tokenizer/special_text.h"
#include "data/tokenizer/unknown_characters.h"
#include "train/run/convert/spooled_text.h"
#include "train/run/convert/token_formats.h"

namespace maki {
namespace {

using Pieces = std::vector<std::string_view>;

std::string_view view(const SpooledText& text, const TextRange& range) {
  return text.text.substr(range.begin, range.end - range.begin);
}

// The beginning of a character, at or after this position.
std::size_t next_character(std::string_view text, std::size_t at) {
  while (at < text.size() && is_continuation(text[at])) ++at;
  return at;
}

// Copies of parts of the text. Views of it would keep pages in memory, of which some are as large as 2 MiB.
class LearnedText {
 public:
  explicit LearnedText(const SpooledText& text) : text_(text) {}

  void add(std::string_view part) {
    bytes_ += part;
    ends_.push_back(bytes_.size());
    const auto end = static_cast<std::size_t>(part.data() + part.size() - text_.text.data());
    if (end - released_ < kReleaseDistance) return;
    text_.mapping->release(end);
    released_ = end;
  }
  Pieces pieces() const {
    Pieces pieces;
    std::size_t begin = 0;
    for (const std::size_t end : ends_) {
      pieces.push_back(std::string_view(bytes_).substr(begin, end - begin));
      begin = end;
    }
    return pieces;
  }
  std::size_t size() const { return bytes_.size(); }

 private:
  static constexpr std::size_t kReleaseDistance = 1 << 20;  // bytes per system call, where documents are short

  const SpooledText& text_;
  std::size_t released_ = 0;  // of the text
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

// The training text, or if it is long, parts of equal size that are spread evenly over it.
LearnedText text_to_learn(const SpooledText& text) {
  constexpr std::size_t kPartBytes = 1 << 16;  // some pages of text; there are 64 such parts
  constexpr std::size_t kParts = kMaxLearnedBytes / kPartBytes;
  std::size_t size = 0;
  for (const TextRange& range : text.train) size += range.end - range.begin;
  LearnedText learned(text);
  std::size_t before = 0, part = 0;  // bytes of the pieces before; the part that is looked for
  const auto part_begin = [&] { return part * (size - kPartBytes) / (kParts - 1); };
  for (const TextRange& range : text.train) {
    const std::string_view piece = view(text, range);
    if (size <= kMaxLearnedBytes) learned.add(piece);
    while (size > kMaxLearnedBytes && part < kParts && part_begin() < before + piece.size()) {
      const std::size_t first = std::max(part_begin(), before) - before;
      const std::size_t last = std::min(part_begin() + kPartBytes, before + piece.size()) - before;
      const std::size_t begin = next_character(piece, first), end = next_character(piece, last);
      if (begin < end) learned.add(piece.substr(begin, end - begin));
      if (part_begin() + kPartBytes > before + piece.size()) break;  // continues in the next piece
      ++part;
    }
    before += piece.size();
  }
  return learned;
}

// Encodes the pieces of a part of the corpus, block after block.
class PartEncoder {
 public:
  PartEncoder(const SpooledText& text, const Tokenizer& tokenizer, TokenWriter& writer)
      : text_(text), tokenizer_(tokenizer), writer_(writer), unread_(tokenizer) {
    if (text.documents > 0) end_of_text_ = tokenizer.end_of_text();
  }

  // Returns the number of tokens.
  std::int64_t encode(const std::vector<TextRange>& pieces) {
    count_ = 0;
    for (TextRange piece : pieces) {
      while (piece.begin < piece.end) {
        const std::string_view rest = view(text_, piece);
        const std::size_t room = kBlockBytes - size_;
        const std::size_t taken = rest.size() <= room ? rest.size() : tokenizer_.next_cut(rest, room);
        piece.begin += taken;
        add(rest.substr(0, taken), piece.begin == piece.end);
      }
      if (size_ == 0) text_.mapping->release(piece.end);
    }
    write();
    return count_;
  }
  const UnreadSpecials& unread() const { return unread_; }

 private:
  static constexpr std::size_t kBlockBytes = 6 << 20;  // of text that is encoded at once: parts for all threads
  // From the first of these texts to the last: pages between documents for validation are loaded as well.
  static constexpr std::size_t kMaxSpanBytes = 2 * kBlockBytes;

  void add(std::string_view text, bool is_last) {
    texts_.push_back(text);
    is_last_.push_back(is_last);
    size_ += text.size();
    const auto span = static_cast<std::size_t>(text.data() + text.size() - texts_.front().data());
    if (size_ >= kBlockBytes || span >= kMaxSpanBytes) write();
  }
  void write() {
    Tokens ids(tokenizer_.vocab_size());
    std::size_t done = 0;
    tokenizer_.encode_texts(texts_, ids, [&] {
      if (!is_last_[done++]) return;
      if (end_of_text_) {
        ids.append(std::span(&*end_of_text_, 1));
      } else {
        ids.begin_piece();
      }
    });
    std::ranges::for_each(texts_, [&](std::string_view text) { unread_.add(text); });
    writer_.append(ids);
    count_ += static_cast<std::int64_t>(ids.size());
    if (!texts_.empty())
      text_.mapping->release(static_cast<std::size_t>(texts_.back().data() + texts_.back().size() - text_.text.data()));
    texts_.clear();
    is_last_.clear();
    size_ = 0;
  }

  const SpooledText& text_;
  const Tokenizer& tokenizer_;
  TokenWriter& writer_;
  UnreadSpecials unread_;  // misses one with white space in it that the end of a block divides
  std::optional<std::int32_t> end_of_text_;
  Pieces texts_;
  std::vector<bool> is_last_;  // of each text, in its piece
  std::size_t size_ = 0;       // bytes of texts_
  std::int64_t count_ = 0;
};

void learn_tokenizer(const PrepareOptions& options, const SpooledText& text, Prepared& prepared) {
  // Characters are those of the whole text, and bytes are the same for every text.
  const bool learns = tokenizer_kind(options.tokenizer_kind).vocabulary == Vocabulary::learned;
  const LearnedText learned = learns ? text_to_learn(text) : LearnedText(text);
  prepared.learned_bytes = learned.size();
  for (const TextRange& range : text.train) prepared.training_bytes += range.end - range.begin;
  Pieces characters;
  for (const auto& [character, count] : text.alphabet) characters.push_back(character);
  prepared.tokenizer =
      make_tokenizer(options.tokenizer_kind, {learned.pieces(), characters}, options.tokenizer_options);
}

void check_alphabet(const Tokenizer& tokenizer, const SpooledText& text) {
  std::map<char32_t, std::int64_t> unknown;
  for (const auto& [character, count] : text.alphabet) {
    for (const auto& [c, times] : tokenizer.unknown(character)) unknown[c] += times * count;
  }
  unknown = as_written(std::move(unknown), text.written, tokenizer.normalization());
  check<CorpusError>(unknown.empty(), "{}", unknown_sentence(tokenizer.vocab_size(), unknown));
}

void give_notes(const PrepareOptions& options, const std::vector<std::string>& notes) {
  if (options.on_notes) options.on_notes(notes);
}

TokenFileFacts facts_of(const SpooledText& text, double val_fraction) {
  TokenFileFacts facts{.corpus_hash = text.hash,
                       .documents = text.documents,
                       .bytes = static_cast<std::int64_t>(text.text.size()),
                       .characters = text.characters,
                       .val_characters = text.val_characters,
                       .val_fraction = val_fraction};
  for (const TextRange& range : text.val) facts.val_bytes += static_cast<std::int64_t>(range.end - range.begin);
  return facts;
}

}  // namespace

Prepared prepare_corpus(FileSystem& fs, const PrepareOptions& options) {
  require_token_place(options.format, options.out);  // before time is spent
  if (options.tokenizer) require_ids_fit(options.format, options.tokenizer->vocab_size());
  check<CorpusError>(options.sources.empty() || !token_file_paths(options.sources),
                     "{}: contains tokens already; name the text that they are of", fmt::join(options.sources, " "));
  const Normalization form =
      options.tokenizer ? options.tokenizer->normalization() : options.tokenizer_options.normalization;
  const SpooledText text =
      spool_text(fs, options.out.path, options.sources, options.corpus, options.val_fraction, form);
  give_notes(options, text.notes);
  check<CorpusError>(!text.text.empty(), "{}: is empty; there is nothing to prepare", fmt::join(options.sources, " "));
  Prepared prepared{.tokenizer = options.tokenizer, .facts = {}, .files = {}};
  if (options.tokenizer) {
    check_alphabet(*options.tokenizer, text);
  } else {
    learn_tokenizer(options, text, prepared);
  }
  const auto writer = make_token_writer(fs, options.format, options.out, *prepared.tokenizer, prepared.files);
  PartEncoder encoder(text, *prepared.tokenizer, *writer);
  TokenFileFacts facts = facts_of(text, options.val_fraction);
  facts.vocab_size = prepared.tokenizer->vocab_size();
  // A run on the text is configured with the size that was asked for.
  const std::int64_t asked = options.tokenizer_options.vocab_size;
  const bool is_new = options.tokenizer == nullptr && tokenizer_kind(options.tokenizer_kind).has_limit;
  if (is_new && facts.vocab_size < asked) facts.vocab_limit = asked;
  facts.tokenizer_hash = prepared.tokenizer->hash();
  facts.train_tokens = encoder.encode(text.train);
  writer->begin_validation();
  facts.val_tokens = encoder.encode(text.val);
  const std::string& separator = options.corpus.documents.separator;
  if (const std::string note = encoder.unread().note(options.tokenizer == nullptr, separator); !note.empty())
    give_notes(options, {note});
  check<CorpusError>(facts.train_tokens > 0,
                     "{}: leaves no training text; use more text or another `val_fraction` (0: no validation)",
                     fmt::join(options.sources, " "));
  check<CorpusError>(facts.val_tokens > 0 || options.val_fraction == 0,
                     "{}: leaves no validation text{}; use more text or another `val_fraction` (0: no validation)",
                     fmt::join(options.sources, " "), text.documents > 0 ? ", because documents are kept whole" : "");
  if (text.entropy_per_char) {
    const bool all = facts.val_tokens == 0;
    facts.best_possible_loss = *text.entropy_per_char *
                               static_cast<double>(all ? text.characters : text.val_characters) /
                               static_cast<double>(all ? facts.train_tokens : facts.val_tokens);
  }
  writer->commit(facts);
  prepared.facts = std::move(facts);
  return prepared;
}

}  // namespace maki
