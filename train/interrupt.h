// SIGINT, SIGTERM and SIGHUP. Where there is nothing to save they end the program at once, whatever it waits for; where
// there is, the first asks it to save and stop, and the second ends it at once.
#pragma once

namespace maki {

/// Ignores SIGPIPE and SIGXFSZ: a write to a reader that went away, or beyond the limit for the size of a file, fails
/// with an error, and an error has a sentence and an exit code. Before anything is written, by main().
void ignore_signals_of_writes();
/// Installs the handlers. Once, by main(). SIGHUP stays ignored where it is already: the program was started by nohup.
void install_interrupt_handlers();

/// While it lives, the first signal only asks: the work in its scope hears of it by interrupted().
class DeferInterrupts {
 public:
  DeferInterrupts();
  ~DeferInterrupts();
  DeferInterrupts(const DeferInterrupts&) = delete;
  DeferInterrupts& operator=(const DeferInterrupts&) = delete;
};

/// The signal that asked for a stop, or 0. Cheap: loops ask it between micro-batches, batches of an evaluation and
/// tokens.
int interrupted();
/// The exit code that goes with it: 129 for SIGHUP, 130 for SIGINT, 143 for SIGTERM.
int interrupt_exit_code();

}  // namespace maki
