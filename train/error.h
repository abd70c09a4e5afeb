// The errors that have an exit code of their own. A plain Error is a usage mistake (2), a CorpusError is 3.
#pragma once

#include "autograd/core/check.h"

namespace maki {

/// A checkpoint or another file of a run that cannot be read or written; a full disk too. Exit code 4.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

/// Loss or gradient is not finite. Exit code 5.
class Diverged : public Error {
 public:
  using Error::Error;
};

}  // namespace maki
