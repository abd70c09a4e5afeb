// The exception for input data that is invalid or cannot be read: corpora, prompts, tokenizers.
#pragma once

#include "autograd/core/check.h"

namespace maki {

class CorpusError : public Error {
 public:
  using Error::Error;
};

}  // namespace maki
