#include "train/run/convert/spooled_text.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fmt/ranges.h>

#include "data/io/error.h"
#include "data/io/hash.h"
#include "data/io/temporary.h"
#include "data/io/utf8.h"
#include "data/text/corpus_file.h"
#include "data/text/invisible.h"
#include "data/text/text_shape.h"

namespace maki {
namespace {

// The characters that occur in pieces of text, each of which arrives in parts.
class Alphabet {
 public:
  explicit Alphabet(Normalization normalization) : normalization_(normalization) {}

  void add(std::string_view part) {
    if (normalization_ == Normalization::none) return collect(part, counts_);
    collect(part, written_);
    // The normal form of what stands before an ASCII character does not depend on what follows.
    pending_ += part;
    std::size_t cut = pending_.size();
    while (cut > 0 && static_cast<unsigned char>(pending_[cut - 1]) >= 0x80) --cut;
    if (cut <= 1) return;
    collect(normalize(std::string_view(pending_).substr(0, cut - 1), normalization_), counts_);
    pending_.erase(0, cut - 1);
  }
  // Pieces are encoded one by one, so nothing is combined with what another piece ends with.
  void end_piece() {
    collect(normalize(pending_, normalization_), counts_);
    pending_.clear();
  }
  std::map<std::string, std::int64_t> characters() const {
    std::map<std::string, std::int64_t> characters;
    for (const auto& [c, count] : positive(counts_)) {
      std::string character;
      append_utf8(character, c);
      characters.emplace(std::move(character), count);
    }
    return characters;
  }
  // The characters before normalization; empty without one, as characters() then has the same.
  std::map<char32_t, std::int64_t> written() const { return positive(written_); }

 private:
  using Counts = std::vector<std::int64_t>;  // by code point

  static void collect(std::string_view text, Counts& counts) {
    while (!text.empty()) {
      const auto byte = static_cast<unsigned char>(text[0]);
      if (byte < 0x80) {
        ++counts[byte];
        text.remove_prefix(1);
      } else {
        ++counts[next_code_point(text)];
      }
    }
  }
  static std::map<char32_t, std::int64_t> positive(const Counts& counts) {
    std::map<char32_t, std::int64_t> found;
    for (char32_t c = 0; c < counts.size(); ++c) {
      if (counts[c] > 0) found.emplace(c, counts[c]);
    }
    return found;
  }

  static constexpr std::size_t kCodePoints = 0x110000;  // of Unicode
  Normalization normalization_;
  std::string pending_;
  Counts counts_ = Counts(kCodePoints), written_ = Counts(normalization_ == Normalization::none ? 0 : kCodePoints);
};

// Writes a text to a temporary file and notes what the split of the corpus depends on.
class Spool {
 public:
  Spool(FileSystem& fs, const std::string& path, double val_fraction, Normalization normalization)
      : parents_(fs, path),
        temporary_(fs, unused_name_beside(path)),
        file_(temporary_.create_for(path)),
        val_fraction_(val_fraction),
        normalization_(normalization),
        documents_(val_fraction),
        alphabet_(normalization) {
    const bool removed = temporary_.remove();
    const int error = errno;
    check<CheckpointError>(removed, "{}: cannot be removed: {}", temporary_.path(), std::strerror(error));
  }

  void begin_file() {
    file_begin_ = begin_ = size_;
    file_characters_ = 0;
    marks_.assign(1, {size_, 0});
    invisible_.begin_text();
  }
  void add(std::string_view part) {
    const std::int64_t characters = count_code_points(part);
    invisible_.add(part);
    alphabet_.add(part);
    buffer_ += part;
    if (buffer_.size() >= kBufferBytes) flush();
    size_ += part.size();
    file_characters_ += characters;
    document_characters_ += characters;
    if (size_ - marks_.back().byte >= kMarkDistance) marks_.push_back({size_, file_characters_});
  }
  void end_document() {
    alphabet_.end_piece();
    const TextRange range{begin_, size_};
    begin_ = size_;
    const std::int64_t characters = std::exchange(document_characters_, 0);
    if (range.end == range.begin) return;
    starts_.push_back(range.begin);
    const bool validation = documents_.is_validation(characters);
    (validation ? result_.val : result_.train).push_back(range);
    if (validation) result_.val_characters += characters;
  }
  void end_file() {
    alphabet_.end_piece();
    result_.characters += file_characters_;
    if (file_begin_ > 0 && size_ > file_begin_) joins_.push_back(file_begin_);
    files_.push_back({file_begin_, size_, cut_of_file()});
  }

  // Ends the spool. Files that are not divided into documents are split as split_text() does it.
  SpooledText finish(bool whole_files, const std::string& encoding) {
    flush();
    map_file();
    if (whole_files) split_files();
    result_.documents = std::ssize(starts_);
    result_.hash = corpus_hash(to_hex(hash_.value()), joins_, starts_);
    result_.alphabet = alphabet_.characters();
    result_.written = alphabet_.written();
    invisible_.describe(result_.notes, /*lines=*/false, encoding);
    return std::move(result_);
  }
  SpooledText& result() { return result_; }

 private:
  static constexpr std::size_t kBufferBytes = 1 << 20;   // per write: few calls, little memory
  static constexpr std::size_t kMarkDistance = 1 << 20;  // bytes: about as many are read again to find a cut
  struct Mark {
    std::size_t byte;
    std::int64_t character;  // of the file
  };
  struct Cut {
    Mark mark;                // near the cut, before it
    std::int64_t characters;  // from the mark to the cut
  };
  struct File {
    std::size_t begin, end;
    Cut cut;
  };

