// The scopes that decide whether ops called on this thread are recorded (Recording), and whether they round as if they
// were (AsRecorded).
//
// Thread safety: both scopes apply to the thread that created them and must be destroyed on it, in the opposite order.
#pragma once

#include <cstdint>

namespace maki {

class Tape;

/// Determines, together with the number of random ops called before it, what a random op of a recording draws. The
/// count starts at 0 when a recording begins on an empty tape; a recording that appends to a tape continues it.
struct RandomContext {
  std::uint64_t seed = 0, step = 0, micro_batch = 0;
};

/// While it exists, ops called on this thread are recorded on `tape`. Recordings may be nested; the innermost one
/// applies. If an exception ends its scope, everything recorded on the tape is removed, also by outer Recordings, so
/// that nothing of a failed step stays in memory; the gradients of tensors watched in an earlier step are kept.
///
/// Requires: the tape outlives the Recording. Throws Error if the tape is running backward.
class Recording {
 public:
  /// Uses a context whose `step` is the number of recordings begun this way on this tape before it, and whose other
  /// members are 0, so that each draws different random numbers. A run that must continue exactly after a restart
  /// passes its own context instead.
  explicit Recording(Tape& tape);
  /// Uses the given context; the same context on an empty tape gives the same dropout masks.
  Recording(Tape& tape, const RandomContext& random);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Tape& tape_;
  Tape* const previous_;
  RandomContext outer_random_;
  const int exceptions_;  // in flight when the scope began
};

/// While it exists, ops called on this thread round as they do in a Recording, although nothing is recorded: an
/// evaluation computes the same loss as training, at the same speed. Only products make a difference, and not on every
/// CPU: those with AMX, see docs/design.md. Without Recording and AsRecorded, they use the algorithm of all CPUs, which
/// is as fast for the few rows of generation.
class AsRecorded {
 public:
  AsRecorded();
  ~AsRecorded();
  AsRecorded(const AsRecorded&) = delete;
  AsRecorded& operator=(const AsRecorded&) = delete;

 private:
  bool before_;
};

/// Whether a Recording or an AsRecorded exists on this thread.
bool rounds_as_recorded();

}  // namespace maki
