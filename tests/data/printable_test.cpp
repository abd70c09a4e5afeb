// How text from outside is displayed: nothing in it can control the terminal or imitate a line that maki prints.
#include "data/io/printable.h"

#include "autograd/core/check.h"
#include "data/io/shell_quote.h"
#include "tests/catch.h"

using namespace maki;

TEST_CASE("visible characters are unchanged, in every script") {
  for (const char* text :
       {"", "plain", "two words", "back\\slash", "吾輩は猫である。名前はまだ無い。", "Ωé😀", "e\u0301", "█░"}) {
    REQUIRE(escape_unprintable(text) == text);
  }
}

TEST_CASE("control characters, marks that reorder text and broken UTF-8 are escaped") {
  REQUIRE(escape_unprintable("a\nb\rc\td") == "a\\nb\\rc\\td");
  REQUIRE(escape_unprintable("\x1b[2J\x1b]0;title\a") == "\\x1b[2J\\x1b]0;title\\x07");
  REQUIRE(escape_unprintable(std::string_view("\0\x7f", 2)) == "\\x00\\x7f");
  REQUIRE(escape_unprintable("\u009b2J") == "\\u009b2J");  // the control sequence introducer as a single character
  REQUIRE(escape_unprintable("a\u202eb\u2028\u2066") == "a\\u202eb\\u2028\\u2066");
  REQUIRE(escape_unprintable("a\u200bb\ufeff") == "a\\u200bb\\ufeff");  // spaces without a width
  REQUIRE(escape_unprintable("caf\xe9") == "caf\\xe9");
  REQUIRE(escape_unprintable("\xed\xa0\x80猫\xff") == "\\xed\\xa0\\x80猫\\xff");
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
  for (const char c : escape_unprintable(every_byte)) REQUIRE((c >= ' ' && c < '\x7f'));
}

TEST_CASE("a long text is shortened, never within a character") {
  REQUIRE(truncate_for_message("short") == "short");
  REQUIRE(truncate_for_message(std::string(80, 'x')) == std::string(80, 'x'));
  REQUIRE(truncate_for_message("abcdef", 3) == "abc… (6 bytes)");
  REQUIRE(truncate_for_message("猫猫猫", 4) == "猫… (9 bytes)");
}

TEST_CASE("a path can be pasted into a shell, whatever it contains") {
  REQUIRE(shell_quote("runs/text-1") == "runs/text-1");
  REQUIRE(shell_quote("two words") == "'two words'");
  REQUIRE(shell_quote("it's") == "'it'\\''s'");
  REQUIRE(shell_quote("") == "''");
  REQUIRE(shell_quote("a\nit's\\\x1b") == "$'a\\nit\\'s\\\\\\x1b'");
  REQUIRE(shell_quote("-force") == "./-force");
  REQUIRE(shell_quote("--two words") == "'./--two words'");
  REQUIRE(shell_quote("-\n") == "$'./-\\n'");
  REQUIRE(shell_quote("-") == "-");
  REQUIRE(shell_quote("a-b") == "a-b");
}
