// Error types with an exit code of their own. A plain Error is a usage error (exit code 2), a CorpusError exits with 3.
#pragma once

#include "autograd/core/check.h"

namespace maki {

/// A checkpoint or another file of a run cannot be read or written, for example because the disk is full. Exit code 4.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

/// The contents of a file are definitely lost: it is missing, or it was read and is not what maki wrote (its size, a
/// checksum or its structure is wrong). Another checkpoint may be used in its place. A file that merely could not be
/// read (EIO, EACCES, EMFILE, …) may be intact: that is a plain CheckpointError, no other checkpoint is used in its
/// place, and it is neither overwritten nor deleted.
class CorruptFile : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

/// The loss, the gradient or the state of a run is not finite. Exit code 5.
class DivergedError : public Error {
 public:
  using Error::Error;
};

}  // namespace maki
