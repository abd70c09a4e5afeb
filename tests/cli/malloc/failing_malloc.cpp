// Preloaded into the maki binary: malloc(), and with it operator new, fails for good after the number of calls in
// MAKI_TEST_MALLOCS, counted from the first lines of main() on.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>

namespace {

std::atomic<bool> counting = false;
std::atomic<long> left = 0;

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t size);

void* malloc(std::size_t size) {
  if (!counting || left.fetch_sub(1) > 0) return __libc_malloc(size);
  errno = ENOMEM;
  return nullptr;
}

// main() begins with it.
sighandler_t signal(int number, sighandler_t handler) noexcept {
  static const auto original = reinterpret_cast<sighandler_t (*)(int, sighandler_t)>(dlsym(RTLD_NEXT, "signal"));
  const sighandler_t before = original(number, handler);
  if (const char* const calls = getenv("MAKI_TEST_MALLOCS"); calls != nullptr && number == SIGXFSZ) {
    left = std::atol(calls);
    counting = true;
  }
  return before;
}
}
