#include "train/app/interrupt.h"

#include <atomic>
#include <signal.h>
#include <unistd.h>

#include "data/io/temporary.h"

namespace maki {
namespace {

// Two signals may be handled by two threads at the same time, of which one must be the first. A handler may use atomics
// that have no lock.
std::atomic<int> received = 0;
static_assert(std::atomic<int>::is_always_lock_free);
volatile sig_atomic_t deferring = 0, telling = 1;
void (*volatile restore_before_exit)() = nullptr;

void handle(int signal) {
  int none = 0;
  if (deferring != 0 && received.compare_exchange_strong(none, signal)) return;
  if (restore_before_exit != nullptr) restore_before_exit();
  remove_temporaries();
  constexpr char kSentence[] = "\nmaki: interrupted\n";
  const std::size_t length = telling != 0 ? sizeof kSentence - 1 : 0;
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, kSentence, length);
  _exit(128 + signal);
}

}  // namespace

void ignore_signals_of_writes() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

void install_interrupt_handlers(bool tells) {
  telling = tells ? 1 : 0;
  struct sigaction action = {};
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // system calls of a save in progress are restarted and do not fail
  struct sigaction hangup = {};
  const bool ignored = sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
  if (!ignored) sigaction(SIGHUP, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

DeferInterrupts::DeferInterrupts() { deferring = deferring + 1; }
DeferInterrupts::~DeferInterrupts() { deferring = deferring - 1; }

void restore_at_interrupt(void (*restore)()) { restore_before_exit = restore; }

int interrupted() { return received; }
StopRequest interrupt_request() {
  return [] { return received != 0; };
}
void forget_interrupt() { received = 0; }
int interrupt_exit_code() { return 128 + received; }

}  // namespace maki
