// A process that asks this one about each of its system calls that concern files below a folder, and to which one of
// them fails, or whose last it is. The kernel asks (seccomp(2), SECCOMP_RET_USER_NOTIF), so that no call is missed,
// whichever library makes it.
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

struct seccomp_notif;  // what the kernel asks

namespace maki::tests {

/// A system call that a process is about to make.
struct SystemCall {
  std::string name;           ///< as in "openat"
  std::string path;           ///< of its file, in the folder; "." is the folder
  std::size_t transfers = 0;  ///< bytes that it reads or writes at most

  std::string words() const { return name + "(" + path + ")"; }
};

/// What becomes of a call.
struct CallFault {
  enum class Kind : std::uint8_t {
    none,
    error,     ///< it is not made, and fails with `error`
    one_byte,  ///< it reads or writes only the first byte
    killed     ///< the process ends by SIGKILL before the call
  };
  Kind kind = Kind::none;
  std::size_t at = 0;  ///< the number of the call, from 0
  int error = 0;
};

class Supervisor {
 public:
  Supervisor(std::string folder, const CallFault& fault);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Makes the calling process, which is a child of this one, the one that asks; its questions wait for supervise().
  /// Returns false if the system does not allow it.
  bool submit() const;
  /// Answers the process until it ends: each call is made, but for the one with the fault and fsync(), which succeeds
  /// at once. Returns false if the process could not submit().
  bool supervise(pid_t process);

  /// Called before each call is made, with the process waiting.
  std::function<void(const SystemCall&)> before_call;
  /// The calls that were made, the one with the fault too.
  const std::vector<SystemCall>& calls() const { return calls_; }

 private:
  void answer(const seccomp_notif& asked);

  std::string folder_;
  CallFault fault_;
  int ends_[2] = {-1, -1};  // of the connection over which submit() sends the descriptor of its questions
  int questions_ = -1;
  pid_t process_ = -1;
  std::vector<SystemCall> calls_;
};

}  // namespace maki::tests
