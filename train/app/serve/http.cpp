#include "train/app/serve/http.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "data/io/number.h"
#include "train/app/report.h"

namespace maki {
namespace {

using HttpClock = std::chrono::steady_clock;

constexpr unsigned kSendSeconds = 30;  // without any progress, until a client that does not read is cut off
constexpr std::chrono::seconds kKeepAliveTime{30};  // between two requests of a connection
constexpr std::chrono::seconds kCommentInterval{15};
constexpr std::chrono::milliseconds kTick{250};
constexpr std::size_t kStreamBlock = 16 << 10;
constexpr const char* kJsonType = "application/json";
constexpr const char* kEventType = "text/event-stream";

// Of every answer. A page may load nothing from elsewhere, and no other page may show or read an answer.
constexpr std::pair<const char*, const char*> kHeaders[] = {
    {"Content-Security-Policy",
     "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"}};

struct ResponseDeleter {
  void operator()(MHD_Response* response) const { MHD_destroy_response(response); }
};
using Response = std::unique_ptr<MHD_Response, ResponseDeleter>;

MHD_Result queue(MHD_Connection* connection, int status, const char* type, const Response& response,
                 const std::string& allow = "") {
  if (!response) return MHD_NO;
  for (const auto& [name, value] : kHeaders) MHD_add_response_header(response.get(), name, value);
  if (type[0] != '\0') MHD_add_response_header(response.get(), "Content-Type", type);
  if (!allow.empty()) MHD_add_response_header(response.get(), "Allow", allow.c_str());
  if (status == MHD_HTTP_UNAUTHORIZED) MHD_add_response_header(response.get(), "WWW-Authenticate", "Bearer");
  return MHD_queue_response(connection, static_cast<unsigned>(status), response.get());
}

Response whole(std::string body) {
  return Response(MHD_create_response_from_buffer(body.size(), body.data(), MHD_RESPMEM_MUST_COPY));
}

std::string header(MHD_Connection* connection, const char* name) {
  const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? "" : value;
}

int count_headers(MHD_Connection* connection, const char* name) {
  struct Count {
    const char* name;
    int count;
  } seen{name, 0};
  MHD_get_connection_values(
      connection, MHD_HEADER_KIND,
      [](void* cls, MHD_ValueKind, const char* key, const char*) {
        auto& count = *static_cast<Count*>(cls);
        if (strcasecmp(key, count.name) == 0) ++count.count;
        return MHD_YES;
      },
      &seen);
  return seen.count;
}

bool is_json_type(std::string_view type) {
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  return type.size() == std::strlen(kJsonType) && strncasecmp(type.data(), kJsonType, type.size()) == 0;
}

bool is_numeric_address(const std::string& address) {
  in6_addr parsed = {};
  return inet_pton(AF_INET, address.c_str(), &parsed) == 1 || inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

int socket_of(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

}  // namespace

std::string error_json(int status, std::string_view sentence) {
  return json_text(Json{{"error",
                         {{"message", sentence},
                          {"type", status < 500 ? "invalid_request_error" : "server_error"},
                          {"param", nullptr},
                          {"code", nullptr}}}});
}

bool is_own_host(std::string_view host, std::string_view address) {
  const std::size_t colon = host.rfind(':');
  const bool bracketed = host.starts_with('[');
  if (colon != std::string_view::npos && (!bracketed || host[colon - 1] == ']')) {
    const std::string_view port = host.substr(colon + 1);
    if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string_view::npos) return false;
    host = host.substr(0, colon);
  }
  if (bracketed) {
    if (!host.ends_with(']')) return false;
    host = host.substr(1, host.size() - 2);
  }
  const std::string name(host);
  if (!bracketed && (name == "localhost" || name == "127.0.0.1")) return true;
  if (bracketed != (name.find(':') != std::string::npos)) return false;
  const bool all = address == "0.0.0.0" || address == "::";
  return name == "::1" || (all ? is_numeric_address(name) : name == address);
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  volatile unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = difference | static_cast<unsigned char>(a[i] ^ (b.empty() ? 0 : b[i % b.size()]));
  return difference == 0;
}

void HttpExchange::answer(int status, const char* type, std::string body) {
  const std::lock_guard lock(mutex_);
  if (status_ != 0) return;
  status_ = status;
  type_ = type;
  data_ = std::move(body);
  ended_ = true;
  wake();
}

void HttpExchange::refuse(const HttpError& error) {
  answer(error.status(), kJsonType, error_json(error.status(), error.what()));
}

void HttpExchange::begin_stream() {
  const std::lock_guard lock(mutex_);
  if (status_ != 0) return;
  status_ = MHD_HTTP_OK;
  type_ = kEventType;
  stream_ = true;
  last_write_ = HttpClock::now();
  wake();
}

void HttpExchange::write(std::string_view part) {
  const std::lock_guard lock(mutex_);
  if (!stream_ || ended_ || connection_ == nullptr) return;
  data_ += part;
  last_write_ = HttpClock::now();
  wake();
}

void HttpExchange::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  wake();
}

bool HttpExchange::begun() const {
  const std::lock_guard lock(mutex_);
  return status_ != 0;
}

// A suspended connection is not polled, so that its end is not seen elsewhere.
bool HttpExchange::gone() const {
  const std::lock_guard lock(mutex_);
  if (connection_ == nullptr) return true;
  if (!suspended_) return false;
  pollfd polled{socket_, POLLRDHUP, 0};
  return poll(&polled, 1, 0) > 0;
}

std::size_t HttpExchange::unsent() const {
  const std::lock_guard lock(mutex_);
  return data_.size();
}

// Requires: the mutex is locked.
void HttpExchange::wake() {
  if (!suspended_ || connection_ == nullptr) return;
  suspended_ = false;
  MHD_resume_connection(connection_);
}

// So that a client that has gone is noticed, and nobody between closes an idle connection.
void HttpExchange::send_comment_if_idle() {
  const std::lock_guard lock(mutex_);
  if (!stream_ || ended_ || HttpClock::now() - last_write_ < kCommentInterval) return;
  last_write_ = HttpClock::now();
  data_ += ":\n\n";
  wake();
}

void HttpExchange::close() {
  refuse(HttpError(MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends"));
  end();
}

// The functions that libmicrohttpd calls, in the thread that polls.
struct HttpCallbacks {
  using Shared = std::shared_ptr<HttpExchange>;

  static MHD_Result handle(void* cls, MHD_Connection* connection, const char* url, const char* method, const char*,
                           const char* data, std::size_t* size, void** state) {
    auto& server = *static_cast<HttpServer*>(cls);
    try {
      if (*state == nullptr) return begin(server, connection, url, method, state);
      const Shared exchange = *static_cast<Shared*>(*state);
      std::string& body = exchange->request_.body;
      if (*size > 0) {
        // Of a body that is too large, one byte more than is allowed is kept.
        body.append(data, std::min(*size, kMaxHttpBody + 1 - body.size()));
        *size = 0;
        return MHD_YES;
      }
      if (!exchange->dispatched_) dispatch(server, connection, method, exchange);
      return respond(connection, exchange);
    } catch (const std::exception&) {  // out of memory
      return MHD_NO;
    }
  }

  // The head of the request has been received.
  static MHD_Result begin(HttpServer& server, MHD_Connection* connection, const char* url, std::string_view method,
                          void** state) {
    int status = 0;
    const std::string path = url, sentence = server.refusal(connection, path, method, status);
    if (status == MHD_HTTP_NO_CONTENT || status == MHD_HTTP_METHOD_NOT_ALLOWED)
      return queue(connection, status, status == MHD_HTTP_NO_CONTENT ? "" : kJsonType,
                   whole(status == MHD_HTTP_NO_CONTENT ? "" : error_json(status, sentence)), server.allowed(path));
    if (status != 0) return queue(connection, status, kJsonType, whole(error_json(status, sentence)));
    auto exchange = std::make_shared<HttpExchange>();
    exchange->connection_ = connection;
    exchange->socket_ = socket_of(connection);
    exchange->request_.path = path;
    exchange->request_.last_event_id = header(connection, "Last-Event-ID");
    MHD_get_connection_values_n(
        connection, MHD_GET_ARGUMENT_KIND,
        [](void* query, MHD_ValueKind, const char* key, std::size_t key_size, const char* value,
           std::size_t value_size) {
          static_cast<HttpExchange*>(query)->request_.query.insert_or_assign(
              std::string(key, key_size), value == nullptr ? "" : std::string(value, value_size));
          return MHD_YES;
        },
        exchange.get());
    *state = new Shared(std::move(exchange));
    return MHD_YES;
  }

  // All of the request has been received.
  static void dispatch(HttpServer& server, MHD_Connection* connection, std::string_view method,
                       const Shared& exchange) {
    exchange->dispatched_ = true;
    {
      const std::lock_guard lock(server.mutex_);
      server.clients_[connection].deadline = HttpClock::time_point::max();
      std::erase_if(server.live_, [](const std::weak_ptr<HttpExchange>& other) { return other.expired(); });
      server.live_.push_back(exchange);
    }
    try {
      if (server.stopping_) throw HttpError(MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends");
      if (exchange->request_.body.size() > kMaxHttpBody)
        throw HttpError(MHD_HTTP_CONTENT_TOO_LARGE, "the body must have at most 1 MiB");
      server.route(method, exchange->request_.path)->handle(exchange->request_, exchange);
    } catch (const HttpError& error) {
      exchange->refuse(error);
    } catch (const Error& error) {
      exchange->refuse(HttpError(MHD_HTTP_BAD_REQUEST, error.what()));
    } catch (const std::exception& error) {
      exchange->refuse(HttpError(MHD_HTTP_INTERNAL_SERVER_ERROR, error.what()));
    }
  }

  static MHD_Result respond(MHD_Connection* connection, const Shared& exchange) {
    const std::lock_guard lock(exchange->mutex_);
    if (exchange->status_ == 0) {
      exchange->suspended_ = true;
      MHD_suspend_connection(connection);
      return MHD_YES;
    }
    if (!exchange->stream_)
      return queue(connection, exchange->status_, exchange->type_, whole(std::move(exchange->data_)));
    auto* const shared = new Shared(exchange);
    const Response response(MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kStreamBlock, read_stream, shared,
                                                              [](void* held) { delete static_cast<Shared*>(held); }));
    if (!response) delete shared;
    return queue(connection, exchange->status_, exchange->type_, response);
  }

  static ssize_t read_stream(void* cls, std::uint64_t, char* buffer, std::size_t most) {
    HttpExchange& exchange = **static_cast<Shared*>(cls);
    const std::lock_guard lock(exchange.mutex_);
    if (exchange.data_.empty()) {
      if (exchange.ended_) return MHD_CONTENT_READER_END_OF_STREAM;
      exchange.suspended_ = true;
      MHD_suspend_connection(exchange.connection_);
      return 0;
    }
    const std::size_t n = exchange.data_.copy(buffer, most);
    exchange.data_.erase(0, n);
    return static_cast<ssize_t>(n);
  }

  static void completed(void* cls, MHD_Connection* connection, void** state, MHD_RequestTerminationCode) {
    auto& server = *static_cast<HttpServer*>(cls);
    {
      const std::lock_guard lock(server.mutex_);
      if (const auto client = server.clients_.find(connection); client != server.clients_.end())
        client->second = {client->second.socket, HttpClock::now() + kKeepAliveTime, false};
    }
    if (*state == nullptr) return;
    const std::unique_ptr<Shared> exchange(static_cast<Shared*>(*state));
    *state = nullptr;
    const std::lock_guard lock((*exchange)->mutex_);
    (*exchange)->connection_ = nullptr;
    (*exchange)->data_.clear();
  }

  static void connected(void* cls, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode code) {
    auto& server = *static_cast<HttpServer*>(cls);
    const std::lock_guard lock(server.mutex_);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
      server.clients_[connection] = {socket_of(connection), HttpClock::now() + kHttpReceiveTime, true};
    } else {
      server.clients_.erase(connection);
    }
  }
};

HttpServer::HttpServer(HttpOptions options, std::vector<HttpRoute> routes)
    : options_(std::move(options)), routes_(std::move(routes)) {
  listen();
  start();
  clock_ = std::thread([this] { keep_time(); });
}

HttpServer::~HttpServer() {
  stopping_ = true;
  clock_.join();
  for (const auto& exchange : exchanges()) exchange->close();
  MHD_quiesce_daemon(daemon_);
  MHD_stop_daemon(daemon_);
  ::close(listening_);
}

std::string HttpServer::url() const {
  const bool v6 = options_.address.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}/", v6 ? "[" : "", options_.address, v6 ? "]" : "", port_);
}

// MHD would only say that it failed, and not why.
void HttpServer::listen() {
  sockaddr_in v4 = {};
  sockaddr_in6 v6 = {};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  v4.sin_port = v6.sin6_port = htons(static_cast<std::uint16_t>(options_.port));
  const bool is_v4 = inet_pton(AF_INET, options_.address.c_str(), &v4.sin_addr) == 1;
  check(is_v4 || inet_pton(AF_INET6, options_.address.c_str(), &v6.sin6_addr) == 1,
        "host: must be a numeric address, such as 127.0.0.1 or ::1; got {}", options_.address);
  auto* const address = is_v4 ? reinterpret_cast<sockaddr*>(&v4) : reinterpret_cast<sockaddr*>(&v6);
  socklen_t size = is_v4 ? sizeof v4 : sizeof v6;
  listening_ = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  const bool good = listening_ >= 0 && setsockopt(listening_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                    bind(listening_, address, size) == 0 && ::listen(listening_, SOMAXCONN) == 0 &&
                    getsockname(listening_, address, &size) == 0;
  const int error = errno;
  if (!good && listening_ >= 0) ::close(listening_);
  check(good || error != EADDRINUSE,
        "port: {} is in use by another program; choose another one, or 0 for one that is free", options_.port);
  check(good, "host: cannot listen on {}, port {}: {}", options_.address, options_.port, std::strerror(error));
  port_ = ntohs(is_v4 ? v4.sin_port : v6.sin6_port);
}

void HttpServer::start() {
  daemon_ = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr,
                             HttpCallbacks::handle, this, MHD_OPTION_LISTEN_SOCKET, listening_,
                             MHD_OPTION_CONNECTION_LIMIT, kMaxHttpConnections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                             kMaxHttpHead, MHD_OPTION_CONNECTION_TIMEOUT, kSendSeconds, MHD_OPTION_STRICT_FOR_CLIENT, 1,
                             MHD_OPTION_NOTIFY_COMPLETED, HttpCallbacks::completed, this, MHD_OPTION_NOTIFY_CONNECTION,
                             HttpCallbacks::connected, this, MHD_OPTION_END);
  if (daemon_ == nullptr) ::close(listening_);
  check(daemon_ != nullptr, "serve: the server could not be started; close some programs");
}

void HttpServer::keep_time() {
  while (!stopping_) {
    std::this_thread::sleep_for(kTick);
    close_overdue();
    for (const auto& exchange : exchanges()) exchange->send_comment_if_idle();
    if (options_.tick) options_.tick();
  }
}

void HttpServer::close_overdue() {
  static const std::string kTooSlow = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  const std::lock_guard lock(mutex_);
  for (auto& [connection, client] : clients_) {
    if (HttpClock::now() < client.deadline) continue;
    client.deadline = HttpClock::time_point::max();
    // Nothing else is being sent on a connection whose request has not been received.
    if (client.first) ::send(client.socket, kTooSlow.data(), kTooSlow.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(client.socket, SHUT_RDWR);
  }
}

std::vector<std::shared_ptr<HttpExchange>> HttpServer::exchanges() {
  std::vector<std::shared_ptr<HttpExchange>> list;
  const std::lock_guard lock(mutex_);
  for (const auto& weak : live_) {
    if (auto exchange = weak.lock()) list.push_back(std::move(exchange));
  }
  return list;
}

const HttpRoute* HttpServer::route(std::string_view method, std::string_view path) const {
  const std::string_view same = method == "HEAD" ? "GET" : method;
  const auto found = std::ranges::find_if(
      routes_, [&](const HttpRoute& candidate) { return candidate.method == same && candidate.path == path; });
  return found == routes_.end() ? nullptr : &*found;
}

std::string HttpServer::allowed(std::string_view path) const {
  std::string methods;
  if (route("GET", path) != nullptr) methods += "GET, HEAD, ";
  if (route("POST", path) != nullptr) methods += "POST, ";
  return methods.empty() ? "" : methods + "OPTIONS";
}

// Why a request is refused as soon as its head has been received; status 0: it is not.
std::string HttpServer::refusal(MHD_Connection* connection, const std::string& path, std::string_view method,
                                int& status) const {
  const auto refuse = [&](int code, std::string sentence) {
    status = code;
    return sentence;
  };
  const std::string host = header(connection, "Host"), origin = header(connection, "Origin");
  if (count_headers(connection, "Host") != 1) return refuse(MHD_HTTP_BAD_REQUEST, "Host: must be given once");
  if (!is_own_host(host, options_.address))
    return refuse(MHD_HTTP_FORBIDDEN, "Host: must be localhost, 127.0.0.1, [::1] or the address that is served");
  if (count_headers(connection, "Origin") > 0 && origin != "http://" + host)
    return refuse(MHD_HTTP_FORBIDDEN, "Origin: requests of other pages are refused");
  const std::string methods = allowed(path);
  if (methods.empty()) return refuse(MHD_HTTP_NOT_FOUND, "there is nothing at this path");
  if (method == "OPTIONS") return refuse(MHD_HTTP_NO_CONTENT, "");
  const HttpRoute* const found = route(method, path);
  if (found == nullptr) return refuse(MHD_HTTP_METHOD_NOT_ALLOWED, "the method must be one of " + methods);
  if (found->needs_token && !options_.token.empty() &&
      !equal_in_constant_time(header(connection, "Authorization"), "Bearer " + options_.token))
    return refuse(MHD_HTTP_UNAUTHORIZED, "Authorization: must be Bearer and the token that maki serve printed");
  if (method != "POST") return "";
  if (!is_json_type(header(connection, "Content-Type")))
    return refuse(MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "Content-Type: must be application/json");
  const std::string length = header(connection, "Content-Length");
  if (length.size() > 9 || (!length.empty() && std::strtoul(length.c_str(), nullptr, 10) > kMaxHttpBody))
    return refuse(MHD_HTTP_CONTENT_TOO_LARGE, "the body must have at most 1 MiB");
  return "";
}

}  // namespace maki
