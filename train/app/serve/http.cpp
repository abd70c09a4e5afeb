#include "train/app/serve/http.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "autograd/core/storage.h"
#include "data/io/error.h"
#include "train/app/report.h"
#include "train/app/spelling.h"

namespace maki {
namespace {

constexpr unsigned kSendSeconds = 30;  // without any progress, until a client that does not read is cut off
constexpr std::chrono::milliseconds kFarewell{1000}, kFarewellTick{20};
constexpr std::size_t kStreamBlock = 16 << 10;

// Of every answer. A page may load nothing from elsewhere, and no other page may show or read an answer.
constexpr std::pair<const char*, const char*> kHeaders[] = {
    {"Content-Security-Policy",
     "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"}};

std::string error_json(int status, const char* sentence) {
  const char* const type = status < MHD_HTTP_INTERNAL_SERVER_ERROR ? "invalid_request_error" : "server_error";
  return json_text(Json{{"error", {{"message", sentence}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}});
}

// Whatever the locale: HTTP means the letters of ASCII.
std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
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

// The bytes of a numeric address that is written as before a port; empty for anything else.
std::string bytes_of_host(std::string_view host) {
  const bool is_v6 = host.starts_with('[') && host.ends_with(']');
  const std::string text(is_v6 ? host.substr(1, host.size() - 2) : host);
  std::string bytes(is_v6 ? sizeof(in6_addr) : sizeof(in_addr), '\0');
  return inet_pton(is_v6 ? AF_INET6 : AF_INET, text.c_str(), bytes.data()) == 1 ? bytes : "";
}

// One of the spellings of an address, the one that url() shows.
std::string canonical(const addrinfo& address) {
  char text[NI_MAXHOST] = {};
  getnameinfo(address.ai_addr, address.ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

int socket_of(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

// A socket that listens at an address; −1 with the reason in errno if it cannot. Some versions of libmicrohttpd, which
// would open one itself, lose the reason.
int listen_at(const addrinfo& at) {
  const int number = socket(at.ai_family, SOCK_STREAM, 0), yes = 1;
  if (number < 0) return -1;
  fcntl(number, F_SETFD, FD_CLOEXEC);
  fcntl(number, F_SETFL, O_NONBLOCK);
  setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);  // also right after another server has ended
  if (at.ai_family == AF_INET6) setsockopt(number, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  if (bind(number, at.ai_addr, at.ai_addrlen) == 0 && listen(number, SOMAXCONN) == 0) return number;
  const int error = errno;
  close(number);
  errno = error;
  return -1;
}

bool listens_on_all(const std::string& bytes) {
  return bytes == bytes_of_host("0.0.0.0") || bytes == bytes_of_host("[::]");
}

}  // namespace

bool is_own_host(std::string_view host, const std::string& address) {
  const std::size_t end = host.find_last_not_of("0123456789");
  if (end != std::string_view::npos && host[end] == ':' && end + 1 < host.size()) host = host.substr(0, end);
  if (lower_case(std::string(host)) == "localhost") return true;
  // Browsers leave out the interface, which follows the address after a %.
  const std::string given = bytes_of_host(host), own = bytes_of_host(host_of(address.substr(0, address.find('%'))));
  if (given.empty()) return false;
  return listens_on_all(own) || given == own || given == bytes_of_host("127.0.0.1") || given == bytes_of_host("[::1]");
}

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
    return {MHD_HTTP_INTERNAL_SERVER_ERROR, spelled(error.what())};
  } catch (const Error& error) {
    return {MHD_HTTP_BAD_REQUEST, spelled(error.what())};
  } catch (const std::exception& error) {
    return {MHD_HTTP_INTERNAL_SERVER_ERROR, error.what()};
  }
}

std::string HttpExchange::value(MHD_ValueKind kind, const char* name) const {
  const char* const value = MHD_lookup_connection_value(connection_, kind, name);
  return value == nullptr ? "" : value;
}

void HttpExchange::begin(int status, const char* type, std::string data, bool ended) {
  const std::lock_guard lock(mutex_);
  if (status_ != 0 || connection_ == nullptr) return;
  status_ = status;
  type_ = type;
  data_ = std::move(data);
  ended_ = ended;
  wake();
}

void HttpExchange::write(std::string_view part) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  data_ += part;
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
    char next = 0;
    const ssize_t size = recv(socket_of(connection_), &next, 1, MSG_PEEK | MSG_DONTWAIT);
    if (size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR))) return false;
    gone_ = true;
  }
  refuse(HttpError(MHD_HTTP_REQUEST_TIMEOUT, "the client has closed the connection"));
  return true;
}

std::size_t HttpExchange::unsent() const {
  const std::lock_guard lock(mutex_);
  return data_.size() - taken_;
}

// Requires: the mutex is locked.
void HttpExchange::wake() {
  if (std::exchange(suspended_, false)) MHD_resume_connection(connection_);
}

