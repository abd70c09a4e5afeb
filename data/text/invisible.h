// What is invisible in an editor, but not to a model: byte-order marks and the line ends of Windows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace maki {

class InvisibleCharacters {
 public:
  /// Begins the text of a file: to be called before the first part of each.
  void begin_text();
  /// The next part of the text, in whole characters.
  void add(std::string_view part);
  /// Appends messages for a user about what was found, if anything was. `lines`: the text is read line by line, without
  /// line ends (CorpusOptions::lines), so there is nothing to say about these. `encoding`: that of the files, empty for
  /// UTF-8.
  void describe(std::vector<std::string>& notes, bool lines = false, const std::string& encoding = "") const;

 private:
  std::int64_t texts_ = 0, marks_ = 0, ends_ = 0;
  bool at_start_ = true, after_cr_ = false;
};

}  // namespace maki
