// The errors that have an exit code of their own. A plain Error is a usage mistake (2), a CorpusError is 3.
#pragma once

#include "autograd/core/check.h"

namespace maki {

/// A checkpoint or another file of a run that cannot be read or written; a full disk too. Exit code 4.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

/// A file whose contents are proven lost: it is missing, or it was read and is not what maki wrote (its size, a hash,
/// its structure). Another checkpoint may take its place. A file that merely could not be read (EIO, EACCES, EMFILE …)
/// may be intact; it is a plain CheckpointError, nothing takes its place, and it is neither overwritten nor deleted.
class LostFile : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

/// Loss or gradient is not finite. Exit code 5.
class Diverged : public Error {
 public:
  using Error::Error;
};

}  // namespace maki
