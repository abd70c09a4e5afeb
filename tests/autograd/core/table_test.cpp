// Tables of kinds.
#include "autograd/core/table.h"

#include "tests/catch.h"

namespace {

struct Kind {
  const char *name, *help;
  int value;
};
constexpr Kind kKinds[] = {{"one", "the first", 1}, {"two", "the second", 2}};
constexpr maki::Table kTable("kind", kKinds);

struct OtherError : maki::Error {
  using Error::Error;
};

template <class E>
std::string said(std::string_view name) {
  try {
    kTable.row<E>(name);
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a table finds rows by name, lists them in order, and says what there is instead of an unknown one") {
  REQUIRE(kTable.row("two").value == 2);
  REQUIRE(kTable.find("three") == nullptr);
  REQUIRE(kTable.names() == std::vector<std::string>{"one", "two"});
  REQUIRE(kTable.help() == "one: the first; two: the second");
  REQUIRE(said<maki::Error>("twoo") == "kind: must be one of one, two; got twoo; the nearest is two");
  REQUIRE(said<OtherError>("") == "kind: must be one of one, two; got ");
  REQUIRE(said<maki::Error>(std::string(100, 'x')).ends_with("got " + std::string(80, 'x') + "… (100 bytes)"));
}

TEST_CASE("a table of pointers has the names of what they point to") {
  static constexpr const Kind* kPointers[] = {&kKinds[1], &kKinds[0]};
  constexpr maki::Table table("kind", kPointers);
  REQUIRE(table.names() == std::vector<std::string>{"two", "one"});
  REQUIRE(table.row("one").value == 1);
}
