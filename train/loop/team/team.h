// A team: the processes that train one model together, its ranks, and the bytes that they send each other. It adds no
// floats: sums are the business of whoever receives the terms, in an order of the program's own
// (autograd/core/sum_tree.h).
//
// There are three kinds: a process alone, threads of one process (local_team.h, for tests) and MPI (mpi_team.h).
//
// Thread safety: a rank uses its team on one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/core/check.h"
#include "data/io/descriptor.h"

namespace maki {

/// A rank has failed, or was not heard of for too long. Exit code 6, or the one of the error of that rank.
class RankError : public Error {
 public:
  explicit RankError(const std::string& sentence, int code = kExitCode) : Error(sentence), exit_code(code) {}
  static constexpr int kExitCode = 6;
  int exit_code;
};

class Team {
 public:
  virtual ~Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Rank 0 decides what all ranks do, and it alone writes files.
  bool leads() const { return rank_ == 0; }
  /// "rank 2 on node17".
  virtual std::string describe(int rank) const;

  /// Tells rank 0 that this one cannot go on, and why, in one sentence: there, RankError is thrown as soon as it waits
  /// for a message. Nothing may be sent afterwards. Returns whether rank 0 tells the user. With MPI, rank 0 then ends
  /// all processes, so that another rank returns only if rank 0 is silent.
  virtual bool announce_failure(int /*exit_code*/, const std::string& /*sentence*/) noexcept { return false; }
  /// Ends the processes of all ranks, where they are processes: for rank 0, or another one if that is silent.
  virtual void end_all(int /*exit_code*/) noexcept {}

 protected:
  Team(int rank, int size);

  using Ticket = std::uint64_t;  ///< names a message under way, as a kind of team likes
  /// Begin to send or receive message `number` from this rank to another, or to this rank. Numbers count the messages
  /// of a pair from 0. The memory must stay until the ticket is finished or abandoned.
  virtual Ticket start_send(int to, std::uint64_t number, Bytes bytes) = 0;
  virtual Ticket start_receive(int from, std::uint64_t number, std::span<std::byte> into) = 0;
  /// Whether the message has been sent or received; the ticket is invalid from then on.
  virtual bool finished(Ticket ticket) = 0;
  /// Gives up a message after an error.
  virtual void abandon(Ticket ticket) noexcept = 0;
  /// What another rank has announced.
  virtual std::optional<RankError> failure() = 0;
  /// How long nothing has come from a rank that this one waits for since `begin`; RankError if that is too long.
  using Clock = std::chrono::steady_clock;
  virtual void require_alive(int rank, Clock::duration waiting) = 0;

 private:
  friend class Messages;
  int rank_, size_;
  std::vector<std::uint64_t> sent_, received_;  // messages so far, per rank
};

/// A process that trains alone.
Team& no_team();

/// Messages that are under way together. Any number of bytes may be sent; who receives them has to know how many.
class Messages {
 public:
  explicit Messages(Team& team) : team_(team) {}
  /// Gives up what is still under way.
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  /// The memory must stay as it is until wait() has returned.
  void send(int to, Bytes bytes);
  void receive(int from, std::span<std::byte> into);
  /// Waits for all. Throws RankError if a rank has failed, or is not heard of for too long.
  void wait();
  /// Whether wait() would return at once. With MPI, messages move only during calls of this and of wait().
  bool arrived();

 private:
  struct Pending {
    Team::Ticket ticket;
    int rank;
  };

  Team& team_;
  std::vector<Pending> pending_;
};

/// Bounds of parts: part r is [bounds[r], bounds[r + 1]).
using Bounds = std::vector<std::int64_t>;
/// The bounds of `parts` consecutive parts of [0, n) whose sizes differ by at most one.
Bounds even_bounds(std::int64_t n, int parts);

/// Every rank has part `rank` of `all`, and gets the others; bounds are in bytes.
void gather_all(Team& team, std::span<std::byte> all, const Bounds& bounds);
/// The texts of all ranks, by rank.
std::vector<std::string> gather_all(Team& team, const std::string& own);
/// Gives all ranks the bytes of rank 0.
void broadcast(Team& team, std::span<std::byte> bytes);
void broadcast(Team& team, std::string& text);

/// Whether all ranks go on: false if one was asked to stop. If one has failed, throws CorpusError on all of them, with
/// the sentence of the first.
bool all_go_on(Team& team, bool stops, const std::optional<std::string>& failed);

/// The bytes of some numbers or of a plain struct.
template <class T>
std::span<std::byte> raw_bytes(T& x) {
  if constexpr (requires { x.data(); }) {
    return std::as_writable_bytes(std::span(x.data(), x.size()));
  } else {
    static_assert(std::is_trivially_copyable_v<T>);
    return std::as_writable_bytes(std::span(&x, 1));
  }
}

}  // namespace maki
