// A small HTTP/1.1 server: one thread that polls, limits on everything that clients send, and answers that may come
// later and from another thread. It knows nothing of models and runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <microhttpd.h>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/core/check.h"

namespace maki {

/// A request is refused: an HTTP status of 4xx or 5xx, and a sentence.
class HttpError : public Error {
 public:
  HttpError(int its_status, const std::string& sentence) : Error(sentence), status(its_status) {}
  int status;
};

/// What the exception that is being handled says to a client: the status is 400 for an Error, and 5xx if the fault is
/// not that of the request; settings are spelled as options. Requires: called by a handler of an exception.
HttpError error_for_client();

inline constexpr const char* kJsonType = "application/json";

/// The limits of what clients send, and the time that they have for sending it.
inline constexpr std::size_t kMaxHttpBody = 1 << 20, kMaxHttpHead = 32 << 10;
inline constexpr unsigned kMaxHttpConnections = 128;
inline constexpr std::chrono::seconds kHttpReceiveTime{10};

/// What a client that reads slowly has not taken yet: from so many bytes on, the writer of a stream waits.
inline constexpr std::size_t kEnoughUnsent = 1 << 20;

/// Whether a Host header, with or without a port, means a server that listens on this numeric address: localhost, a
/// loopback address, or the address in any of its spellings; any numeric one if it is 0.0.0.0 or ::. Another name may
/// be that of a foreign page that was made to resolve to this machine.
bool is_own_host(std::string_view host, const std::string& address);

/// A request, and its answer: whole, or a stream of parts.
///
/// Thread safety: may be used by several threads. What is written after the end of the answer, or after the client has
/// gone, is dropped.
class HttpExchange {
 public:
  explicit HttpExchange(MHD_Connection* connection) : connection_(connection) {}

  /// Of the request: a field of its head, a parameter of its query, which are empty if they were not given, and its
  /// body. Requires: called by the handler of its route.
  std::string header(const char* name) const { return value(MHD_HEADER_KIND, name); }
  std::string parameter(const char* name) const { return value(MHD_GET_ARGUMENT_KIND, name); }
  const std::string& body() const { return body_; }

  /// The whole answer.
  void answer(int status, const char* type, std::string body) { begin(status, type, std::move(body), true); }
  /// A stream of server-sent events. Parts are sent as soon as the client takes them, and kept until then, however
  /// many they are: see unsent().
  void begin_stream() { begin(MHD_HTTP_OK, "text/event-stream", "", false); }
  void write(std::string_view part);
  void end();
  /// Answers {"error":{"message","type","param":null,"code":null}}, in a stream as its last event.
  void refuse(const HttpError& error);

  /// Whether the client has closed the connection, or was cut off because it read nothing for a long time. Such an
  /// exchange is closed.
  bool gone();
  /// The bytes that have been written and that the client has not taken yet.
  std::size_t unsent() const;

 private:
  friend class HttpServer;
  using Clock = std::chrono::steady_clock;
  std::string value(MHD_ValueKind kind, const char* name) const;
  void begin(int status, const char* type, std::string data, bool ended);
  void wake();
  MHD_Result send(const std::string& allow);
  ssize_t take(char* buffer, std::size_t most);
  void close();

  std::string body_;  // used by the thread that polls alone
  // Until all of the request must be there. kReceived: it is, or the rest is not wanted.
  static constexpr Clock::time_point kReceived = Clock::time_point::max();
  std::atomic<Clock::time_point> deadline_ = Clock::now() + kHttpReceiveTime;
  mutable std::mutex mutex_;    // of the following
  MHD_Connection* connection_;  // null: the client has gone
  int status_ = 0;              // 0: there is no answer yet
  const char* type_ = "";
  std::string data_;       // of the answer
  std::size_t taken_ = 0;  // how many of its first bytes the client has
  bool suspended_ = false, ended_ = false, gone_ = false;
};

struct HttpRoute {
  const char *method, *path;
  bool needs_token;  ///< false for a page and its files: others may link to it, but make no other request
  /// Called in the thread that polls, so it must be quick. Answers, or keeps the exchange for another thread that will.
  /// What it throws refuses the request.
  std::function<void(const std::shared_ptr<HttpExchange>&)> handle;
};

struct HttpOptions {
  std::string address = "127.0.0.1";  ///< a numeric IPv4 or IPv6 address
  std::int64_t port = 0;              ///< 0: one that is free
  std::string token;                  ///< not empty: what requests must present, except on routes that need none
};

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
  /// Whether the address is 0.0.0.0 or ::, which stand for each numeric address of this machine.
  bool listens_on_all() const;
  /// Cuts off clients that send too slowly. To be called several times per second.
  void keep_time();

 private:
  using Exchange = std::shared_ptr<HttpExchange>;
  static constexpr auto kReceived = HttpExchange::kReceived;
  // These are called by the thread that polls.
  static MHD_Result handle(void* server, MHD_Connection* connection, const char* url, const char* method,
                           const char* version, const char* data, std::size_t* size, void** state);
  static void connected(void* server, MHD_Connection* connection, void** state, MHD_ConnectionNotificationCode code);
  static void completed(void* server, MHD_Connection* connection, void** state, MHD_RequestTerminationCode code);
  void check_head(const HttpExchange& exchange, std::string_view path, std::string_view method) const;
  const HttpRoute* route(std::string_view method, std::string_view path) const;
  std::string methods(std::string_view path) const;
  Exchange exchange_of(MHD_Connection* connection);
  std::vector<Exchange> open();

  HttpOptions options_;
  std::vector<HttpRoute> routes_;
  MHD_Daemon* daemon_ = nullptr;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;                               // of the following
  std::map<MHD_Connection*, Exchange> exchanges_;  // of the request that each client sends, or waits for
};

}  // namespace maki
