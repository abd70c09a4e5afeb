#include "data/builtin/stories.h"

#include "autograd/core/check.h"
#include "autograd/core/philox.h"
#include "data/builtin/grammar.h"
#include "data/builtin/stories_text.h"

namespace maki {
namespace {

constexpr std::uint64_t kStorySeed = 0x6d616b69;  // "maki" in ASCII; another seed would change the built-in corpora
constexpr std::string_view kStoryEnd = "\n\n";    // ends every story; no story contains it

}  // namespace

StoryCorpus make_stories(StoryLanguage language, std::int64_t characters) {
  check(characters > 0, "stories: the number of characters must be positive; got {}", characters);
  const Grammar grammar = parse_grammar(language == StoryLanguage::english ? kStoriesEnglish : kStoriesJapanese);
  const GrammarExpectation mean = expectation(grammar);
  StoryCorpus corpus{{}, {}, mean.nats / (mean.characters + static_cast<double>(kStoryEnd.size()))};
  for (std::size_t told = 0; told < static_cast<std::size_t>(characters);) {
    const std::uint64_t story = corpus.story_starts.size();
    corpus.story_starts.push_back(corpus.text.size());
    const RandomStream stream(kStorySeed, RandomPurpose::stories, static_cast<std::uint64_t>(language), story);
    told += derive_text(grammar, stream, corpus.text) + kStoryEnd.size();
    corpus.text += kStoryEnd;
  }
  return corpus;
}

}  // namespace maki
