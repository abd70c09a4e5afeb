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

TEST_CASE("what is written to a client that does not read is kept, and more than four megabytes end the stream") {
  constexpr std::size_t kMost = 4 << 20;
  HttpExchange exchange(nullptr);
  exchange.write(std::string(kMost, 'x'));
  REQUIRE(exchange.unsent() == kMost);
  REQUIRE_FALSE(exchange.gone());
  exchange.write("y");
  REQUIRE(exchange.gone());
  const std::size_t left = exchange.unsent();
  exchange.write("z");
  REQUIRE(exchange.unsent() == left);
  HttpExchange ended(nullptr);
  ended.write("x");
  ended.end();
  ended.write("y");
  REQUIRE(ended.unsent() == 1);
  REQUIRE_FALSE(ended.gone());
}
