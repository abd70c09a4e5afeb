// How text from outside is displayed: nothing in it can control the terminal or imitate a line that maki prints.
#include "data/text/printable.h"

#include "data/text/shell_word.h"
#include "tests/catch.h"

using namespace maki;

TEST_CASE("visible characters are unchanged, in every script") {
  for (const char* text :
       {"", "plain", "two words", "back\\slash", "吾輩は猫である。名前はまだ無い。", "Ωé😀", "e\u0301", "█░"}) {
    REQUIRE(printable(text) == text);
  }
}

TEST_CASE("control characters, marks that reorder text and broken UTF-8 are escaped") {
  REQUIRE(printable("a\nb\rc\td") == "a\\nb\\rc\\td");
  REQUIRE(printable("\x1b[2J\x1b]0;title\a") == "\\x1b[2J\\x1b]0;title\\x07");
  REQUIRE(printable(std::string_view("\0\x7f", 2)) == "\\x00\\x7f");
  REQUIRE(printable("\u009b2J") == "\\u009b2J");  // the control sequence introducer as a single character
  REQUIRE(printable("a\u202eb\u2028\u2066") == "a\\u202eb\\u2028\\u2066");
  REQUIRE(printable("caf\xe9") == "caf\\xe9");
  REQUIRE(printable("\xed\xa0\x80猫\xff") == "\\xed\\xa0\\x80猫\\xff");
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
  for (const char c : printable(every_byte)) REQUIRE((c >= ' ' && c < '\x7f'));
}

TEST_CASE("a long text is shortened, never within a character") {
  REQUIRE(shortened("short") == "short");
  REQUIRE(shortened(std::string(80, 'x')) == std::string(80, 'x'));
  REQUIRE(shortened("abcdef", 3) == "abc… (6 bytes)");
  REQUIRE(shortened("猫猫猫", 4) == "猫… (9 bytes)");
}

TEST_CASE("a path can be pasted into a shell, whatever it contains") {
  REQUIRE(shell_word("runs/text-1") == "runs/text-1");
  REQUIRE(shell_word("two words") == "'two words'");
  REQUIRE(shell_word("it's") == "'it'\\''s'");
  REQUIRE(shell_word("") == "''");
  REQUIRE(shell_word("a\nit's\\\x1b") == "$'a\\nit\\'s\\\\\\x1b'");
}
