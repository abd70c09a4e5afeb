// `maki serve` against requests that it must refuse.
#include <fmt/format.h>
#include <microhttpd.h>

#include "tests/cli/http_client.h"
#include "tests/cli/trained_run.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

constexpr const char* kJsonType = "Content-Type: application/json\r\n";

int status_with(int port, const std::string& headers, const std::string& path = "/api/runs") {
  return request(port, "GET", path, "", headers).status;
}

}  // namespace

TEST_CASE("requests for another host or from another page are refused", "[serve_safety_test]") {
  const TrainedRun run;
  serve({run.path}, [&](int port, const std::string& printed) {
    REQUIRE(printed == fmt::format("http://127.0.0.1:{}/\n", port));
    const std::string own = fmt::format("localhost:{}", port);
    for (const std::string& host :
         {own, std::string("localhost"), std::string("LocalHost"), fmt::format("127.0.0.1:{}", port),
          fmt::format("[::1]:{}", port), std::string("[::1]")})
      REQUIRE(status_with(port, "Host: " + host + "\r\n") == 200);
    for (const char* host : {"example.org", "localhost.example.org", "127.0.0.1.example.org", "::1", "[::2]", "0.0.0.0",
                             "localhost:", "localhost:x", "192.168.0.1", "localhost@example.org", "LOCALHOST:1:2"})
      REQUIRE(status_with(port, fmt::format("Host: {}\r\n", host)) == 403);
    REQUIRE(status_with(port, "Host:\r\n") == 403);
    const std::string host = "Host: " + own + "\r\n";
    REQUIRE(status_with(port, host + "Origin: http://" + own + "\r\n") == 200);
    for (const char* origin : {"http://example.org", "null", "https://localhost", "http://localhost:1", ""})
      REQUIRE(status_with(port, host + fmt::format("Origin: {}\r\n", origin)) == 403);
    REQUIRE(status_with(port, fmt::format("Host: LOCALHOST:{}\r\nOrigin: http://{}\r\n", port, own)) == 200);
    // What a page contains, such as an image, is asked for without Origin.
    for (const auto& [site, is_own] :
         {std::pair{"same-origin", true}, {"none", true}, {"same-site", false}, {"cross-site", false}}) {
      const std::string header = fmt::format("Sec-Fetch-Site: {}\r\n", site);
      REQUIRE(status_with(port, header) == (is_own ? 200 : 403));
      REQUIRE(status_with(port, header, "/") == 200);  // a link to the page
    }
    const Reply page = request(port, "GET", "/");
    REQUIRE(page.status == 200);
    for (const char* header : {"Content-Security-Policy: default-src 'self'", "X-Content-Type-Options: nosniff",
                               "Referrer-Policy: no-referrer", "Cache-Control: no-store"})
      REQUIRE_THAT(page.head, ContainsSubstring(header));
    REQUIRE_THAT(page.head, !ContainsSubstring("Access-Control"));
  });
}

