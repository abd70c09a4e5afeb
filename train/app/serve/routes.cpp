#include "train/app/serve/routes.h"

#include "data/io/number.h"
#include "train/app/serve/page_files.h"

namespace maki {
namespace {

using Exchange = std::shared_ptr<HttpExchange>;

constexpr const char* kJson = "application/json";

std::string_view required(const HttpRequest& request, const char* name) {
  const auto found = request.query.find(name);
  check(found != request.query.end(), "{0}: must be given, as in {1}?{0}=NAME", name, request.path);
  return found->second;
}

// An event stream that a browser connects again says how far it has come.
std::int64_t cursor(const HttpRequest& request) {
  const auto after = request.query.find("after");
  std::string text = after == request.query.end() ? "0" : after->second;
  if (!request.last_event_id.empty()) text = request.last_event_id;
  return parse_integer("after", text, 0, kMaxSeed);
}

void page(const HttpRequest& request, const Exchange& exchange) {
  const std::optional<PageFile> file = page_file(request.path);
  if (!file) throw HttpError(404, "there is nothing at this path");
  exchange->answer(200, file->type, std::string(file->content));
}

}  // namespace

std::vector<HttpRoute> routes(Served& served) {
  const auto json = [&served](std::string (ServedRuns::*facts)() const) {
    return [&served, facts](const HttpRequest&, const Exchange& exchange) {
      exchange->answer(200, kJson, (served.runs.*facts)());
    };
  };
  const auto events = [&served](const HttpRequest& request, const Exchange& exchange) {
    served.events.add(served.runs.run(required(request, "run")), cursor(request), exchange);
  };
  const auto complete = [&served](const HttpRequest& request, const Exchange& exchange) {
    CompletionRequest completion = parse_completion(request.body);
    if (completion.model.empty()) completion.model = served.runs.only_name();
    served.engine.complete(std::move(completion), exchange);
  };
  const auto no_chat = [](const HttpRequest&, const Exchange&) {
    fail("messages: these models continue a text and were not trained on conversations; use /v1/completions");
  };
  return {{"GET", "/", false, page},
          {"GET", "/style.css", false, page},
          {"GET", "/page.js", false, page},
          {"GET", "/v1/models", true, json(&ServedRuns::models_json)},
          {"POST", "/v1/completions", true, complete},
          {"POST", "/v1/chat/completions", true, no_chat},
          {"GET", "/api/runs", true, json(&ServedRuns::runs_json)},
          {"GET", "/api/events", true, events}};
}

}  // namespace maki
