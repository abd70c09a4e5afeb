// SIGINT and SIGTERM: the first asks the program to save and stop, the second ends it at once.
#pragma once

namespace maki {

/// Installs the handlers. Once, by main().
void install_interrupt_handlers();
/// The signal that asked for a stop, or 0. Cheap: loops ask it between micro-batches, batches of an evaluation and
/// tokens.
int interrupted();
/// The exit code that goes with it: 130 for SIGINT, 143 for SIGTERM.
int interrupt_exit_code();

}  // namespace maki