// Sends the answer, or suspends the connection until there is one.
MHD_Result HttpExchange::send(const std::string& allow) {
  const std::lock_guard lock(mutex_);
  if (status_ == 0) {
    suspended_ = true;
    MHD_suspend_connection(connection_);
    return MHD_YES;
  }
  const auto read = [](void* exchange, std::uint64_t, char* buffer, std::size_t most) {
    return static_cast<HttpExchange*>(exchange)->take(buffer, most);
  };
  // The exchange lives until the response has been sent: completed().
  MHD_Response* const response =
      ended_ ? MHD_create_response_from_buffer(data_.size(), data_.data(), MHD_RESPMEM_MUST_COPY)
             : MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kStreamBlock, read, this, nullptr);
  if (response == nullptr) return MHD_NO;
  if (ended_) data_ = {};
  for (const auto& [name, value] : kHeaders) MHD_add_response_header(response, name, value);
  MHD_add_response_header(response, "Content-Type", type_);
  if (!allow.empty()) MHD_add_response_header(response, "Allow", allow.c_str());
  if (status_ == MHD_HTTP_UNAUTHORIZED) MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
  const MHD_Result result = MHD_queue_response(connection_, static_cast<unsigned>(status_), response);
  MHD_destroy_response(response);
  return result;
}

// What the client can take of a stream now.
ssize_t HttpExchange::take(char* buffer, std::size_t most) {
  const std::lock_guard lock(mutex_);
  if (data_.empty() && ended_) return MHD_CONTENT_READER_END_OF_STREAM;
  if (data_.empty()) {
    suspended_ = true;
    MHD_suspend_connection(connection_);
  }
  const std::size_t n = data_.copy(buffer, most, taken_);
  taken_ += n;
  // To move the rest only now and then costs time in proportion to the data, however much of it waits.
  if (2 * taken_ >= data_.size()) data_.erase(0, std::exchange(taken_, 0));
  return static_cast<ssize_t>(n);
}

void HttpExchange::close() {
  const std::lock_guard lock(mutex_);
  connection_ = nullptr;
  gone_ = ended_ = true;
  suspended_ = false;
  data_.clear();
  taken_ = 0;
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
  const int socket = listen_at(*found), error = errno;
  options_.address = canonical(*found);
  freeaddrinfo(found);
  check(socket >= 0 || error != EADDRINUSE,
        "port: {} is in use by another program; choose another one, or 0 for one that is free", port);
  check(socket >= 0, "host: cannot listen on {}, port {}: {}", options_.address, port, std::strerror(error));
  // A text that a NUL would end is not decoded, so that it means nothing.
  const auto decode = +[](void*, MHD_Connection*, char* text) {
    return std::strstr(text, "%00") != nullptr ? std::strlen(text) : MHD_http_unescape(text);
  };
  daemon_ = MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | family,
                             static_cast<std::uint16_t>(options_.port), nullptr, nullptr, handle, this,       //
                             MHD_OPTION_LISTEN_SOCKET, socket,                                                //
                             MHD_OPTION_CONNECTION_LIMIT, kMaxHttpConnections,                                //
                             MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMaxHttpHead,                                //
                             MHD_OPTION_CONNECTION_TIMEOUT, kSendSeconds,                                     //
                             MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, decode, nullptr,  //
                             MHD_OPTION_NOTIFY_COMPLETED, completed, this,                                    //
                             MHD_OPTION_NOTIFY_CONNECTION, connected, this, MHD_OPTION_END);
  check(daemon_ != nullptr,
        "host: the server cannot be started on {}, port {}; the system may lack memory or open files", options_.address,
        port);
  options_.port = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT)->port;
}

