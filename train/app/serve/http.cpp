#include "train/app/serve/http.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "autograd/core/storage.h"
#include "data/io/error.h"
#include "train/app/report.h"

namespace maki {
namespace {

using HttpClock = std::chrono::steady_clock;

constexpr unsigned kSendSeconds = 30;  // without any progress, until a client that does not read is cut off
constexpr std::chrono::milliseconds kTick{250}, kFarewell{1000}, kFarewellTick{20};
constexpr std::size_t kStreamBlock = 16 << 10;
constexpr std::size_t kMaxUnsent = 4 << 20;  // of a client that does not read

// Of every answer. A page may load nothing from elsewhere, and no other page may show or read an answer.
constexpr std::pair<const char*, const char*> kHeaders[] = {
    {"Content-Security-Policy",
     "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"}};

MHD_Result queue(MHD_Connection* connection, int status, const char* type, MHD_Response* response,
                 const std::string& allow = "") {
  if (response == nullptr) return MHD_NO;
  for (const auto& [name, value] : kHeaders) MHD_add_response_header(response, name, value);
  MHD_add_response_header(response, "Content-Type", type);
  if (!allow.empty()) MHD_add_response_header(response, "Allow", allow.c_str());
  if (status == MHD_HTTP_UNAUTHORIZED) MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
  const MHD_Result result = MHD_queue_response(connection, static_cast<unsigned>(status), response);
  MHD_destroy_response(response);
  return result;
}

MHD_Response* whole(std::string body) {
  return MHD_create_response_from_buffer(body.size(), body.data(), MHD_RESPMEM_MUST_COPY);
}

std::string error_json(int status, const char* sentence) {
  const char* const type = status < MHD_HTTP_INTERNAL_SERVER_ERROR ? "invalid_request_error" : "server_error";
  return json_text(Json{{"error", {{"message", sentence}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}});
}

std::string header(MHD_Connection* connection, const char* name) {
  const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? "" : value;
}

// In a time that does not depend on how much of them is equal.
bool are_equal(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i] ^ secret[i % secret.size()]);
  return difference == 0;
}

// An address as it is written before a port.
std::string host_of(const std::string& address) {
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

int socket_of(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

}  // namespace

HttpError error_for_client() {
  try {
    throw;
  } catch (const HttpError& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {MHD_HTTP_SERVICE_UNAVAILABLE, "there is not enough memory for this request; try again later"};
  } catch (const OutOfMemoryError& error) {
    return {MHD_HTTP_SERVICE_UNAVAILABLE, error.what()};
  } catch (const CheckpointError& error) {
    return {MHD_HTTP_INTERNAL_SERVER_ERROR, error.what()};
  } catch (const Error& error) {
    return {MHD_HTTP_BAD_REQUEST, error.what()};
  } catch (const std::exception& error) {
    return {MHD_HTTP_INTERNAL_SERVER_ERROR, error.what()};
  }
}

bool is_own_host(std::string_view host, const std::string& address) {
  const std::size_t end = host.find_last_not_of("0123456789");
  if (end != std::string_view::npos && host[end] == ':' && end + 1 < host.size()) host = host.substr(0, end);
  if (host == "localhost" || host == "127.0.0.1" || host == "[::1]" || host == host_of(address)) return true;
  in_addr numeric = {};
  return (address == "0.0.0.0" || address == "::") && inet_pton(AF_INET, std::string(host).c_str(), &numeric) == 1;
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

void HttpExchange::begin_stream() {
  const std::lock_guard lock(mutex_);
  if (status_ != 0) return;
  status_ = MHD_HTTP_OK;
  type_ = "text/event-stream";
  stream_ = true;
  wake();
}

void HttpExchange::write(std::string_view part) {
  const std::lock_guard lock(mutex_);
  if (!stream_ || ended_) return;
  data_ += part;
  gone_ = ended_ = data_.size() > kMaxUnsent;
  wake();
}

void HttpExchange::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  wake();
}

void HttpExchange::refuse(const HttpError& error) {
  const std::string body = error_json(error.status, error.what());
  answer(error.status, kJsonType, body);
  write("data: " + body + "\n");  // nothing, unless a stream has begun
  end();
}

// A suspended connection is not polled, so that its end is not seen elsewhere.
bool HttpExchange::gone() {
  {
    const std::lock_guard lock(mutex_);
    if (gone_ || !suspended_) return gone_;
    pollfd polled{socket_of(connection_), POLLRDHUP, 0};
    if (poll(&polled, 1, 0) <= 0) return false;
    gone_ = true;
  }
  refuse(HttpError(MHD_HTTP_REQUEST_TIMEOUT, "the client has closed the connection"));
  return true;
}

std::size_t HttpExchange::unsent() const {
  const std::lock_guard lock(mutex_);
  return data_.size();
}

// Requires: the mutex is locked.
void HttpExchange::wake() {
  if (std::exchange(suspended_, false)) MHD_resume_connection(connection_);
}

HttpServer::HttpServer(HttpOptions options, std::vector<HttpRoute> routes)
    : options_(std::move(options)), routes_(std::move(routes)) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  const std::string port = std::to_string(options_.port);
  check(getaddrinfo(options_.address.c_str(), port.c_str(), &hints, &found) == 0,
        "host: must be a numeric address, such as 127.0.0.1 or ::1; got {}", options_.address);
  const unsigned family = found->ai_family == AF_INET6 ? MHD_USE_IPv6 : MHD_NO_FLAG;
  // A text that a NUL would end is not decoded, so that it means nothing.
  const auto decode = +[](void*, MHD_Connection*, char* text) {
    return std::strstr(text, "%00") != nullptr ? std::strlen(text) : MHD_http_unescape(text);
  };
  daemon_ = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | family,
                             static_cast<std::uint16_t>(options_.port), nullptr, nullptr, handle, this,       //
                             MHD_OPTION_SOCK_ADDR, found->ai_addr,                                            //
                             MHD_OPTION_CONNECTION_LIMIT, kMaxHttpConnections,                                //
                             MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMaxHttpHead,                                //
                             MHD_OPTION_CONNECTION_TIMEOUT, kSendSeconds,                                     //
                             MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, decode, nullptr,  //
                             MHD_OPTION_NOTIFY_COMPLETED, completed, this,                                    //
                             MHD_OPTION_NOTIFY_CONNECTION, connected, this, MHD_OPTION_END);
  const int error = errno;
  freeaddrinfo(found);
  check(daemon_ != nullptr || error != EADDRINUSE,
        "port: {} is in use by another program; choose another one, or 0 for one that is free", port);
  check(daemon_ != nullptr, "host: cannot listen on {}, port {}: {}", options_.address, port, std::strerror(error));
  options_.port = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT)->port;
  clock_ = std::thread([this] { keep_time(); });
}

