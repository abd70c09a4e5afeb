// maki serve RUN|DIR [--port P] [--host ADDRESS] [--token T] [--threads N]: a page in the browser, and an interface for
// programs, for runs that train or have trained.
#include <chrono>
#include <memory>
#include <thread>

#include "autograd/core/parallel.h"
#include "data/io/system_random.h"
#include "train/app/flags.h"
#include "train/app/interrupt.h"
#include "train/app/progress.h"
#include "train/app/reading.h"
#include "train/app/report.h"
#include "train/app/serve/routes.h"
#include "train/app/verbs.h"

namespace maki {
namespace {

constexpr std::int64_t kServePort = 8270, kMaxPort = 65535;
constexpr std::chrono::milliseconds kTick{250};
constexpr std::size_t kMinTokenBytes = 8, kMaxTokenBytes = 256;

struct ServeOptions {
  std::string path, token, address = "127.0.0.1", weights = kTrainedWeights;
  std::int64_t port = kServePort, threads = 0;
};

// 128 bits from the system.
std::string new_token() { return fmt::format("{:016x}{:016x}", system_random(), system_random()); }

void check_token(const std::string& token) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  check(token.size() >= kMinTokenBytes && token.size() <= kMaxTokenBytes &&
            token.find_first_not_of(kAllowed) == std::string::npos,
        "token: must be {} to {} letters, digits, and - . _ ~; got {}", kMinTokenBytes, kMaxTokenBytes,
        truncate_for_message(token));
}

int serve(ServeOptions o) {
  if (o.address == "localhost") o.address = "127.0.0.1";
  if (!o.token.empty()) check_token(o.token);
  const bool is_loopback = o.address.starts_with("127.") || o.address == "::1";
  if (o.token.empty() && !is_loopback) o.token = new_token();
  if (o.threads != 0) set_threads(o.threads);
  const DeferInterrupts deferred;
  Served served(o.path, parse_weights(o.weights));
  HttpServer server({o.address, o.port, o.token}, routes(served));
  print_result(server.url() + (o.token.empty() ? "" : "#token=" + o.token) + "\n");
  flush_results();
  if (!o.token.empty()) to_stderr("programs send the header Authorization: Bearer {}\n", o.token);
  if (server.listens_on_all())
    to_stderr("other machines need a numeric address of this one instead of {}; its name is refused\n", o.address);
  to_stderr("Ctrl-C ends the server\n");
  while (interrupted() == 0) {
    std::this_thread::sleep_for(kTick);
    served.events.follow();
    server.keep_time();
  }
  return 0;
}

}  // namespace

void add_serve(const Command& command) {
  const auto o = std::make_shared<ServeOptions>();
  command.add_argument("RUN", o->path, "run directory, or a directory that contains some").require();
  command.add_number("--port", o->port, 0, kMaxPort, "port to listen on; 0: one that is free");
  command.add_option("--host", o->address, "ADDRESS",
                     "numeric address to listen on; any that other machines reach needs a token [127.0.0.1]");
  command.add_option(
      "--token", o->token, "TEXT",
      "secret that requests must present [none on this machine's own addresses, else a new one, which is "
      "printed]");
  add_weights_option(command, o->weights);
  add_threads_option(command, o->threads);
  command.set_action([o] { return serve(*o); });
}

}  // namespace maki
