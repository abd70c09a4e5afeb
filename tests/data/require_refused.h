// Shared by the tests of data: a check of the message of a CorpusError.
#pragma once

#include <string>
#include <vector>

#include "data/io/error.h"
#include "tests/catch.h"

namespace maki::tests {

/// Requires that `call` throws CorpusError and that the message contains every one of `words`.
template <class Call>
void require_refused(const Call& call, const std::vector<std::string>& words) {
  std::string message;
  try {
    call();
  } catch (const CorpusError& error) {
    message = error.what();
  }
  INFO("message: " << message);
  REQUIRE_FALSE(message.empty());
  for (const std::string& word : words) {
    INFO("looking for: " << word);
    REQUIRE(message.find(word) != std::string::npos);
  }
}

}  // namespace maki::tests
