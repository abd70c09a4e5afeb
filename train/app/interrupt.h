// Handling of SIGINT, SIGTERM and SIGHUP. While there is nothing to save, a signal ends the program at once, whatever
// it is waiting for. While there is (see DeferInterrupts), the first signal asks the program to save and stop, and the
// second ends it at once. "At once" is without destructors and without flushing stdout, with exit code 128 + signal;
// files under construction are removed (data/io/temporary.h).
#pragma once

#include "autograd/core/stop_request.h"

namespace maki {

/// Ignores SIGPIPE and SIGXFSZ, so that writing to a closed pipe or beyond the file size limit returns an error, which
/// leads to a message and an exit code. Called by main() before anything is written.
void ignore_signals_of_writes();
/// Installs the handlers. Called once, by main(). If SIGHUP is ignored already (under nohup), it stays ignored. Unless
/// this process `tells`, it says nothing when a signal ends it.
void install_interrupt_handlers(bool tells = true);

/// While an object of this class exists, the first signal only requests a stop, which interrupted() reports. Objects
/// may be nested. A read that waits for input goes on waiting after that signal.
class DeferInterrupts {
 public:
  DeferInterrupts();
  ~DeferInterrupts();
  DeferInterrupts(const DeferInterrupts&) = delete;
  DeferInterrupts& operator=(const DeferInterrupts&) = delete;
};

/// Calls `restore` before a signal ends the program: a function that may be called from a signal handler, or null.
void restore_at_interrupt(void (*restore)());

/// The signal that requested a stop, or 0. The request outlives the DeferInterrupts object. Cheap enough to be called
/// between micro-batches, evaluation batches and tokens.
int interrupted();
/// Requested while interrupted() is not 0.
StopRequest interrupt_request();
/// Withdraws the request, after which the next signal is again the first.
void forget_interrupt();
/// The exit code for that signal: 129 for SIGHUP, 130 for SIGINT, 143 for SIGTERM. Requires: interrupted() is not 0.
int interrupt_exit_code();

}  // namespace maki
