// A corpus: the text of files, directories, standard input or the built-in stories, and its split into training and
// validation text. "Character" means Unicode code point.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/documents.h"
#include "data/text/encoding.h"
#include "data/tokenizer/normalization.h"

namespace maki {

struct TokenFile;

struct CorpusOptions {
  /// What to do with invalid bytes; `replace` accepts them in up to 1 % of the bytes of a file, and text that is
  /// certainly UTF-16, UTF-32 or ISO-2022-JP not at all.
  InvalidUtf8 invalid = InvalidUtf8::error;
  /// Encoding of files and standard input, by its name in iconv. Empty: UTF-8; text that is recognised to be in another
  /// encoding is rejected with an error that names it. With a name, "UTF-8" included, nothing is recognised.
  std::string encoding = {};
  std::vector<std::string> include = {}, exclude = {};  ///< patterns for directories, see DirectoryFilter
  DocumentOptions documents = {};
  /// The text is lines that are read one by one, such as pairs, or texts and their labels: what ends them is no text.
  bool lines = false;
};

struct Corpus {
  std::vector<std::string> sources;  ///< as given by the caller
  /// Well-formed UTF-8: the texts of all files, concatenated without anything between them; of documents, only what is
  /// in them, so no lines that separate them and no JSON around them.
  std::string text;
  std::vector<std::size_t> joins;  ///< byte offsets in `text` at which a file ends and the next non-empty one begins
  std::vector<std::string> files;  ///< the names of the files between the joins: those that are not empty
  /// Identifies the corpus: XXH3-128 in hexadecimal. For one file it is the hash of the text; for several files it also
  /// covers the joins, and for documents their beginnings instead, because they determine what is validation text.
  std::string hash;
  std::int64_t characters = 0;
  std::vector<std::size_t> story_starts;  ///< byte offset of each built-in story; empty for other texts
  /// Byte offset of each document that is not empty, if the options say what a document is; else empty.
  std::vector<std::size_t> documents;
  std::optional<double> entropy_per_char;  ///< for the built-in stories: nats per character, the best possible loss
  std::vector<std::string> notes;          ///< messages for the user: files skipped, bytes replaced
  /// The tokens, if the corpus is not a text but was prepared (data/dataset/token_file.h); `text` is empty then.
  std::shared_ptr<const TokenFile> prepared;
};

/// Loads a corpus. Sources are files, directories (the text files below them in byte order of their paths, see
/// list_directory()) and "-" for standard input, in any combination, or else one built-in corpus: "@stories[:CHARS]" or
/// "@stories-ja[:CHARS]" (data/builtin/stories.h), "@copy[:LETTERS]", "@reverse[:LETTERS]", "@addition[:DIGITS]" or
/// "@addition-backwards[:DIGITS]" (data/builtin/exercises.h). Nothing is stripped or normalised, not even a UTF-8
/// byte-order mark.
///
/// Throws CorpusError if there are no sources, if one is missing, unreadable, compressed or not UTF-8 (with the offset
/// of the first invalid byte and the encoding, if it is recognised) or a file of another kind, such as a PDF document,
/// if a built-in corpus does not exist, has a size out of its range or is combined with other sources, if a line is not
/// the JSON that the options ask for, or if the text is empty; Error if iconv does not know the encoding, if
/// DocumentOptions::check_valid() throws, or if an encoding or documents are given for a built-in corpus. The notes
/// say, among others, if the first file is a list of records that was read as running text, and if no line separates
/// documents.
Corpus load_corpus(const std::vector<std::string>& sources, const CorpusOptions& options = {});

/// The files that sources other than built-in corpora denote; "-" is standard input. A source that is no directory is
/// listed without a look at it, even if it does not exist. Appends to `notes` what was skipped in directories. Throws
/// CorpusError for a built-in corpus, and whatever list_directory() throws.
std::vector<std::string> list_corpus_files(const std::vector<std::string>& sources, const CorpusOptions& options,
                                           std::vector<std::string>& notes);

/// Calls `read`, which reads one of these files. What it throws about a file that no source names, because it is in a
/// directory, also says how to leave it out: the file stays there when it has been converted to another.
void read_listed_file(const std::vector<std::string>& sources, const std::string& file,
                      const std::function<void()>& read);

/// The names of the built-in corpora, for a user: "@stories, … (a size may follow, as in @stories:1000000)".
std::string builtin_corpora();

/// The text of each file that is not empty, as views of corpus.text, which must outlive them. One empty text if the
/// corpus has no text.
std::vector<std::string_view> file_texts(const Corpus& corpus);

/// The texts of the documents if they are known, else those of the files, as views of corpus.text.
std::vector<std::string_view> document_texts(const Corpus& corpus);

/// Training and validation text: one piece per file, or per document if the corpus consists of documents, in order,
/// without empty pieces.
struct SplitText {
  std::vector<std::string_view> train, val;  ///< views of Corpus::text
};

/// Splits every file: the last val_fraction of its characters are validation text. Built-in stories are kept whole: the
/// validation text begins with the first story that begins at or after the cut, or else with the last one.
/// Fractions of a character are carried over to the next file, so that many short files contribute their share as well.
/// Documents are kept whole: those for validation are spread evenly over the corpus (DocumentSplit).
/// `form` is the normalization of the tokenizer that encodes both parts: a mark that it may combine with the character
/// before stays with this one in the training text (next_normal_cut()).
/// Throws Error unless val_fraction is in [0, 1). The corpus must outlive the result.
SplitText split_text(const Corpus& corpus, double val_fraction, Normalization form = Normalization::none);

/// Decides for one document after the other whether it is for validation, so that a fraction `val_fraction` of the
/// characters is, up to half a document.
class DocumentSplit {
 public:
  /// Throws Error unless val_fraction is in [0, 1).
  explicit DocumentSplit(double val_fraction);
  /// Whether the next document, which has this many characters, is for validation. Never, if val_fraction is 0.
  bool is_validation(std::int64_t characters);

 private:
  double val_fraction_;
  std::int64_t characters_ = 0, validating_ = 0;  // of the documents so far
};

/// The hash of a corpus (Corpus::hash) with this text, these joins and these documents.
std::string corpus_hash(const std::string& text_hash, const std::vector<std::size_t>& joins,
                        const std::vector<std::size_t>& documents);

}  // namespace maki