HttpServer::~HttpServer() {
  stopping_ = true;
  for (const Exchange& exchange : open()) exchange->refuse(HttpError(MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends"));
  // So that clients that read receive it.
  for (auto left = kFarewell / kFarewellTick; left > 0 && !open().empty(); --left)
    std::this_thread::sleep_for(kFarewellTick);
  MHD_stop_daemon(daemon_);
}

HttpServer::Exchange HttpServer::exchange_of(MHD_Connection* connection) {
  const std::lock_guard lock(mutex_);
  return exchanges_.at(connection);
}

// Those whose request has been received, and whose answer has not been sent.
std::vector<HttpServer::Exchange> HttpServer::open() {
  const std::lock_guard lock(mutex_);
  std::vector<Exchange> open;
  for (const auto& [connection, exchange] : exchanges_)
    if (exchange->deadline_.load() == kReceived) open.push_back(exchange);
  return open;
}

bool HttpServer::listens_on_all() const { return maki::listens_on_all(bytes_of_host(host_of(options_.address))); }

std::string HttpServer::url() const { return fmt::format("http://{}:{}/", host_of(options_.address), options_.port); }

// Called once for the head of a request, for each part of its body, and at its end until there is an answer.
MHD_Result HttpServer::handle(void* cls, MHD_Connection* connection, const char* url, const char* method, const char*,
                              const char* data, std::size_t* size, void** state) {
  auto& server = *static_cast<HttpServer*>(cls);
  const Exchange exchange = server.exchange_of(connection);
  try {
    if (std::exchange(*state, exchange.get()) == nullptr) {
      server.check_head(*exchange, url, method);
      if (method != std::string_view("OPTIONS")) return MHD_YES;
      exchange->answer(MHD_HTTP_NO_CONTENT, "text/plain", "");
    } else if (*size > 0) {
      exchange->body_.append(data, std::exchange(*size, 0));
      return MHD_YES;
    } else if (exchange->deadline_.exchange(kReceived) != kReceived) {
      if (server.stopping_) throw HttpError(MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends");
      server.route(method, url)->handle(exchange);
    }
  } catch (const std::exception&) {
    exchange->refuse(error_for_client());
  }
  exchange->deadline_ = kReceived;
  return exchange->send(server.methods(url));
}

void HttpServer::check_head(const HttpExchange& exchange, std::string_view path, std::string_view method) const {
  const auto require = [](bool good, int status, const char* sentence) {
    if (!good) throw HttpError(status, sentence);
  };
  const std::string host = exchange.header("Host");
  require(is_own_host(host, options_.address), MHD_HTTP_FORBIDDEN,
          listens_on_all() ? "Host: must be localhost or a numeric address of this machine; its name is refused"
                           : "Host: must be localhost, 127.0.0.1, [::1] or the address that is served");
  const char* const origin = MHD_lookup_connection_value(exchange.connection_, MHD_HEADER_KIND, "Origin");
  require(origin == nullptr || lower_case(origin) == lower_case("http://" + host), MHD_HTTP_FORBIDDEN,
          "Origin: requests of other pages are refused");
  require(!methods(path).empty(), MHD_HTTP_NOT_FOUND, "there is nothing at this path");
  if (method == "OPTIONS") return;
  const HttpRoute* const found = route(method, path);
  require(found != nullptr, MHD_HTTP_METHOD_NOT_ALLOWED, "the method must be one of those that Allow names");
  // Browsers send no Origin with requests of images and scripts, which any page may contain, but say this of them.
  const std::string site = exchange.header("Sec-Fetch-Site");
  require(!found->needs_token || site.empty() || site == "same-origin" || site == "none", MHD_HTTP_FORBIDDEN,
          "Sec-Fetch-Site: requests of other pages are refused");
  std::string given = exchange.header("Authorization");
  given.replace(0, given.find(' '), lower_case(given.substr(0, given.find(' '))));
  require(!found->needs_token || options_.token.empty() || are_equal(given, "bearer " + options_.token),
          MHD_HTTP_UNAUTHORIZED, "Authorization: must be Bearer and the token that the server printed");
  // A body without a length could have any.
  require(MHD_lookup_connection_value(exchange.connection_, MHD_HEADER_KIND, "Transfer-Encoding") == nullptr,
          MHD_HTTP_LENGTH_REQUIRED, "Content-Length: must be given");
  require(std::strtoull(exchange.header("Content-Length").c_str(), nullptr, 10) <= kMaxHttpBody,
          MHD_HTTP_CONTENT_TOO_LARGE, "the body must have at most 1 MiB");
  const std::string type = exchange.header("Content-Type");
  require(method != "POST" || lower_case(type.substr(0, type.find_first_of("; "))) == kJsonType,
          MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "Content-Type: must be application/json");
}

void HttpServer::completed(void* cls, MHD_Connection* connection, void**, MHD_RequestTerminationCode) {
  auto& server = *static_cast<HttpServer*>(cls);
  auto exchange = std::make_shared<HttpExchange>(connection);  // of the next request
  {
    const std::lock_guard lock(server.mutex_);
    server.exchanges_[connection].swap(exchange);
  }
  exchange->close();
}

void HttpServer::connected(void* cls, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode code) {
  auto& server = *static_cast<HttpServer*>(cls);
  const std::lock_guard lock(server.mutex_);
  if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
    server.exchanges_.erase(connection);
  } else {
    server.exchanges_[connection] = std::make_shared<HttpExchange>(connection);
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

void HttpServer::keep_time() {
  constexpr std::string_view kTooSlow =
      "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  const std::lock_guard lock(mutex_);
  for (const auto& [connection, exchange] : exchanges_) {
    if (HttpExchange::Clock::now() < exchange->deadline_.load()) continue;
    // Nothing else is being sent on a connection whose request has not been received.
    const int socket = socket_of(connection);
    ::send(socket, kTooSlow.data(), kTooSlow.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(socket, SHUT_RDWR);
  }
}

}  // namespace maki
