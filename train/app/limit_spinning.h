// How long OpenMP's threads spin before they sleep.
#pragma once

namespace maki {

/// Limits the time for which a thread spins at the end of a parallel region: sets GOMP_SPINCOUNT and executes the
/// program again, because libgomp reads the variable when it is loaded. Does neither if the user has chosen how to
/// wait, nor if threads are bound to cores: this thread is bound already, and the new process would see no other core.
/// If the program cannot execute itself, it goes on as it is. May be called before shared libraries are initialised.
/// Built with clang, it sets KMP_BLOCKTIME instead, which libomp reads at the first parallel region; to be called in
/// main() alone.
void limit_spinning(char** argv, char** environment);

}  // namespace maki
