#include "train/app/serve/routes.h"

#include "data/io/number.h"
#include "data/io/system_random.h"
#include "train/app/draw/words.h"
#include "train/app/reading.h"
#include "train/app/report.h"
#include "train/app/report/sections.h"
#include "train/app/serve/inside_json.h"
#include "train/app/serve/page_text.h"

namespace maki {
namespace {

using Exchange = std::shared_ptr<HttpExchange>;

HttpRoute page(const char* path, const char* type, std::string_view content) {
  return {"GET", path, false,
          [type, content](const Exchange& exchange) { exchange->answer(200, type, std::string(content)); }};
}

}  // namespace

std::vector<HttpRoute> routes(Served& served) {
  const auto json = [&served](std::string (ServedRuns::*facts)() const) {
    return [&served, facts](const Exchange& exchange) { exchange->answer(200, kJsonType, (served.runs.*facts)()); };
  };
  const auto events = [&served](const Exchange& exchange) {
    // A browser that connects again says in the head how far it has come.
    std::string cursor = exchange->header("Last-Event-ID");
    if (cursor.empty()) cursor = exchange->parameter("after");
    served.events.add(served.runs.run(exchange->parameter("run"), "run"),
                      cursor.empty() ? 0 : parse_integer("after", cursor, 0, kMaxSeed), exchange);
  };
  const auto complete = [&served](const Exchange& exchange) {
    served.engine.complete(parse_completion(exchange->body(), static_cast<std::uint64_t>(fresh_seed())), exchange);
  };
  const auto inside = [&served](const Exchange& exchange) {
    const InsideRequest asked = parse_inside_request(exchange->body());
    served.engine.with_model(asked.model, exchange, [asked, exchange](const auto& model) {
      const std::vector<std::int32_t> ids = encode_text(*model, asked.text, "text", Unknown::refuse);
      exchange->answer(200, kJsonType, inside_json(asked, *model, look_inside(*model, ids, asked.options)));
    });
  };
  const auto report = [&served](const Exchange& exchange) {
    const std::string lang = exchange->parameter("lang"),
                      path = served.runs.run(exchange->parameter("run"), "run").path();
    const PageLanguage language(words_in(lang.empty() ? "en" : lang).name);
    served.engine.compute(exchange, [language, path, exchange] {
      exchange->answer(200, kJsonType,
                       json_text(Json{{"html", report_sections(read_measured_runs({path}), language)},
                                      {"style", kReportStyle},
                                      {"language", language.name()}}));
    });
  };
  const auto no_chat = [](const Exchange&) {
    fail("messages: these models continue a text and were not trained on conversations; use /v1/completions");
  };
  return {page("/", "text/html; charset=utf-8", kPageHtml),
          page("/style.css", "text/css; charset=utf-8", kPageStyle),
          page("/page.js", "text/javascript; charset=utf-8", kPageScript),
          {"GET", "/v1/models", true, json(&ServedRuns::models_json)},
          {"POST", "/v1/completions", true, complete},
          {"POST", "/v1/chat/completions", true, no_chat},
          {"GET", "/api/runs", true, json(&ServedRuns::runs_json)},
          {"GET", "/api/events", true, events},
          {"GET", "/api/report", true, report},
          {"POST", "/api/inside", true, inside}};
}

}  // namespace maki
