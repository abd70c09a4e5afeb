// A client that writes its requests byte by byte, also those that no other client would send, and a server to talk to.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/small_run.h"

namespace maki::tests {

struct Reply {
  int status = 0;  ///< 0: the connection was closed without an answer
  std::string head, body;
  nlohmann::json json() const { return nlohmann::json::parse(body); }
  /// The data of its server-sent events.
  std::vector<std::string> events() const;
};

/// A connection to a port of this machine. Throws std::runtime_error if it fails.
class Connection {
 public:
  explicit Connection(int port);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// Sends what the server still takes.
  void send(const std::string& bytes) const;
  /// Reads until `end` has been received, or the server closes the connection.
  std::string read_until(const std::string& end) const;
  /// Reads until the server closes the connection.
  Reply reply() const;

 private:
  int socket_ = -1;
};

/// What was received of a server, from the first byte on.
Reply reply_of(const std::string& received);

/// Sends a request, and closes the connection after its answer. `headers` are whole lines that end with "\r\n".
Reply request(int port, const std::string& method, const std::string& path, const std::string& body = "",
              const std::string& headers = "");
/// POST /v1/completions.
Reply complete(int port, const nlohmann::json& body);

/// Runs `maki serve` with a free port as long as `use` runs, which receives the port and what was printed, and then
/// interrupts it. Returns how it ended.
Finished serve(const Arguments& arguments, const std::function<void(int port, const std::string& printed)>& use);

}  // namespace maki::tests
