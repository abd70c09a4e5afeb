// The built-in corpora @stories and @stories-ja: short stories for children, told by a seeded probabilistic grammar
// (data/grammar.h). Their entropy is computed, so the best possible loss is known and training can show its distance
// to it. Written for this project.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace maki {

enum class StoryLanguage { english, japanese };

struct StoryCorpus {
  std::string text;                       ///< UTF-8; every story ends with a blank line
  std::vector<std::size_t> story_starts;  ///< byte offsets, the first is 0
  double entropy_per_char;                ///< nats per character (code point), exact for the grammar
};

/// About `characters` (> 0) characters: whole stories, the first count of them that reaches it. The same bytes always;
/// a longer one begins with the shorter one: story k is a function of (language, k) alone.
StoryCorpus make_stories(StoryLanguage language, std::int64_t characters);

}  // namespace maki
