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
#include <thread>
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
/// not that of the request. Requires: called by a handler of an exception.
HttpError error_for_client();

struct HttpRequest {
  std::string path, body, last_event_id;
  std::map<std::string, std::string, std::less<>> query;
};

/// A request that has been received, and its answer: whole, or a stream of parts.
///
/// Thread safety: may be used by several threads. What is written after the end of the answer, or after the client has
/// gone, is dropped.
class HttpExchange {
 public:
  /// The whole answer.
  void answer(int status, const char* type, std::string body);
  /// A stream of server-sent events. Parts are sent as soon as the client takes them.
  void begin_stream();
  void write(std::string_view part);
  void end();
  /// Answers {"error":{"message","type","param":null,"code":null}}, in a stream as its last event.
  void refuse(const HttpError& error);

  /// Whether the client has closed the connection, or does not read what it asked for. Such an exchange is closed.
  bool gone();
  /// The bytes that have been written and that the client has not taken yet.
  std::size_t unsent() const;

 private:
  friend class HttpServer;
  void wake();

  mutable std::mutex mutex_;
  MHD_Connection* connection_ = nullptr;  // null: the client has gone
  int status_ = 0;                        // 0: there is no answer yet
  const char* type_ = "";
  std::string data_;  // of the answer, not yet sent
  bool received_ = false, suspended_ = false, stream_ = false, ended_ = false, gone_ = false;
  HttpRequest request_;
};

struct HttpRoute {
  const char *method, *path;
  bool needs_token;
  /// Called in the thread that polls, so it must be quick. Answers, or keeps the exchange for another thread that will.
  /// What it throws refuses the request.
  std::function<void(const HttpRequest&, const std::shared_ptr<HttpExchange>&)> handle;
};

struct HttpOptions {
  std::string address = "127.0.0.1";  ///< a numeric IPv4 or IPv6 address
  std::int64_t port = 0;              ///< 0: one that is free
  std::string token;                  ///< not empty: what requests must present, except on routes that need none
  std::function<void()> tick;         ///< called four times per second, in a thread of its own; must not throw
};

inline constexpr const char* kJsonType = "application/json";

/// The limits of what clients send, and the time that they have for sending it.
inline constexpr std::size_t kMaxHttpBody = 1 << 20, kMaxHttpHead = 32 << 10;
inline constexpr unsigned kMaxHttpConnections = 128;
inline constexpr std::chrono::seconds kHttpReceiveTime{10};

/// Whether a Host header, with or without a port, means this server: a loopback name or address, or the address that it
/// listens on (any numeric one if it listens on all). Another name may be that of a foreign page that was made to
/// resolve to this machine.
bool is_own_host(std::string_view host, const std::string& address);

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

 private:
  using Exchange = std::shared_ptr<HttpExchange>;
  struct Client {
    int socket;
    std::chrono::steady_clock::time_point deadline;  // for the rest of the request
    Exchange exchange = {};                          // of a request that has been received
  };
  // These are called by the thread that polls.
  static MHD_Result handle(void* server, MHD_Connection* connection, const char* url, const char* method,
                           const char* version, const char* data, std::size_t* size, void** state);
  static void connected(void* server, MHD_Connection* connection, void** state, MHD_ConnectionNotificationCode code);
  static void completed(void* server, MHD_Connection* connection, void** state, MHD_RequestTerminationCode code);
  MHD_Result begin(MHD_Connection* connection, const std::string& path, std::string_view method, void** state) const;
  void check_head(MHD_Connection* connection, const std::string& path, std::string_view method) const;
  void dispatch(MHD_Connection* connection, std::string_view method, const Exchange& exchange);
  const HttpRoute* route(std::string_view method, std::string_view path) const;
  std::string methods(std::string_view path) const;
  void keep_time();
  bool has_open_exchange();

  HttpOptions options_;
  std::vector<HttpRoute> routes_;
  MHD_Daemon* daemon_ = nullptr;
  std::mutex mutex_;
  std::map<MHD_Connection*, Client> clients_;
  std::atomic<bool> stopping_ = false;
  std::thread clock_;
};

}  // namespace maki
