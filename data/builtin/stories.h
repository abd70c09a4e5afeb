// The built-in corpora @stories and @stories-ja: short stories for children, generated from a probabilistic grammar
// (data/builtin/grammar.h) with a fixed seed. Their exact entropy is known, so training can show how far the loss is
// from the best possible one. The grammars were written for this project.
//
// Thread safety: all functions may be called on several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace maki {

/// The values are a part of the seed: with others, the stories would change.
enum class StoryLanguage { english, japanese };

struct StoryCorpus {
  std::string text;                       ///< UTF-8; every story ends with a blank line
  std::vector<std::size_t> story_starts;  ///< byte offsets, the first is 0
  double entropy_per_char;                ///< nats per character (code point); exact for the grammar
};

/// Whole stories, as many as are needed for at least `characters` characters. Story k depends on (language, k) alone,
/// so the text is always the same and a shorter one is a prefix of a longer one. Throws Error unless characters > 0.
StoryCorpus make_stories(StoryLanguage language, std::int64_t characters);

}  // namespace maki
