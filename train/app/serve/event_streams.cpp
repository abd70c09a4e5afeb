#include "train/app/serve/event_streams.h"

#include <exception>
#include <fcntl.h>
#include <fmt/format.h>

#include "data/io/descriptor.h"
#include "data/io/file.h"
#include "train/app/report.h"
#include "train/run/checkpoint.h"
#include "train/run/metrics_line.h"

namespace maki {
namespace {

constexpr std::size_t kMaxLineBytes = 256 << 10;  // of metrics.jsonl, far more than any line has

constexpr int kCallsUntilComment = 60;  // 15 s

// Whether a line begins at this offset.
bool begins_line(const Descriptor& file, std::int64_t at) {
  std::byte before{};
  return at == 0 || (file.read_at(static_cast<std::uint64_t>(at - 1), {&before, 1}) == 1 && before == std::byte{'\n'});
}

// What the page shows of a run beside its measurements and what the list of runs says.
Json start_json(const RunDirectory& run) {
  Json facts{{"best_possible_loss", nullptr}};
  try {
    const double best = read_state(ContainerReader(run.checkpoint_file(run.checkpoints().at(0)))).best_possible_loss;
    if (best > 0) facts["best_possible_loss"] = best;
  } catch (const std::exception&) {
    // What cannot be read stays unknown.
  }
  return facts;
}

}  // namespace

void EventStreams::add(const RunDirectory& run, std::int64_t cursor, std::shared_ptr<HttpExchange> exchange) {
  exchange->begin_stream();
  const std::lock_guard lock(mutex_);
  streams_.push_back({run, cursor, std::move(exchange)});
}

void EventStreams::follow() {
  const std::lock_guard lock(mutex_);
  streams_.remove_if([](Stream& stream) { return !follow(stream); });
}

// Returns whether the stream goes on.
bool EventStreams::follow(Stream& stream) {
  if (stream.exchange->gone()) return false;
  try {
    if (!std::exchange(stream.started, true))
      stream.exchange->write("event: start\ndata: " + json_text(start_json(stream.run)) + "\n");
    if (file_exists(stream.run.metrics_file())) send_lines(stream);
  } catch (const std::exception&) {
    // The file is being replaced, or cannot be read: tried again the next time.
  }
  // A line now and then, because proxies close a connection on which nothing is sent.
  if (++stream.idle % kCallsUntilComment == 0) stream.exchange->write(":\n\n");
  return true;
}

void EventStreams::send_lines(Stream& stream) {
  const Descriptor file(posix_file_system(), stream.run.metrics_file(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const struct stat status = file.status();
  const bool is_new = stream.file != status.st_ino;
  if ((is_new && (stream.file != 0 || !begins_line(file, stream.cursor))) || stream.cursor > status.st_size) {
    stream.cursor = 0;
    stream.in_long_line = false;
    stream.exchange->write("event: reset\ndata: {}\n\n");
  }
  stream.file = status.st_ino;
  std::string block(kMaxLineBytes, '\0'), events;
  while (stream.cursor < status.st_size && stream.exchange->unsent() < kEnoughUnsent) {
    const std::size_t n = file.read_at(static_cast<std::uint64_t>(stream.cursor),
                                       {reinterpret_cast<std::byte*>(block.data()), block.size()});
    const std::string_view read(block.data(), n);
    std::size_t at = 0;
    for (std::size_t end; (end = read.find('\n', at)) != std::string_view::npos; at = end + 1) {
      const std::string_view line = read.substr(at, end - at);
      if (!std::exchange(stream.in_long_line, false) && read_metrics_line(line))
        events += fmt::format("id: {}\ndata: {}\n\n", stream.cursor + static_cast<std::int64_t>(end) + 1, line);
    }
    if (at == 0 && n < block.size()) break;  // a line that is still being written
    if (at == 0) {
      stream.in_long_line = true;
      at = n;
    }
    stream.cursor += static_cast<std::int64_t>(at);
    stream.exchange->write(std::exchange(events, ""));
    stream.idle = 0;
  }
}

}  // namespace maki
