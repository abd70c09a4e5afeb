// The exceptions for what comes from outside, each with an exit code of the program. A plain Error is a usage error,
// which exits with 2.
#pragma once

#include "autograd/core/check.h"

namespace maki {

/// What is to be written would take the place of something that exists already. Exit code 2, as of any Error.
class OccupiedOutput : public Error {
 public:
  using Error::Error;
};

/// Input data is invalid or cannot be read: a corpus, a prompt, a tokenizer. Exit code 3.
class CorpusError : public Error {
 public:
  using Error::Error;
};

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

/// Throws an error with this sentence. What opens files that can be of several kinds is passed one of these: the caller
/// alone knows whether such a file is a corpus or belongs to a run.
using Thrower = void (*)(const std::string& sentence);
template <class E>
[[noreturn]] void throw_as(const std::string& sentence) {
  throw E(sentence);
}

}  // namespace maki