HttpServer::~HttpServer() {
  stopping_ = true;
  clock_.join();
  std::vector<Exchange> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [connection, client] : clients_) open.push_back(client.exchange);
  }
  for (const Exchange& exchange : open) {
    if (exchange) exchange->refuse(HttpError(MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends"));
  }
  // So that clients that read receive it.
  for (auto left = kFarewell / kFarewellTick; left > 0 && has_open_exchange(); --left)
    std::this_thread::sleep_for(kFarewellTick);
  MHD_stop_daemon(daemon_);
}

bool HttpServer::has_open_exchange() {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(clients_, [](const auto& client) { return client.second.exchange != nullptr; });
}

std::string HttpServer::url() const { return fmt::format("http://{}:{}/", host_of(options_.address), options_.port); }

MHD_Result HttpServer::handle(void* cls, MHD_Connection* connection, const char* url, const char* method, const char*,
                              const char* data, std::size_t* size, void** state) {
  auto& server = *static_cast<HttpServer*>(cls);
  if (*state == nullptr) return server.begin(connection, url, method, state);
  const Exchange exchange = *static_cast<Exchange*>(*state);
  if (*size > 0) {
    std::string& body = exchange->request_.body;
    body.append(data, std::min(*size, kMaxHttpBody + 1 - body.size()));  // one byte more than is allowed
    *size = 0;
    return MHD_YES;
  }
  if (!std::exchange(exchange->received_, true)) server.dispatch(connection, method, exchange);
  const std::lock_guard lock(exchange->mutex_);
  if (exchange->status_ == 0) {
    exchange->suspended_ = true;
    MHD_suspend_connection(connection);
    return MHD_YES;
  }
  if (!exchange->stream_)
    return queue(connection, exchange->status_, exchange->type_, whole(std::move(exchange->data_)));
  const auto read = [](void* held, std::uint64_t, char* buffer, std::size_t most) -> ssize_t {
    HttpExchange& stream = **static_cast<Exchange*>(held);
    const std::lock_guard reading(stream.mutex_);
    if (stream.data_.empty() && stream.ended_) return MHD_CONTENT_READER_END_OF_STREAM;
    if (stream.data_.empty()) {
      stream.suspended_ = true;
      MHD_suspend_connection(stream.connection_);
    }
    const std::size_t n = stream.data_.copy(buffer, most);
    stream.data_.erase(0, n);
    return static_cast<ssize_t>(n);
  };
  // The state, and with it the exchange, lives until the response has been sent.
  return queue(connection, exchange->status_, exchange->type_,
               MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kStreamBlock, read, *state, nullptr));
}

// The head of a request has been received.
MHD_Result HttpServer::begin(MHD_Connection* connection, const std::string& path, std::string_view method,
                             void** state) const {
  try {
    check_head(connection, path, method);
    if (method == "OPTIONS") return queue(connection, MHD_HTTP_NO_CONTENT, "text/plain", whole(""), methods(path));
    auto exchange = std::make_unique<Exchange>(std::make_shared<HttpExchange>());
    (*exchange)->connection_ = connection;
    (*exchange)->request_.path = path;
    (*exchange)->request_.last_event_id = header(connection, "Last-Event-ID");
    const auto add = [](void* query, MHD_ValueKind, const char* key, const char* value) {
      static_cast<HttpRequest*>(query)->query.insert_or_assign(key, value == nullptr ? "" : value);
      return MHD_YES;
    };
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add, &(*exchange)->request_);
    *state = exchange.release();
    return MHD_YES;
  } catch (const std::exception&) {
    const HttpError error = error_for_client();
    return queue(connection, error.status, kJsonType, whole(error_json(error.status, error.what())), methods(path));
  }
}

