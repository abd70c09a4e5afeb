// The exception for invalid input data: corpora, prompts, tokenizers.
#pragma once

#include "autograd/core/check.h"

namespace maki {

class CorpusError : public Error {
 public:
  using Error::Error;
};

}  // namespace maki
