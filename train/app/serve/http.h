// A small HTTP/1.1 server: one thread that polls, limits on everything that clients send, and answers that may come
// later and from another thread. It knows nothing of models and runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "autograd/core/check.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace maki {

/// A request is refused: an HTTP status of 4xx or 5xx, and a sentence.
class HttpError : public Error {
 public:
  HttpError(int status, const std::string& sentence) : Error(sentence), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};
/// The body of such an answer: {"error":{"message","type","param":null,"code":null}}.
std::string error_json(int status, std::string_view sentence);

struct HttpRequest {
  std::string path, body, last_event_id;
  std::map<std::string, std::string, std::less<>> query;
};

/// A request that has been received, and its answer: whole, or a stream of parts.
///
/// Thread safety: may be used by several threads. What is sent after the end of the answer, or after the client has
/// gone, is dropped.
class HttpExchange {
 public:
  /// The whole answer.
  void answer(int status, const char* type, std::string body);
  void refuse(const HttpError& error);
  /// A stream of server-sent events. Parts are sent as soon as the client takes them.
  void begin_stream();
  void write(std::string_view part);
  void end();

  /// Whether the answer has begun.
  bool begun() const;
  /// Whether the client has closed the connection, or the server ends.
  bool gone() const;
  /// The bytes that have been written and that the client has not taken yet.
  std::size_t unsent() const;

 private:
  friend class HttpServer;
  friend struct HttpCallbacks;
  void wake();
  void send_comment_if_idle();
  void close();

  mutable std::mutex mutex_;
  MHD_Connection* connection_ = nullptr;  // null: the client has gone
  int socket_ = -1;
  HttpRequest request_;
  int status_ = 0;  // 0: there is no answer yet
  const char* type_ = "";
  std::string data_;  // of the answer, not yet sent
  bool suspended_ = false, stream_ = false, ended_ = false, dispatched_ = false;
  std::chrono::steady_clock::time_point last_write_;
};

struct HttpRoute {
  const char *method, *path;
  bool needs_token;
  /// Called in the thread that polls, so it must be quick. Answers, or keeps the exchange for another thread that will.
  /// An Error that it throws refuses the request: an HttpError with its status, others with 400.
  std::function<void(const HttpRequest&, const std::shared_ptr<HttpExchange>&)> handle;
};

struct HttpOptions {
  std::string address = "127.0.0.1";  ///< a numeric IPv4 or IPv6 address
  std::int64_t port = 0;              ///< 0: one that is free
  std::string token;                  ///< not empty: what requests must present, except on routes that need none
  std::function<void()> tick;         ///< called four times per second, in a thread of its own; must not throw
};

/// The limits of what clients send.
inline constexpr std::size_t kMaxHttpBody = 1 << 20, kMaxHttpHead = 32 << 10;
inline constexpr unsigned kMaxHttpConnections = 128;
/// The time that a client has for sending a request.
inline constexpr std::chrono::seconds kHttpReceiveTime{10};

/// Whether a request with this Host header is for this server: a loopback name or address, or the one that the server
/// listens on (any numeric address if it listens on all), with or without a port. Any other name may be that of a
/// foreign page that was made to resolve to this machine.
bool is_own_host(std::string_view host, std::string_view address);
/// Whether the address is one that only this machine reaches.
bool is_loopback(const std::string& address);
/// Whether both are equal, in a time that does not depend on how much of them is.
bool equal_in_constant_time(std::string_view a, std::string_view b);

class HttpServer {
 public:
  /// Listens. Throws Error for an address that is no numeric address of this machine, and for a port that is in use.
  HttpServer(HttpOptions options, std::vector<HttpRoute> routes);
  /// Ends all streams, and refuses what is not yet answered.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// http://ADDRESS:PORT/
  std::string url() const;
  std::int64_t port() const { return port_; }

 private:
  friend struct HttpCallbacks;
  struct Client {
    int socket;
    std::chrono::steady_clock::time_point deadline;  // for the rest of the request
    bool first;                                      // request on this connection
  };
  void listen();
  void start();
  void keep_time();
  void close_overdue();
  std::vector<std::shared_ptr<HttpExchange>> exchanges();
  std::string refusal(MHD_Connection* connection, const std::string& path, std::string_view method, int& status) const;
  const HttpRoute* route(std::string_view method, std::string_view path) const;
  std::string allowed(std::string_view path) const;

  HttpOptions options_;
  std::vector<HttpRoute> routes_;
  int listening_ = -1;
  std::int64_t port_ = 0;
  MHD_Daemon* daemon_ = nullptr;
  std::mutex mutex_;  // of the following two
  std::map<MHD_Connection*, Client> clients_;
  std::vector<std::weak_ptr<HttpExchange>> live_;
  std::atomic<bool> stopping_ = false;
  std::thread clock_;
};

}  // namespace maki