void HttpServer::check_head(MHD_Connection* connection, const std::string& path, std::string_view method) const {
  const auto require = [](bool good, int status, const char* sentence) {
    if (!good) throw HttpError(status, sentence);
  };
  const std::string host = header(connection, "Host");
  require(is_own_host(host, options_.address), MHD_HTTP_FORBIDDEN,
          "Host: must be localhost, 127.0.0.1, [::1] or the address that is served");
  const char* const origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin");
  require(origin == nullptr || origin == "http://" + host, MHD_HTTP_FORBIDDEN,
          "Origin: requests of other pages are refused");
  require(!methods(path).empty(), MHD_HTTP_NOT_FOUND, "there is nothing at this path");
  if (method == "OPTIONS") return;
  const HttpRoute* const found = route(method, path);
  require(found != nullptr, MHD_HTTP_METHOD_NOT_ALLOWED, "the method must be one of those that Allow names");
  require(!found->needs_token || options_.token.empty() ||
              are_equal(header(connection, "Authorization"), "Bearer " + options_.token),
          MHD_HTTP_UNAUTHORIZED, "Authorization: must be Bearer and the token that the server printed");
  if (method != "POST") return;
  std::string type = header(connection, "Content-Type");
  type.resize(std::min(type.size(), type.find_first_of("; ")));
  require(type == kJsonType, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "Content-Type: must be application/json");
  // Chunks have no length that could be checked at once.
  require(header(connection, "Transfer-Encoding").empty(), MHD_HTTP_LENGTH_REQUIRED, "Content-Length: must be given");
  require(std::strtoull(header(connection, "Content-Length").c_str(), nullptr, 10) <= kMaxHttpBody,
          MHD_HTTP_CONTENT_TOO_LARGE, "the body must have at most 1 MiB");
}

// All of a request has been received.
void HttpServer::dispatch(MHD_Connection* connection, std::string_view method, const Exchange& exchange) {
  {
    const std::lock_guard lock(mutex_);
    Client& client = clients_[connection];
    client.deadline = HttpClock::time_point::max();
    client.exchange = exchange;
  }
  try {
    if (stopping_) throw HttpError(MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends");
    if (exchange->request_.body.size() > kMaxHttpBody)
      throw HttpError(MHD_HTTP_CONTENT_TOO_LARGE, "the body must have at most 1 MiB");
    route(method, exchange->request_.path)->handle(exchange->request_, exchange);
  } catch (const std::exception&) {
    exchange->refuse(error_for_client());
  }
}

void HttpServer::completed(void* cls, MHD_Connection* connection, void** state, MHD_RequestTerminationCode) {
  auto& server = *static_cast<HttpServer*>(cls);
  const std::unique_ptr<Exchange> exchange(static_cast<Exchange*>(std::exchange(*state, nullptr)));
  if (exchange) {
    const std::lock_guard lock((*exchange)->mutex_);
    (*exchange)->connection_ = nullptr;
    (*exchange)->gone_ = (*exchange)->ended_ = true;
    (*exchange)->suspended_ = false;
    (*exchange)->data_.clear();
  }
  const std::lock_guard lock(server.mutex_);
  if (const auto client = server.clients_.find(connection); client != server.clients_.end())
    client->second = {client->second.socket, HttpClock::now() + kHttpReceiveTime};
}

void HttpServer::connected(void* cls, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode code) {
  auto& server = *static_cast<HttpServer*>(cls);
  const std::lock_guard lock(server.mutex_);
  if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
    server.clients_.erase(connection);
  } else {
    server.clients_[connection] = {socket_of(connection), HttpClock::now() + kHttpReceiveTime};
  }
}

const HttpRoute* HttpServer::route(std::string_view method, std::string_view path) const {
  const std::string_view same = method == "HEAD" ? "GET" : method;
  const auto found = std::ranges::find_if(
      routes_, [&](const HttpRoute& candidate) { return candidate.method == same && candidate.path == path; });
  return found == routes_.end() ? nullptr : &*found;
}

std::string HttpServer::methods(std::string_view path) const {
  if (route("GET", path) != nullptr) return "GET, HEAD, OPTIONS";
  return route("POST", path) != nullptr ? "POST, OPTIONS" : "";
}

// Cuts off clients that send too slowly.
void HttpServer::keep_time() {
  constexpr std::string_view kTooSlow =
      "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  while (!stopping_) {
    std::this_thread::sleep_for(kTick);
    options_.tick();
    const std::lock_guard lock(mutex_);
    for (auto& [connection, client] : clients_) {
      if (HttpClock::now() < client.deadline) continue;
      client.deadline = HttpClock::time_point::max();
      // Nothing else is being sent on a connection whose request has not been received.
      ::send(client.socket, kTooSlow.data(), kTooSlow.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      shutdown(client.socket, SHUT_RDWR);
    }
  }
}

}  // namespace maki