  // Where the validation text of the file begins: fractions of a character are carried over to the next file.
  Cut cut_of_file() {
    const auto share = static_cast<std::int64_t>(std::llround(static_cast<double>(result_.characters) * val_fraction_));
    const std::int64_t at = file_characters_ - (share - std::exchange(validating_, share));
    const auto next = std::ranges::upper_bound(marks_, at, {}, &Mark::character);
    const Mark mark = *std::prev(next);
    return {mark, at - mark.character};
  }
  void flush() {
    file_.write_all(text_bytes(buffer_));
    hash_.add(buffer_);
    buffer_.clear();
  }
  // The hash of what is in the file. The pages of a mapping would all stay in memory.
  std::array<std::uint8_t, 16> read_back() const {
    constexpr std::size_t kBlockBytes = 1 << 16;  // per read: few calls, little memory
    std::vector<std::byte> block(kBlockBytes);
    Hash128 hash;
    for (std::size_t at = 0, n; (n = file_.read_at(at, block)) > 0; at += n) hash.add({block.data(), n});
    return hash.value();
  }
  void map_file() {
    if (size_ == 0) return;
    require_read_back(read_back() == hash_.value(), file_.path());
    result_.mapping = Mapping::create(file_.number(), 0, size_, Mapping::Access::read);
    check<CheckpointError>(result_.mapping != nullptr, "{}: cannot be mapped into memory: {}", file_.path(),
                           std::strerror(errno));
    result_.text = bytes_text(result_.mapping->bytes());
  }
  void split_files() {
    result_.val_characters = validating_;
    std::size_t released = 0;
    for (const File& file : files_) {
      const auto& [mark, characters] = file.cut;
      const std::string_view rest = result_.text.substr(mark.byte, file.end - mark.byte);
      const std::size_t cut = val_fraction_ == 0 ? file.end : mark.byte + byte_offset(rest, characters);
      const std::string_view text = result_.text.substr(file.begin, file.end - file.begin);
      const std::size_t at = file.begin + next_normal_cut(text, cut - file.begin, normalization_);
      result_.val_characters -= count_code_points(result_.text.substr(cut, at - cut));
      if (at > file.begin) result_.train.push_back({file.begin, at});
      if (at < file.end) result_.val.push_back({at, file.end});
      if (file.end - released < kMarkDistance) continue;
      result_.mapping->release(file.end);
      released = file.end;
    }
  }

  Parents parents_;
  Temporary temporary_;
  Descriptor file_;
  double val_fraction_;
  Normalization normalization_;
  DocumentSplit documents_;
  Alphabet alphabet_;
  InvisibleCharacters invisible_;
  Hash128 hash_;
  std::string buffer_;  // the end of the text, which is not written yet
  SpooledText result_;
  std::vector<File> files_;
  std::vector<Mark> marks_;
  std::vector<std::size_t> joins_, starts_;
  std::size_t size_ = 0, begin_ = 0, file_begin_ = 0;
  std::int64_t file_characters_ = 0, document_characters_ = 0, validating_ = 0;
};

// A built-in corpus is made in memory.
SpooledText spool_builtin(Spool& spool, const std::vector<std::string>& sources, const CorpusOptions& options,
                          double val_fraction, Normalization normalization) {
  const Corpus corpus = load_corpus(sources, options);
  spool.begin_file();
  spool.add(corpus.text);
  spool.end_file();
  SpooledText spooled = spool.finish(/*whole_files=*/false, options.encoding);
  spooled.notes.insert(spooled.notes.end(), corpus.notes.begin(), corpus.notes.end());
  const SplitText split = split_text(corpus, val_fraction, normalization);
  const auto add = [&](const std::vector<std::string_view>& pieces, std::vector<TextRange>& ranges) {
    for (const std::string_view piece : pieces) {
      const auto begin = static_cast<std::size_t>(piece.data() - corpus.text.data());
      ranges.push_back({begin, begin + piece.size()});
    }
  };
  add(split.train, spooled.train);
  add(split.val, spooled.val);
  for (const std::string_view piece : split.val) spooled.val_characters += count_code_points(piece);
  spooled.entropy_per_char = corpus.entropy_per_char;
  return spooled;
}

}  // namespace

SpooledText spool_text(FileSystem& fs, const std::string& path, const std::vector<std::string>& sources,
                       const CorpusOptions& options, double val_fraction, Normalization normalization) {
  constexpr std::size_t kBlockBytes = 1 << 22;  // per read: few calls, little memory
  check<CorpusError>(!sources.empty(), "corpus: name a file, a directory, - or @stories");
  Spool spool(fs, path, val_fraction, normalization);
  if (sources.size() == 1 && sources[0].starts_with("@"))
    return spool_builtin(spool, sources, options, val_fraction, normalization);
  options.documents.check_valid();
  std::vector<std::string>& notes = spool.result().notes;
  std::int64_t separators = 0;
  bool is_first = !options.documents.any();  // the first block of running text
  for (const std::string& file : list_corpus_files(sources, options, notes)) {
    const std::string name = file == "-" ? "standard input" : file;
    spool.begin_file();
    DocumentReader reader(
        options.documents, name, [&](std::string_view part) { spool.add(part); },
        [&] {
          if (options.documents.any()) spool.end_document();
        });
    const auto push = [&](std::string_view block) {
      if (std::exchange(is_first, false)) note_on_records(block, name, notes);
      reader.push(block);
    };
    read_listed_file(sources, file, [&] {
      read_corpus_file(file, options, kBlockBytes, push, notes);
      reader.finish();
    });
    separators += reader.separators();
    spool.end_file();
  }
  note_on_separators(options.documents, separators, notes);
  return spool.finish(!options.documents.any(), options.encoding);
}

}  // namespace maki
