// What the tests of data share: the sentence of a refusal.
#pragma once

#include <string>
#include <vector>

#include "data/error.h"
#include "tests/catch.h"

namespace maki::tests {

/// `call` throws CorpusError, and its sentence holds every one of `words`.
template <class Call>
void require_refused(const Call& call, const std::vector<std::string>& words) {
  std::string sentence;
  try {
    call();
  } catch (const CorpusError& error) {
    sentence = error.what();
  }
  INFO("sentence: " << sentence);
  REQUIRE_FALSE(sentence.empty());
  for (const std::string& word : words) {
    INFO("looking for: " << word);
    REQUIRE(sentence.find(word) != std::string::npos);
  }
}

}  // namespace maki::tests
