// Directories as corpora: which files are read, in which order, and how the others are reported.
#include "data/text/directory.h"

#include <sys/stat.h>

#include "data/text/corpus.h"
#include "data/text/glob.h"
#include "tests/data/process_scopes.h"
#include "tests/data/require_refused.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;
namespace fs = std::filesystem;

TEST_CASE("a directory: every file below it, in the order of path bytes, except hidden ones, without link loops") {
  const TemporaryFolder folder;
  folder.write("b/2", "4");
  folder.write("b.txt", "3");  // '.' sorts before '/'
  folder.write("B", "1");
  folder.write("a/deep/er", "2");
  folder.write("猫", "5");
  folder.write(".hidden", "x");
  folder.write(".git/config", "x");
  fs::create_directory(folder / "empty");
  const TemporaryFolder elsewhere;
  fs::create_symlink(elsewhere.write("linked", "6"), folder / "𠮷");  // a link to a file is read
  fs::create_directory_symlink(folder.path(), folder / "a/loop");
  fs::create_symlink(folder / "self", folder / "self");
  fs::create_symlink(folder / "nowhere", folder / "dangling");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);  // reading it would wait forever
  const Corpus corpus = load_corpus({folder.path()});
  REQUIRE(corpus.text == "123456");
  REQUIRE(corpus.joins.size() == 5);
  REQUIRE(corpus.notes ==
          std::vector<std::string>{folder.path() + ": 6 files are read; skipped: 2 hidden, 3 links, 1 pipe or device"});
  REQUIRE(load_corpus({folder.path() + "/"}).text == "123456");
  fs::create_directory_symlink(folder.path(), elsewhere / "given");
  REQUIRE(load_corpus({elsewhere / "given"}).text == "123456");  // a link given as a source is followed
  REQUIRE(load_corpus({folder / "a", folder / "B"}).text == "21");
  require_refused([&] { load_corpus({folder / "empty"}); }, {folder / "empty", "no text files"});
  folder.write("a/bad", "ok\xFF");
  require_refused([&] { load_corpus({folder.path()}); }, {folder / "a/bad", "byte 2 "});
}

TEST_CASE("files that are not text are skipped and counted: binary, compressed, runs") {
  const TemporaryFolder folder;
  folder.write("text.txt", "吾輩は猫である。");
  folder.write("image.png", std::string("\x89PNG\r\n\x1A\n\0\0\0\rIHDR", 16));
  folder.write("paper.pdf", "%PDF-1.7 and so on");
  folder.write("a.gz", "\x1F\x8B\x08 and so on");
  folder.write("b.bz2", "BZh91AY&SY and so on");
  folder.write("c.xz", std::string("\xFD\x37zXZ\0 and so on", 16));
  folder.write("runs/x-1/checkpoints/step-00000020.maki", "weights");
  folder.write("trial/config.toml", "n_layer = 4");
  folder.write("trial/checkpoints/step-00000010.maki", "weights");
  folder.write("checkpoints/notes.txt", "!");  // not a directory of a run
  const Corpus corpus = load_corpus({folder.path()});
  REQUIRE(corpus.text == "!吾輩は猫である。");
  REQUIRE(corpus.notes.size() == 1);
  REQUIRE(corpus.notes[0] ==
          folder.path() + ": 2 files are read; skipped: 2 binary, 3 compressed, 2 directories of runs");
  require_refused([&] { load_corpus({folder / "runs"}); }, {"no text files"});
  // Where text may have zero bytes, binary files are known by how they begin; a saved tokenizer is no text.
  folder.write("utf16/a.txt", std::string("a\0b\0", 4));
  folder.write("utf16/image.png", std::string("\x89PNG\r\n\x1A\n\0\0\0\rIHDR", 16));
  folder.write("utf16/tokens/maki-tokenizer", "maki bpe tokenizer 1\n");
  folder.write("utf16/model.gguf.maki-tokenizer", "maki bpe tokenizer 1\n");
  CorpusOptions utf16;
  utf16.encoding = "UTF-16LE";
  const Corpus decoded = load_corpus({folder / "utf16"}, utf16);
  REQUIRE(decoded.text == "ab");
  REQUIRE(decoded.notes.at(0) == folder / "utf16" + ": 1 file is read; skipped: 1 binary, 2 tokenizers");
}

