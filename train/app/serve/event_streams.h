// GET /api/events: the lines of metrics.jsonl as server-sent events, those that there are and then those that come.
//
// Thread safety: may be used by several threads.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <sys/types.h>

#include "train/app/serve/http.h"
#include "train/run/run_directory.h"

namespace maki {

class EventStreams {
 public:
  /// Follows a run from a cursor, a byte offset in its metrics.jsonl.
  void add(const RunDirectory& run, std::int64_t cursor, std::shared_ptr<HttpExchange> exchange);
  /// Sends what has been written since the last call. Does not throw.
  void follow();

 private:
  struct Stream {
    RunDirectory run;
    std::int64_t cursor;
    std::shared_ptr<HttpExchange> exchange;
    ino_t file = 0;  // which was read last; a resumed run replaces it
    bool started = false, in_long_line = false;
    int idle = 0;  // calls of follow() since something was sent
  };
  static bool follow(Stream& stream);
  static void send_lines(Stream& stream);

  std::mutex mutex_;
  std::list<Stream> streams_;
};

}  // namespace maki
