// What a server answers: the page, the interface for programs, and what the page asks for.
#pragma once

#include <vector>

#include "train/app/serve/engine.h"
#include "train/app/serve/event_streams.h"
#include "train/app/serve/http.h"
#include "train/app/serve/served_runs.h"

namespace maki {

/// What the routes use. Must outlive the server.
struct Served {
  Served(const std::string& path, WeightNumbers weights) : runs(path), engine(runs, weights) {}
  ServedRuns runs;
  EventStreams events;
  Engine engine;
};

std::vector<HttpRoute> routes(Served& served);

}  // namespace maki
