// The built-in stories: the grammars are proven unambiguous, so that their entropy is that of the texts; and the
// language mistakes that a reader would notice.
#include "data/builtin/stories.h"

#include <algorithm>
#include <set>

#include "autograd/core/check.h"
#include "data/builtin/stories_text.h"
#include "data/io/hash.h"
#include "tests/catch.h"
#include "tests/data/grammar_reading.h"

namespace maki {
namespace {

struct Language {
  StoryLanguage language;
  std::string_view notation;
  const char* name;
};

const Language kLanguages[] = {{StoryLanguage::english, kStoriesEnglish, "English"},
                               {StoryLanguage::japanese, kStoriesJapanese, "Japanese"}};

std::vector<std::string> stories_of(const StoryCorpus& corpus) {
  std::vector<std::string> stories;
  for (std::size_t k = 0; k < corpus.story_starts.size(); ++k) {
    const std::size_t end = k + 1 < corpus.story_starts.size() ? corpus.story_starts[k + 1] : corpus.text.size();
    stories.push_back(corpus.text.substr(corpus.story_starts[k], end - corpus.story_starts[k]));
  }
  return stories;
}

std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

TEST_CASE("no story can be read in two ways: every draw is determined by the text that follows") {
  for (const Language& language : kLanguages) {
    INFO(language.name);
    const Undecided result = undecided(parse_grammar(language.notation));
    CHECK(result.compared > 15000);
    CHECK(result.pairs == std::vector<std::string>{});
  }
}

TEST_CASE("an exhaustive parser finds one derivation for each story, and their probabilities give the entropy") {
  for (const Language& language : kLanguages) {
    INFO(language.name);
    const Grammar grammar = parse_grammar(language.notation);
    const StoryCorpus corpus = make_stories(language.language, 2'000'000);
    double nats = 0;
    std::size_t once = 0;
    const std::vector<std::string> stories = stories_of(corpus);
    for (const std::string& story : stories) {
      const Readings readings(grammar, std::string_view(story).substr(0, story.size() - 2));
      once += readings.count == 1;
      nats += readings.nats;
    }
    CHECK(stories.size() > 1500);
    CHECK(once == stories.size());
    const double sampled = nats / static_cast<double>(characters_of(corpus.text));
    CHECK(sampled == Approx(corpus.entropy_per_char).epsilon(0.01));
    CHECK(corpus.entropy_per_char > (language.language == StoryLanguage::english ? 0.15 : 0.3));
    CHECK(corpus.entropy_per_char < 0.5);
  }
}

TEST_CASE("the entropy per character counts the blank line that ends each story") {
  for (const Language& language : kLanguages) {
    const GrammarExpectation mean = expectation(parse_grammar(language.notation));
    CHECK(make_stories(language.language, 1).entropy_per_char ==
          Approx(mean.nats / (mean.characters + 2)).epsilon(1e-12));
  }
}

TEST_CASE("stories are whole, end with a blank line, and reach the requested size with the last one") {
  for (const Language& language : kLanguages)
    for (const std::int64_t size : {1, 700, 30'000}) {
      INFO(language.name << ", " << size);
      const StoryCorpus corpus = make_stories(language.language, size);
      REQUIRE(corpus.story_starts.at(0) == 0);
      const std::string_view all_but_last = std::string_view(corpus.text).substr(0, corpus.story_starts.back());
      CHECK(characters_of(corpus.text) >= static_cast<std::size_t>(size));
      CHECK(characters_of(all_but_last) < static_cast<std::size_t>(size));
      for (const std::string& story : stories_of(corpus)) {
        CHECK(story.size() > 300);
        CHECK(story.find("\n\n") == story.size() - 2);
      }
    }
}

TEST_CASE("a longer corpus begins with the shorter one, and its stories differ") {
  for (const Language& language : kLanguages) {
    INFO(language.name);
    const StoryCorpus shorter = make_stories(language.language, 20'000);
    const StoryCorpus longer = make_stories(language.language, 200'000);
    CHECK(longer.text.starts_with(shorter.text));
    CHECK(longer.text.size() > shorter.text.size());
    CHECK(std::equal(shorter.story_starts.begin(), shorter.story_starts.end(), longer.story_starts.begin()));
    CHECK(longer.entropy_per_char == shorter.entropy_per_char);
    const std::vector<std::string> stories = stories_of(longer);
    CHECK(std::set<std::string>(stories.begin(), stories.end()).size() == stories.size());
  }
}

// A run identifies its corpus by these bytes. Rewording a story changes them, which has to be done knowingly, here.
TEST_CASE("the stories are the same bytes on every machine and with every compiler") {
  CHECK(hash128_hex(make_stories(StoryLanguage::english, 2'000'000).text) == "78f3c055ed797627dc929a44199152e1");
  CHECK(hash128_hex(make_stories(StoryLanguage::japanese, 2'000'000).text) == "02296d964780832982d8944748b859f0");
}

/// The occurrences of `slips`, each with the text around it.
std::vector<std::string> found_in(const std::string& text, std::initializer_list<const char*> slips) {
  std::vector<std::string> found;
  for (const char* slip : slips)
    if (const std::size_t at = text.find(slip); at != std::string::npos)
      found.push_back(text.substr(at - std::min<std::size_t>(at, 30), 60));
  return found;
}

TEST_CASE("English stories have correct articles and spaces") {
  const std::string text = make_stories(StoryLanguage::english, 2'000'000).text;
  CHECK(found_in(text, {"  ", " .", " ,", "..", ",,", ".,", ",.", "{", "}", "|", "@", " \n", "\n ", "!.", "?.", "\"\"",
                        " the the ", " a a ", ".\"."}) == std::vector<std::string>{});
  std::set<std::string> wrong_articles;
  std::size_t articles = 0;
  for (const char* article : {" a ", " an ", " A ", " An ", "\"A ", "\"An ", "\nA ", "\nAn "}) {
    const bool before_vowel = std::string(article).find('n', 1) != std::string::npos;
    for (std::size_t at = 0; (at = text.find(article, at)) != std::string::npos; ++at, ++articles) {
      const bool vowel = std::string("aeiou").find(text[at + std::string(article).size()]) != std::string::npos;
      if (vowel != before_vowel) wrong_articles.insert(text.substr(at, 20));
    }
  }
  CHECK(articles > 10'000);
  CHECK(wrong_articles == std::set<std::string>{});
  const std::set<char> characters(text.begin(), text.end());
  CHECK(characters.size() > 50);
  CHECK(std::all_of(characters.begin(), characters.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= 'z'); }));
}

TEST_CASE("Japanese stories are UTF-8 of kana, kanji and Japanese punctuation") {
  const std::string text = make_stories(StoryLanguage::japanese, 2'000'000).text;
  CHECK(found_in(text, {"。。", "、、", "、。", "。、", "」」", "「「", "「」", "。」", "をを", "がが、"}) ==
        std::vector<std::string>{});
  std::set<std::string> kanji, others;
  for (std::size_t at = 0, size = 0; at < text.size(); at += size) {
    size = 1;
    while (at + size < text.size() && (text[at + size] & 0xC0) == 0x80) ++size;
    const std::string character = text.substr(at, size);
    if (character >= "一" && character <= "龯")
      kanji.insert(character);
    else if (character < "ぁ" || character > "ー")
      others.insert(character);
  }
  CHECK(kanji.size() > 500);
  CHECK(others == std::set<std::string>{"\n", "、", "。", "「", "」"});
}

TEST_CASE("a size that is not positive is rejected") {
  CHECK_THROWS_AS(make_stories(StoryLanguage::english, 0), Error);
  CHECK_THROWS_AS(make_stories(StoryLanguage::japanese, -5), Error);
}

}  // namespace
}  // namespace maki