TEST_CASE("patterns select files by name, or by path if they contain a slash") {
  const TemporaryFolder folder;
  folder.write("a.txt", "1");
  folder.write("b.md", "2");
  folder.write("drafts/c.txt", "3");
  folder.write("猫/猫一.txt", "4");
  const auto text = [&](const std::vector<std::string>& include, const std::vector<std::string>& exclude) {
    return load_corpus({folder.path()}, {.include = include, .exclude = exclude}).text;
  };
  REQUIRE(text({}, {}) == "1234");
  REQUIRE(text({"*.txt"}, {}) == "134");
  REQUIRE(text({"*.txt", "*.md"}, {"drafts"}) == "124");
  REQUIRE(text({"drafts/*"}, {}) == "3");
  REQUIRE(text({"猫?.txt"}, {}) == "4");
  REQUIRE(text({}, {"*/*"}) == "12");
  for (const std::string pattern :
       {"drafts", "drafts/", "drafts//", "./drafts", "./drafts/", ".//drafts/.", "./*/../drafts"})
    REQUIRE(text({}, {pattern}) == "124");
  REQUIRE(text({"./a.txt"}, {}) == "1");
  REQUIRE(text({"./drafts//c.txt"}, {}) == "3");
  REQUIRE(text({"./c.txt", "b.md"}, {}) == "2");  // a path, and not a name below any folder
  REQUIRE(load_corpus({folder.path()}, {.exclude = {"drafts", "*.md"}}).notes.at(0).ends_with("skipped: 2 excluded"));
  require_refused([&] { text({"*.tex"}, {}); }, {"no text files", "4 excluded", "or other patterns"});
  // A file that was named is read whatever the patterns say.
  REQUIRE(load_corpus({folder / "b.md", folder / "drafts"}, {.include = {"*.txt"}}).text == "23");
  REQUIRE(load_corpus({folder / "b.md"}, {.include = {"*.txt"}}).text == "2");
  REQUIRE_THROWS_WITH(load_corpus({"@stories:10"}, {.encoding = "EUC-JP"}),
                      ContainsSubstring("built-in corpora need none"));
}

TEST_CASE("a pattern that matches nothing is named, unless it does so in another directory") {
  const TemporaryFolder folder;
  folder.write("ex/a.txt", "1");
  folder.write("ex/drafts/b.txt", "2");
  folder.write("ex/.git/c", "3");
  folder.write("other/d.md", "4");
  folder.write("other/e.txt", "5");
  const auto idle = [&](const std::vector<std::string>& names, const std::vector<std::string>& exclude) {
    std::vector<std::string> sources, found;
    for (const std::string& name : names) sources.push_back(folder / name);
    for (const std::string& note : load_corpus(sources, {.exclude = exclude}).notes) {
      if (note.starts_with("`exclude` ")) found.push_back(note.substr(10, note.find(':') - 10));
    }
    return found;
  };
  using Names = std::vector<std::string>;
  REQUIRE(idle({"ex"}, {"ex/drafts", "drafts/", "b.txt"}) == Names{"ex/drafts", "b.txt"});
  REQUIRE(idle({"ex"}, {"drafts", "dr*", ".git"}).empty());
  REQUIRE(idle({"ex"}, {"*.md"}) == Names{"*.md"});
  REQUIRE(idle({"ex", "other"}, {"*.md", "*.rst"}) == Names{"*.rst"});
  REQUIRE(idle({"other", "ex"}, {"*.md", "drafts"}).empty());
  REQUIRE(idle({"ex/a.txt"}, {"*.md"}).empty());  // patterns are for directories
  const Corpus some = load_corpus({folder / "other"}, {.include = {"*.txt", "*.rst"}});
  REQUIRE(some.text == "5");
  REQUIRE_THAT(some.notes.back(), ContainsSubstring("`include` *.rst: matches nothing; name a file, or write"));
}

TEST_CASE("globs") {
  struct Case {
    const char *pattern, *name;
    bool matches;
  };
  for (const Case& c : {Case{"", "", true}, Case{"*", "", true}, Case{"", "a", false}, Case{"a*c", "abbc", true},
                        Case{"a*c", "abb", false}, Case{"*a*b*", "xxaxxbxx", true}, Case{"*ab", "aab", true},
                        Case{"?", "猫", true}, Case{"??", "猫", false}, Case{"[a-c]x", "bx", true},
                        Case{"[!a-c]x", "bx", false}, Case{"[]a]", "]", true}, Case{"[ぁ-ん]*", "ねこ", true},
                        Case{"[ぁ-ん]*", "猫", false}, Case{"[ab", "[ab", true}, Case{"a.txt", "axtxt", false}}) {
    INFO(c.pattern << " and " << c.name);
    REQUIRE(matches_glob(c.pattern, c.name) == c.matches);
  }
  REQUIRE_FALSE(matches_glob("*a*a*a*a*a*a*a*a*a*b", std::string(2000, 'a')));  // must not take exponential time
}

TEST_CASE("a directory that contains one that cannot be listed is rejected, and the error names that one") {
  const TemporaryFolder folder;
  folder.write("a", "x");
  folder.write("closed/b", "y");
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(folder / "closed", fs::perms::none);
  {
    const DroppedPrivileges nobody;
    require_refused([&] { load_corpus({folder.path()}); }, {folder / "closed" + ": cannot", "Permission denied"});
  }
  fs::permissions(folder / "closed", fs::perms::all);
  fs::create_directory(folder / "closed/checkpoints");
  fs::permissions(folder / "closed/checkpoints", fs::perms::none);
  {
    const DroppedPrivileges nobody;
    require_refused([&] { load_corpus({folder.path()}); }, {folder / "closed/checkpoints" + ": cannot"});
  }
  fs::permissions(folder / "closed/checkpoints", fs::perms::all);
  REQUIRE(load_corpus({folder.path()}).text == "xy");
}
