// What an exchange with a client of `maki serve` does without one, and what errors are to clients.
#include "train/app/serve/http.h"

#include <new>

#include "autograd/core/storage.h"
#include "data/io/error.h"
#include "tests/catch.h"

using namespace maki;

namespace {

template <class Thrown>
HttpError seen_by_client(const Thrown& thrown) {
  try {
    throw thrown;
  } catch (const std::exception&) {
    return error_for_client();
  }
}

}  // namespace

TEST_CASE("an error is the fault of the request, of the server, or passes: 4xx, 500 or 503") {
  REQUIRE(seen_by_client(HttpError(MHD_HTTP_NOT_FOUND, "none")).status == 404);
  REQUIRE(seen_by_client(Error("a sentence")).status == 400);
  REQUIRE(seen_by_client(CorpusError("a sentence")).status == 400);
  REQUIRE(seen_by_client(CheckpointError("a sentence")).status == 500);
  REQUIRE(seen_by_client(std::runtime_error("a sentence")).status == 500);
  REQUIRE(seen_by_client(OutOfMemoryError("a sentence")).status == 503);
  REQUIRE(seen_by_client(Error("a sentence")).what() == std::string("a sentence"));
  const HttpError none = seen_by_client(std::bad_alloc());
  REQUIRE(none.status == 503);
  REQUIRE_THAT(none.what(), ContainsSubstring("not enough memory"));
}

TEST_CASE("what is written to a client that does not read is kept, however much it is") {
  HttpExchange exchange(nullptr);
  std::size_t written = 0;
  for (const std::size_t size : {std::size_t{4} << 20, std::size_t{1}, std::size_t{4} << 20}) {
    exchange.write(std::string(size, 'x'));
    REQUIRE(exchange.unsent() == (written += size));
    REQUIRE_FALSE(exchange.gone());
  }
  exchange.end();
  exchange.write("y");
  REQUIRE(exchange.unsent() == written);
  REQUIRE_FALSE(exchange.gone());
}

TEST_CASE("a host means a server if it is its address in any spelling, or any address if it listens on all") {
  const std::tuple<const char*, const char*, bool> rows[] = {{"127.0.0.1", "localhost", true},
                                                             {"127.0.0.1", "LocalHost:80", true},
                                                             {"127.0.0.1", "[0:0::1]:80", true},
                                                             {"127.0.0.1", "[fd00::2]", false},
                                                             {"fd00::2", "[FD00:0::2]:8270", true},
                                                             {"fd00::2", "[fd00::2]", true},
                                                             {"fd00::2", "[fd00::3]", false},
                                                             {"fd00::2", "fd00::2", false},
                                                             {"fe80::1%lo", "[fe80::1]:8270", true},
                                                             {"::1", "[::2]", false},
                                                             {"::", "[fd00::2]:8391", true},
                                                             {"::", "10.0.0.1", true},
                                                             {"::", "example.org:8391", false},
                                                             {"::", "[example.org]", false},
                                                             {"::", "[]", false},
                                                             {"::", "[", false},
                                                             {"::", "", false},
                                                             {"0.0.0.0", "10.0.0.1:8270", true},
                                                             {"0.0.0.0", "[fd00::2]", true},
                                                             {"0.0.0.0", "example.org", false},
                                                             {"10.0.0.1", "0.0.0.0", false}};
  for (const auto& [address, host, own] : rows) {
    INFO(address << " " << host);
    REQUIRE(is_own_host(host, address) == own);
  }
  const HttpServer server({.address = "127.1", .port = 0, .token = ""}, {});
  REQUIRE(server.url().starts_with("http://127.0.0.1:"));
}
