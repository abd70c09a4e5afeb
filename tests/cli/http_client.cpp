#include "tests/cli/http_client.h"

#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace maki::tests {
namespace {

// The bytes of a body that was sent in chunks.
std::string without_chunks(const std::string& sent) {
  std::string body;
  for (std::size_t at = 0; at < sent.size();) {
    const std::size_t size = std::stoul(sent.substr(at), nullptr, 16);
    at = sent.find("\r\n", at) + 2;
    body += sent.substr(at, size);
    at += size + 2;
  }
  return body;
}

}  // namespace

std::vector<std::string> Reply::events() const {
  std::vector<std::string> list;
  for (std::size_t at = body.find("data: "); at != std::string::npos; at = body.find("data: ", at)) {
    const std::size_t end = body.find('\n', at);
    list.push_back(body.substr(at + 6, end - at - 6));
    at = end;
  }
  return list;
}

Connection::Connection(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
  fcntl(socket_, F_SETFD, FD_CLOEXEC);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("cannot connect to the server");
}
Connection::~Connection() { close(socket_); }

void Connection::send(const std::string& bytes) const {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::send(socket_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) return;
    at += static_cast<std::size_t>(n);
  }
}

std::string Connection::read_until(const std::string& end) const {
  std::string received;
  char buffer[4096];
  while (end.empty() || received.find(end) == std::string::npos) {
    const ssize_t n = recv(socket_, buffer, sizeof buffer, 0);
    if (n <= 0) break;
    received.append(buffer, static_cast<std::size_t>(n));
  }
  return received;
}

Reply Connection::reply() const { return reply_of(read_until("")); }

Reply reply_of(const std::string& received) {
  if (!received.starts_with("HTTP/1.1 ")) return {};
  const std::size_t end = received.find("\r\n\r\n");
  Reply reply{std::stoi(received.substr(9)), received.substr(0, end), received.substr(end + 4)};
  if (reply.head.find("Transfer-Encoding: chunked") != std::string::npos) reply.body = without_chunks(reply.body);
  return reply;
}

Reply request(int port, const std::string& method, const std::string& path, const std::string& body,
              const std::string& headers) {
  const Connection connection(port);
  const std::string host = headers.find("Host:") == std::string::npos ? "Host: localhost\r\n" : "";
  const std::string length = body.empty() ? "" : fmt::format("Content-Length: {}\r\n", body.size());
  connection.send(
      fmt::format("{} {} HTTP/1.1\r\n{}{}{}Connection: close\r\n\r\n{}", method, path, host, length, headers, body));
  return connection.reply();
}

Reply complete(int port, const nlohmann::json& body) {
  return request(port, "POST", "/v1/completions", body.dump(), "Content-Type: application/json\r\n");
}

Finished serve(const Arguments& arguments, const std::function<void(int, const std::string&)>& use) {
  const TemporaryFolder folder;
  std::exception_ptr failed;
  RunOptions options;
  options.output_file = folder / "out";
  options.meanwhile = [&](pid_t process) {
    std::string printed;
    for (int i = 0; i < 60'000 && !printed.ends_with('\n'); ++i) {
      usleep(1000);
      printed = text_so_far(options.output_file);
    }
    try {
      use(std::stoi(printed.substr(printed.rfind(':') + 1)), printed);
    } catch (...) {
      failed = std::current_exception();
    }
    kill(process, SIGINT);
  };
  const Finished finished = run_maki(Arguments{"serve"} + arguments + Arguments{"--port", "0"}, options);
  INFO(finished.err);
  if (failed) std::rethrow_exception(failed);
  return finished;
}

}  // namespace maki::tests
