// The calls of an MPI library that a team needs, as plain functions: the table that the module mpi_module.cpp exports.
// The program loads the module only in a process that a launcher has started, so it neither needs an MPI library nor
// starts more slowly where there is one. No call waits.
#pragma once

#include <cstdint>

namespace maki {

struct MpiCalls {
  /// Begins; returns null, or why that failed. Calls of other threads must not run at the same time.
  const char* (*begin)();
  int (*rank)();
  int (*size)();
  const char* (*host)();     ///< of this process
  const char* (*library)();  ///< name and version
  /// Begin to send or receive at most 2^30 bytes. Return a ticket, at least 0; negative if the library reports an
  /// error.
  std::int64_t (*send)(int to, int tag, const void* bytes, int count);
  std::int64_t (*receive)(int from, int tag, void* into, int count);
  /// 1: finished, and the ticket is invalid from then on; 0: not yet; negative: an error.
  int (*finished)(std::int64_t ticket);
  void (*abandon)(std::int64_t ticket);
  /// Receives a message with this tag from anybody, if there is one: its length, at most `most`, else -1.
  int (*poll)(int tag, int* from, void* into, int most);
  void (*abort)(int exit_code);  ///< ends all processes
  void (*end)();
};

/// The name of the table in the module: `extern "C" const MpiCalls maki_mpi_calls`.
inline constexpr const char* kMpiCalls = "maki_mpi_calls";
/// The tags of messages between ranks are below this, because MPI promises no more than 32767 of them.
inline constexpr int kMpiTags = 1 << 14;

}  // namespace maki