TEST_CASE("methods, paths, types and sizes are checked", "[serve_safety_test]") {
  const TrainedRun run;
  serve({run.path}, [&](int port, const std::string&) {
    for (const char* path :
         {"/nothing", "/../etc/passwd", "/%2e%2e/etc/passwd", "//", "/api/runs/", "/v1", "/index.html", "/page.js/",
          "/../page.js", "/style.css%00", "/checkpoints/last", "/config.toml"}) {
      INFO(path);
      REQUIRE(request(port, "GET", path).status >= 400);
      REQUIRE(request(port, "GET", path).status < 500);
    }
    for (const char* name : {"../run", "", "run/checkpoints", "/etc", "run%00", "."}) {
      INFO(name);
      REQUIRE(request(port, "GET", fmt::format("/api/events?run={}", name)).status == 404);
    }
    const Reply other = request(port, "DELETE", "/api/runs");
    REQUIRE(other.status == 405);
    REQUIRE_THAT(other.head, ContainsSubstring("Allow: GET, HEAD, OPTIONS"));
    REQUIRE(request(port, "GET", "/v1/completions").status == 405);
    REQUIRE(request(port, "OPTIONS", "/v1/completions").status == 204);
    const Reply head = request(port, "HEAD", "/api/runs");
    REQUIRE(head.status == 200);
    REQUIRE(head.body.empty());
    const std::string body = R"({"model":"run","max_tokens":1})";
    for (const char* type : {"", "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n",
                             "Content-Type: application/jsonx\r\n"})
      REQUIRE(request(port, "POST", "/v1/completions", body, type).status == 415);
    for (const char* type : {"application/json; charset=utf-8", "Application/JSON"})
      REQUIRE(request(port, "POST", "/v1/completions", body, fmt::format("Content-Type: {}\r\n", type)).status == 200);
    REQUIRE(request(port, "POST", "/v1/completions", std::string((1 << 20) + 1, ' '), kJsonType).status == 413);
    REQUIRE(request(port, "POST", "/v1/completions", std::string(1 << 20, ' '), kJsonType).status == 400);
    REQUIRE(status_with(port, fmt::format("X: {}\r\n", std::string(40'000, 'a'))) == 431);
    // From version 1.0 on, libmicrohttpd itself answers some of these, with 400.
    for (const char* encoding : {"Transfer-Encoding: chunked\r\n", "Transfer-Encoding:\r\n"}) {
      for (const int status : {request(port, "POST", "/v1/completions", body, std::string(kJsonType) + encoding).status,
                               status_with(port, encoding)})
        REQUIRE((status == 411 || (status == 400 && MHD_VERSION >= 0x01000000)));
    }
    REQUIRE(status_with(port, fmt::format("Content-Length: {}\r\n", (1 << 20) + 1)) == 413);
    REQUIRE(request(port, "GET", "/api/runs").status == 200);
  });
}

TEST_CASE("values that are nested as deeply as a body allows are refused", "[serve_safety_test]") {
  const TrainedRun run;
  serve({run.path}, [&](int port, const std::string&) {
    const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
    for (const char* const path : {"/v1/completions", "/api/inside"}) {
      for (const char* const name : {"model", "prompt", "text", "stop", "other"}) {
        INFO(path << " " << name);
        const std::string body = fmt::format(R"({{"{}":{}}})", name, deep);
        REQUIRE(request(port, "POST", path, body, kJsonType).status == 400);
      }
      REQUIRE(request(port, "POST", path, deep, kJsonType).status == 400);
    }
  });
}

TEST_CASE("bodies of very many objects or fields are refused", "[serve_safety_test]") {
  const TrainedRun run;
  std::string objects = R"({"prompt":[{})", fields = R"({"model":"run")";
  while (objects.size() < 1'000'000) objects += ",{}";
  for (int i = 0; fields.size() < 1'000'000; ++i) fields += fmt::format(R"(,"{}":1)", i);
  serve({run.path}, [&](int port, const std::string&) {
    for (const char* const path : {"/v1/completions", "/api/inside"}) {
      for (const std::string& body : {objects + "]}", fields + "}"}) {
        const Reply refused = request(port, "POST", path, body, kJsonType);
        REQUIRE(refused.status == 400);
        REQUIRE_THAT(refused.body, ContainsSubstring("body: must have at most 64 fields and objects"));
      }
    }
  });
}

TEST_CASE("a server on another address wants its token", "[serve_safety_test]") {
  const TrainedRun run;
  serve({run.path, "--host", "0.0.0.0"}, [&](int port, const std::string& printed) {
    const std::size_t mark = printed.find("#token=");
    REQUIRE(mark != std::string::npos);
    const std::string token = printed.substr(mark + 7, printed.size() - mark - 8);
    REQUIRE(token.size() == 32);
    REQUIRE(status_with(port, "Host: 10.0.0.1:1\r\n", "/") == 200);
    const Reply named = request(port, "GET", "/", "", "Host: example.org\r\n");
    REQUIRE(named.status == 403);
    REQUIRE_THAT(named.body, ContainsSubstring("a numeric address of this machine"));
    for (const char* path : {"/api/runs", "/v1/models", "/api/events?run=run"}) {
      REQUIRE(status_with(port, "", path) == 401);
      REQUIRE(status_with(port, "Authorization: Bearer " + token.substr(1) + "\r\n", path) == 401);
      REQUIRE(status_with(port, "Authorization: Bearer " + token + "x\r\n", path) == 401);
      for (const std::size_t at : {std::size_t{0}, token.size() - 1}) {  // of the same length
        std::string other = token;
        other[at] = other[at] == '0' ? '1' : '0';
        REQUIRE(status_with(port, "Authorization: Bearer " + other + "\r\n", path) == 401);
      }
      REQUIRE(status_with(port, "Authorization: " + token + "\r\n", path) == 401);
    }
    REQUIRE(status_with(port, "Authorization: Bearer " + token + "\r\n") == 200);
    REQUIRE(status_with(port, "Authorization: bearer " + token + "\r\n") == 200);
    REQUIRE(complete(port, {{"model", "run"}}).status == 401);
  });
  serve({run.path, "--token", "12345678"}, [&](int port, const std::string& printed) {
    REQUIRE_THAT(printed, ContainsSubstring("#token=12345678"));
    REQUIRE(status_with(port, "") == 401);
    REQUIRE(status_with(port, "Authorization: Bearer 12345678\r\n") == 200);
  });
}

TEST_CASE("requests that are cut off, and streams whose reader goes away, leave the server as it was",
          "[serve_safety_test]") {
  const TrainedRun run;
  serve({run.path}, [&](int port, const std::string&) {
    const std::string body = R"({"model":"run","max_tokens":100000,"stream":true})";
    const std::string whole = fmt::format(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        "{}\r\n\r\n{}",
        body.size(), body);
    for (std::size_t n = 0; n < whole.size(); n += 7) Connection(port).send(whole.substr(0, n));
    // More than there may be connections.
    for (int i = 0; i < 200; ++i) {
      const Connection stream(port);
      stream.send(whole);
      if (i % 2 == 0) REQUIRE_THAT(stream.read_until("data: "), ContainsSubstring("text/event-stream"));
    }
    const std::string later = whole.substr(0, whole.find("Content-Length")) + "Content-Length: 35\r\n\r\n" +
                              R"({"model":"run","max_tokens":100000})";
    for (int i = 0; i < 200; ++i) Connection(port).send(later);
    for (int i = 0; i < 200; ++i) {
      const Connection events(port);
      events.send("GET /api/events?run=run HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    // It answers although hundreds of texts of a hundred thousand tokens were begun.
    const json answer = complete(port, {{"model", "run"}, {"max_tokens", 2}}).json();
    REQUIRE(answer.at("usage").at("completion_tokens") == 2);
  });
}
