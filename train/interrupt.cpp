#include "train/interrupt.h"

#include <signal.h>
#include <unistd.h>

namespace maki {
namespace {

volatile sig_atomic_t received = 0, deferred = 0;

void handle(int signal) {
  if (deferred != 0 && received == 0) {
    received = signal;
    return;
  }
  constexpr char kSentence[] = "\nmaki: interrupted\n";
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, kSentence, sizeof kSentence - 1);
  _exit(128 + signal);
}

}  // namespace

void install_interrupt_handlers() {
  struct sigaction action = {};
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // a save in progress is finished, not failed
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of write(), and an error has a sentence
}

DeferInterrupts::DeferInterrupts() { deferred = deferred + 1; }
DeferInterrupts::~DeferInterrupts() { deferred = deferred - 1; }

int interrupted() { return received; }
int interrupt_exit_code() { return 128 + received; }

}  // namespace maki
