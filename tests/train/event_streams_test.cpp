// The measurements of a run as server-sent events. Nobody takes what is written here, so that its size is known.
#include "train/app/serve/event_streams.h"

#include <fmt/format.h>
#include <fstream>

#include "tests/files.h"
#include "tests/train/small_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::string kLines[] = {R"({"kind":"train","step":1,"loss":1.5})", R"({"kind":"train","step":2,"loss":1.25})",
                              R"({"kind":"eval","step":2,"train_loss":1.25,"val_loss":1.375})"};
constexpr std::string_view kReset = "event: reset\ndata: {}\n\n", kComment = ":\n\n";

struct RunToFollow {
  RunToFollow() { std::filesystem::create_directory(run.path()); }
  void append(const std::string& text) const { std::ofstream(run.metrics_file(), std::ios::app) << text; }
  TemporaryFolder folder;
  RunDirectory run{folder / "run"};
};

struct FollowedStream {
  FollowedStream(const RunDirectory& run, std::size_t cursor) {
    streams.add(run, static_cast<std::int64_t>(cursor), exchange);
  }
  // How many bytes one call writes.
  std::size_t follow() {
    const std::size_t before = exchange->unsent();
    streams.follow();
    return exchange->unsent() - before;
  }
  std::shared_ptr<HttpExchange> exchange = std::make_shared<HttpExchange>(nullptr);
  EventStreams streams;
};

// The size of the event of a line that ends at this offset.
std::size_t event_size(const std::string& line, std::size_t end) {
  return fmt::format("id: {}\ndata: {}\n\n", end, line).size();
}

}  // namespace

TEST_CASE("a stream of events continues where a line begins, and from the start of a file that is another one") {
  const RunToFollow one;
  one.append(kLines[0] + "\n" + kLines[1] + "\n");
  const std::size_t first = kLines[0].size() + 1, both = first + kLines[1].size() + 1;
  const std::size_t events[] = {event_size(kLines[0], first), event_size(kLines[1], both)};
  FollowedStream stream(one.run, both);
  const std::size_t start = stream.follow();  // the event that begins every stream
  REQUIRE(start > 0);
  const auto written_from = [&](std::size_t cursor) { return FollowedStream(one.run, cursor).follow() - start; };
  REQUIRE(written_from(0) == events[0] + events[1]);
  REQUIRE(written_from(first) == events[1]);
  for (const std::size_t inside : {std::size_t{1}, first - 1, first + 1, both - 1, both + 1, both + 100})
    REQUIRE(written_from(inside) == kReset.size() + events[0] + events[1]);

  REQUIRE(stream.follow() == 0);
  one.append(kLines[2]);
  REQUIRE(stream.follow() == 0);  // the line is still being written
  one.append("\n");
  const std::size_t all = both + kLines[2].size() + 1;
  REQUIRE(stream.follow() == event_size(kLines[2], all));
  REQUIRE(stream.follow() == 0);
  // A run that is resumed replaces its file, here by one with the same lines.
  const std::string next = one.folder.write("next", read_bytes(one.run.metrics_file()));
  std::filesystem::rename(next, one.run.metrics_file());
  REQUIRE(stream.follow() == kReset.size() + events[0] + events[1] + event_size(kLines[2], all));
  REQUIRE(stream.follow() == 0);
}

TEST_CASE("a stream on which nothing is sent gets a comment with every sixtieth call") {
  const RunToFollow one;
  FollowedStream stream(one.run, 0);
  REQUIRE(stream.follow() > 0);
  const auto require_comment_after = [&](int silent) {
    for (int i = 0; i < silent; ++i) REQUIRE(stream.follow() == 0);
    REQUIRE(stream.follow() == kComment.size());
  };
  require_comment_after(58);
  require_comment_after(59);
  REQUIRE(stream.follow() == 0);
  one.append(kLines[0] + "\n");
  REQUIRE(stream.follow() == event_size(kLines[0], kLines[0].size() + 1));
  require_comment_after(58);
}

TEST_CASE("a stream that its reader does not take stops at about a megabyte") {
  constexpr std::size_t kMegabyte = 1 << 20;
  const RunToFollow one;
  const std::string line = R"({"kind":"sample","step":1,"text":")" + std::string(10'000, 'x') + "\"}\n";
  std::string lines;
  while (lines.size() < 3 * kMegabyte) lines += line;
  one.append(lines);
  FollowedStream stream(one.run, 0);
  const std::size_t written = stream.follow();
  REQUIRE(written == stream.exchange->unsent());
  REQUIRE(written >= kMegabyte);
  REQUIRE(written < kMegabyte + kMegabyte / 2);
  REQUIRE(stream.follow() == 0);
}

TEST_CASE("a stream of events begins with the lowest possible loss, if that is known") {
  const RunToFollow one;
  const auto start = [&] { return FollowedStream(one.run, 0).follow(); };
  const std::size_t unknown = start();
  std::filesystem::create_directory(std::filesystem::path(one.run.checkpoint_file(2)).parent_path());
  write_smallest(one.run.checkpoint_file(2));
  REQUIRE(start() == unknown);
  write_smallest(one.run.checkpoint_file(2), [](CheckpointState& state) { state.best_possible_loss = 0.625; });
  REQUIRE(start() == unknown - std::string("null").size() + std::string("0.625").size());
}
