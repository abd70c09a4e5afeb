// Documents in files: texts that do not continue each other, such as stories or articles.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace maki {

/// What a document is. By default it does not matter: files are pieces of one text.
struct DocumentOptions {
  bool files = false;  ///< every file is a document
  /// A line, without its end, that stands between two documents of a file. Spaces and tabs at its end do not matter,
  /// nor does a byte-order mark before it.
  std::string separator = {};
  std::string json_field = {};  ///< files are JSON lines: objects that have the text of a document in this field

  bool any() const { return files || !separator.empty() || !json_field.empty(); }
  /// Throws Error if the options contradict each other, or if the separator is not a line.
  void check_valid() const;
};

/// Finds the documents of one file, whose text arrives in blocks.
class DocumentReader {
 public:
  /// Receives text of the current document, possibly none: documents may be empty, such as one after a separator that
  /// ends its file.
  using TextSink = std::function<void(std::string_view)>;

  /// `name` is that of the file, for messages. `end` is called at the end of every document.
  DocumentReader(const DocumentOptions& options, std::string name, TextSink text, std::function<void()> end);
  /// Reads a block of well-formed UTF-8, which may end anywhere. Lines end with LF or CRLF; of lines of JSON, those
  /// with nothing but spaces and tabs are skipped. Throws CorpusError, naming the line, for a line that is not a JSON
  /// object with the field.
  void push(std::string_view block);
  /// Must be called after the last block; ends the last document. Throws as push() does.
  void finish();
  /// How many lines were separators so far.
  std::int64_t separators() const { return separators_; }

 private:
  void push_lines(std::string_view block);
  void take_line(std::string_view line);  // with its end, if it has one
  bool may_separate(std::string_view beginning) const;
  bool is_separator(std::string_view words) const;  // of a line without its end

  DocumentOptions options_;
  std::string separator_;  // without blanks at its end, unless it consists of them
  std::string name_;
  TextSink text_;
  std::function<void()> end_;
  std::string pending_;  // the beginning of a line
  bool inside_ = false;  // the current line has begun and is no separator
  std::int64_t lines_ = 0, separators_ = 0;
};

/// Appends a message for a user if the options have a separator, but no line of a corpus was one.
void note_on_separators(const DocumentOptions& options, std::int64_t separators, std::vector<std::string>& notes);

/// The text in a field of a line of JSON; fields of objects inside the object do not count. Throws CorpusError unless
/// the line is an object that has this field once, as a string, and is nested at most 1,000 times; and for valid JSON
/// that has a number beyond 10^4932 or half of a surrogate pair (the escape ud83d alone), which is no character. The
/// message says what is wrong ("is not JSON: …"); the caller puts the name of the line before it.
std::string json_text_field(std::string_view line, const std::string& field);

}  // namespace maki
