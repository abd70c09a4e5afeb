// `maki serve`: what it says about runs, and completions against `maki generate` with the same options.
#include <fmt/format.h>
#include <future>
#include <numeric>
#include <set>

#include "autograd/core/storage.h"
#include "tests/cli/http_client.h"
#include "tests/cli/json_lines.h"
#include "tests/cli/require_refused.h"
#include "tests/cli/trained_run.h"
#include "tests/train/container_file.h"
#include "train/app/serve/completion_answer.h"
#include "train/app/serve/engine.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

std::vector<json> generated(const std::string& run, const Arguments& options) {
  return json_lines(require_ok(run_maki(Arguments{"generate", run, "--json"} + options)).out);
}

// The text of choice i of a stream, its reason for the end, and its log-probabilities.
json joined(const Reply& reply, int index) {
  json all{{"text", ""}, {"reason", nullptr}, {"logprobs", json::array()}};
  for (const std::string& event : reply.events()) {
    if (event == "[DONE]") continue;
    const json part = json::parse(event);
    for (const json& choice : part.at("choices")) {
      if (choice.at("index") != index) continue;
      REQUIRE(all["reason"].is_null());
      all["text"] = all["text"].get<std::string>() + choice.at("text").get<std::string>();
      all["reason"] = choice.at("finish_reason");
      if (!choice.at("logprobs").is_null()) {
        for (const json& value : choice["logprobs"]["token_logprobs"]) all["logprobs"].push_back(value);
      }
    }
  }
  return all;
}

int port_of(const maki::HttpServer& server) { return std::stoi(server.url().substr(server.url().rfind(':') + 1)); }

// There is no memory for its states.
class NoMemory final : public maki::Generator {
 public:
  const char* kind() const override { return "no memory"; }
  maki::Tensor loss(const maki::Batch&, const maki::CrossEntropy&, maki::State*) const override { return {}; }
  double attention_flop(std::int64_t) const override { return 0; }
  std::int64_t activation_bytes(std::int64_t, std::int64_t) const override { return 0; }
  std::unique_ptr<maki::State> start(std::int64_t, const maki::Tensor&, const maki::Tensor&) const override {
    throw maki::OutOfMemoryError("no memory is left");
  }
  maki::Tensor next_logits(const maki::Tensor&, maki::State&) const override { return {}; }
};

}  // namespace

TEST_CASE("completions are what generate writes, whole and as a stream", "[serve_test]") {
  const TrainedRun run;
  const Arguments options = {"--max-tokens", "30", "--seed", "5", "--temperature", "0.9", "--logprobs", "2"};
  const std::vector<json> expected = generated(run.path, Arguments{"--prompt", "the ", "-n", "3"} + options);
  const Finished ended = serve({run.path}, [&](int port, const std::string&) {
    json body{{"model", "run"},     {"prompt", "the "}, {"max_tokens", 30}, {"seed", 5},
              {"temperature", 0.9}, {"n", 3},           {"logprobs", 2}};
    const Reply whole = complete(port, body);
    REQUIRE(whole.status == 200);
    const json answer = whole.json();
    REQUIRE(answer.at("object") == "text_completion");
    REQUIRE_THAT(answer.at("id").get<std::string>(), ContainsSubstring("cmpl-"));
    REQUIRE((answer.at("model") == "run" && answer.at("step") == 30 && answer.at("seed") == 5));
    REQUIRE(answer.at("created") > 1'600'000'000);
    REQUIRE(answer.at("usage") == json{{"prompt_tokens", 4}, {"completion_tokens", 90}, {"total_tokens", 94}});
    REQUIRE(answer.at("choices").size() == 3);
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    const Reply stream = complete(port, body);
    REQUIRE(stream.events().back() == "[DONE]");
    const json last = json::parse(stream.events().at(stream.events().size() - 2));
    REQUIRE(last.at("usage") == answer.at("usage"));
    for (int i = 0; i < 3; ++i) {
      const json &text = expected.at(static_cast<std::size_t>(i)),
                 &choice = answer["choices"].at(static_cast<std::size_t>(i));
      REQUIRE(choice.at("index") == i);
      REQUIRE(choice.at("text") == text.at("text"));
      REQUIRE(choice.at("finish_reason") == "length");
      json values = json::array(), tops = json::array(), tokens = json::array();
      for (const json& token : text.at("logprobs")) {
        values.push_back(token.at("logprob"));
        tokens.push_back(token.at("token"));
        json top = json::object();
        for (const json& entry : token.at("top")) top[entry.at("token").get<std::string>()] = entry.at("logprob");
        top[token.at("token").get<std::string>()] = token.at("logprob");
        tops.push_back(top);
      }
      REQUIRE(choice.at("logprobs").at("token_logprobs") == values);
      REQUIRE(choice.at("logprobs").at("tokens") == tokens);
      REQUIRE(choice.at("logprobs").at("top_logprobs") == tops);
      REQUIRE(joined(stream, i) == json{{"text", text["text"]}, {"reason", "length"}, {"logprobs", values}});
    }
  });
  REQUIRE(ended.exit_code == 0);
}

namespace {

// Draws the texts of a request in the thread that sends, so that nothing is sent meanwhile.
auto drawn_at_once(std::shared_ptr<const maki::LoadedModel> model) {
  return [model = std::move(model)](const std::shared_ptr<maki::HttpExchange>& exchange) {
    maki::TextTurns turns;
    const auto request = maki::parse_completion(exchange->body(), 1);
    std::make_shared<maki::CompletionAnswer>(request, model, exchange)->begin(turns);
    while (!turns.idle()) turns.step();
  };
}

}  // namespace

TEST_CASE("a stream is whole although its client reads nothing until the texts have ended", "[serve_test]") {
  const TrainedRun run;
  const auto model = std::make_shared<const maki::LoadedModel>(checkpoint(run.path, 30));
  const maki::HttpServer server({}, {{"POST", "/v1/completions", false, drawn_at_once(model)}});
  const int port = port_of(server);
  std::string prompt;
  while (prompt.size() < 450'000) prompt += "the\n";  // of which JSON makes five bytes each
  json body{{"model", "run"}, {"prompt", prompt}, {"max_tokens", 20}, {"n", 2}, {"echo", true}};
  const json whole = complete(port, body).json().at("choices");
  body["stream"] = true;
  const Reply stream = complete(port, body);
  REQUIRE(stream.body.size() > 2 * prompt.size());
  for (int i = 0; i < 2; ++i) {
    const json text = joined(stream, i);
    REQUIRE((text.at("text") == whole.at(static_cast<std::size_t>(i)).at("text")));
    REQUIRE(text.at("reason") == "length");
  }
  // Two events, each with the prompt, are a megabyte. From then on, each text is written as a whole.
  REQUIRE(stream.events().size() == 2 + 2 + 1);
  REQUIRE((stream.events().back() == "[DONE]"));
}

TEST_CASE("too little memory for the state of a text is no fault of the request, and passes", "[serve_test]") {
  const TrainedRun run;
  const auto model = std::make_shared<maki::LoadedModel>(checkpoint(run.path, 30));
  model->model = std::make_unique<NoMemory>();
  const maki::HttpServer server({}, {{"POST", "/v1/completions", false, drawn_at_once(model)}});
  const Reply refused = complete(port_of(server), {{"model", "run"}, {"n", 3}});
  REQUIRE(refused.status == MHD_HTTP_SERVICE_UNAVAILABLE);
  REQUIRE_THAT(refused.body, ContainsSubstring("no memory is left"));
}

TEST_CASE("an answer that echoed prompts would make too large is refused", "[serve_test]") {
  const TrainedRun run;
  serve({run.path}, [&](int port, const std::string&) {
    json body{{"model", "run"}, {"prompt", std::string(100'000, 'a')}, {"max_tokens", 0}, {"n", 128}, {"echo", true}};
    const Reply refused = complete(port, body);
    REQUIRE(refused.status == 400);
    REQUIRE_THAT(refused.body, ContainsSubstring("got 12800000; ask for fewer"));
    body["n"] = 2;
    REQUIRE(complete(port, body).status == 200);
  });
}

TEST_CASE("four models stay in memory, as many as the page compares", "[serve_test]") {
  const TrainedRun run;
  const std::vector<std::string> names = {"run", "b", "c", "d"};
  for (std::size_t i = 1; i < names.size(); ++i)
    std::filesystem::copy(run.path, run.folder / names[i], std::filesystem::copy_options::recursive);
  const maki::ServedRuns runs(run.folder.path());
  maki::Engine engine(runs, maki::WeightNumbers::trained);
  const auto load = [&] {
    std::vector<maki::Engine::Model> models;
    for (const std::string& name : names) {
      auto promise = std::make_shared<std::promise<maki::Engine::Model>>();
      auto loaded = promise->get_future();
      engine.with_model(name, std::make_shared<maki::HttpExchange>(nullptr),
                        [kept = std::move(promise)](const maki::Engine::Model& model) { kept->set_value(model); });
      models.push_back(loaded.get());
    }
    return models;
  };
  const auto models = load();
  REQUIRE(load() == models);
}

TEST_CASE("between two tasks that take long the texts get a token", "[serve_test]") {
  const TrainedRun run;
  const maki::ServedRuns runs(run.path);
  maki::Engine engine(runs, maki::WeightNumbers::trained);
  const auto text = std::make_shared<maki::HttpExchange>(nullptr), none = std::make_shared<maki::HttpExchange>(nullptr);
  std::promise<void> all_wait;
  std::promise<std::size_t> written;
  engine.compute(none, [waits = all_wait.get_future().share()] { waits.wait(); });
  engine.complete(maki::parse_completion(R"({"model":"run","max_tokens":1,"stream":true})", 1), text);
  engine.compute(none, [] {});
  engine.compute(none, [&] { written.set_value(text->unsent()); });
  all_wait.set_value();
  REQUIRE(written.get_future().get() > 0);
}

TEST_CASE("a stream of many blocks arrives as it was written", "[serve_test]") {
  std::string parts[2];
  for (int i = 0; parts[1].size() < 3'000'000; ++i) parts[i % 2] += std::to_string(i);
  std::promise<std::shared_ptr<maki::HttpExchange>> begun;
  const auto begin = [&](const std::shared_ptr<maki::HttpExchange>& exchange) {
    exchange->begin_stream();
    exchange->write(parts[0]);
    begun.set_value(exchange);
  };
  const maki::HttpServer server({}, {{"GET", "/", false, begin}});
  const Connection connection(port_of(server));
  connection.send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string head = connection.read_until("\r\n\r\n");  // the stream is being sent
  const auto exchange = begun.get_future().get();
  exchange->write(parts[1]);
  exchange->end();
  REQUIRE((reply_of(head + connection.read_until("")).body == parts[0] + parts[1]));
  REQUIRE(exchange->unsent() == 0);
}

TEST_CASE("an echoed prompt is what the model reads, which its offsets count", "[serve_test]") {
  const TemporaryFolder folder;
  const std::string run = folder / "run", corpus = folder.write("corpus.txt", small_text());
  require_ok(run_maki(
      Arguments{"train", corpus, "--out", run, "--max-steps", "2", "--tokenizer", "byte", "--normalize", "nfc"} +
      without("--eval-interval", kSmall)));
  serve({run}, [&](int port, const std::string&) {
    const auto echo = [&](const json& prompt) {
      return complete(port, {{"model", "run"}, {"prompt", prompt}, {"max_tokens", 0}, {"logprobs", 0}, {"echo", true}})
          .json()
          .at("choices")
          .at(0);
    };
    const json composed = echo("e\u0301a");
    REQUIRE(composed.at("text") == "\u00e9a");
    REQUIRE(composed.at("logprobs").at("text_offset") == json{0, 0, 1});
    const json part = echo(json{0xe7, 0x8c, 'a'});
    REQUIRE(part.at("text") == "\ufffda");
    REQUIRE(part.at("logprobs").at("text_offset") == json{0, 0, 1});
  });
}

TEST_CASE("stop strings, prompts of tokens and several prompts", "[serve_test]") {
  const TrainedRun run;
  const Arguments options = {"--max-tokens", "200", "--seed", "2", "--temperature", "1"};
  const json stopped = generated(run.path, Arguments{"--prompt", "a tape ", "--stop", "e"} + options).at(0);
  const json other = generated(run.path, Arguments{"--prompt", "and ", "--stop", "e"} + options).at(0);
  REQUIRE(stopped.at("stop") == "stop string");
  serve({run.path}, [&](int port, const std::string&) {
    json body{{"model", "run"}, {"prompt", {"a tape ", "and "}}, {"max_tokens", 200}, {"seed", 2}, {"stop", "e"}};
    const json answer = complete(port, body).json();
    REQUIRE(answer.at("choices").at(0).at("text") == stopped.at("text"));
    REQUIRE(answer.at("choices").at(1).at("text") == other.at("text"));
    REQUIRE(answer.at("choices").at(0).at("finish_reason") == "stop");
    REQUIRE(answer.at("usage").at("completion_tokens") ==
            stopped.at("tokens").get<int>() + other.at("tokens").get<int>());

    // What was held back for a stop string of which only the beginning occurs is part of the text in the end.
    json held = body;
    held["prompt"] = "and ";
    held["max_tokens"] = 20;
    held["stop"] = nullptr;
    const std::string whole = complete(port, held).json().at("choices").at(0).at("text");
    held["stop"] = whole.substr(17) + "#";
    REQUIRE(complete(port, held).json().at("choices").at(0).at("text") == whole);

    body["echo"] = true;
    body["logprobs"] = 0;
    body["max_tokens"] = 0;
    body["prompt"] = "and ";
    const json echoed = complete(port, body).json();
    body["prompt"] = echoed.at("choices").at(0).at("logprobs").at("token_ids");
    REQUIRE(complete(port, body).json().at("choices") == echoed.at("choices"));
    REQUIRE(echoed["choices"][0].at("text") == "and ");
    REQUIRE(echoed["choices"][0]["logprobs"].at("text_offset") == json{0, 1, 2, 3});
  });
}

TEST_CASE("echo gives the log-probabilities of the prompt that generation gave when it wrote it", "[serve_test]") {
  const TrainedRun run;
  const std::string prompt = "the ";
  const json text =
      generated(run.path, {"--prompt", prompt, "--max-tokens", "12", "--seed", "1", "--logprobs", "3"}).at(0);
  const std::string written = prompt + text.at("text").get<std::string>();
  serve({run.path}, [&](int port, const std::string&) {
    json body{{"model", "run"}, {"prompt", written}, {"max_tokens", 1}, {"logprobs", 3}, {"echo", true}};
    const json logprobs = complete(port, body).json().at("choices").at(0).at("logprobs");
    REQUIRE(logprobs.at("token_logprobs").size() == written.size() + 1);
    REQUIRE(logprobs.at("token_logprobs").at(0).is_null());
    REQUIRE(logprobs.at("top_logprobs").at(0).is_null());
    for (std::size_t i = 0; i < 12; ++i) {
      const json& token = text.at("logprobs").at(i);
      const double value = logprobs.at("token_logprobs").at(prompt.size() + i);
      REQUIRE(value == Approx(token.at("logprob").get<double>()).margin(1e-5));
      const json& top = logprobs.at("top_logprobs").at(prompt.size() + i);
      REQUIRE(top.contains(token.at("token").get<std::string>()));
      REQUIRE((top.size() == 3 || top.size() == 4));
    }
    body["prompt"] = std::string(17, 'a');
    const Reply refused = complete(port, body);
    REQUIRE(refused.status == 400);
    REQUIRE_THAT(refused.body, ContainsSubstring("the context holds 16"));
  });
}

TEST_CASE("runs, their checkpoints and their measurements", "[serve_test]") {
  const TrainedRun run;
  const std::string metrics = read_text(run.path + "/metrics.jsonl");
  serve({run.folder.path()}, [&](int port, const std::string&) {
    const json runs = request(port, "GET", "/api/runs").json();
    REQUIRE(runs.size() == 1);
    REQUIRE(runs[0].at("name") == "run");
    REQUIRE(runs[0].at("running") == false);
    REQUIRE(runs[0].at("step") == 30);
    REQUIRE(runs[0].at("can_generate") == true);
    REQUIRE(runs[0].at("n_layer") == 2);
    REQUIRE(runs[0].at("block_size") == 16);
    REQUIRE(request(port, "GET", "/v1/models").json().at("data").at(0).at("id") == "run");
    for (const json& step : runs[0].at("checkpoints")) {
      const std::string name = fmt::format("run@{}", step.get<int>());
      const json answer = complete(port, {{"model", name}, {"max_tokens", 1}}).json();
      REQUIRE(answer.at("step") == step);
    }
    REQUIRE(complete(port, {{"model", "run@last"}, {"max_tokens", 1}}).json().at("step") == 30);

    const std::size_t second = metrics.find('\n') + 1;
    // A browser that connects again asks for the same address, and says in the head how far it has come.
    for (const auto& [cursor, after, head] : {std::tuple{std::size_t{0}, std::size_t{0}, std::string()},
                                              {second, second, ""},
                                              {second, 0, fmt::format("Last-Event-ID: {}\r\n", second)}}) {
      const Connection connection(port);
      connection.send(
          fmt::format("GET /api/events?run=run&after={} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", after, head));
      const std::size_t before = metrics.rfind('\n', metrics.size() - 2) + 1;
      const std::string seen = connection.read_until(
          fmt::format("id: {}\ndata: {}\n", metrics.size(), metrics.substr(before, metrics.size() - before)));
      REQUIRE_THAT(seen, ContainsSubstring("event: start\ndata: {\"best_possible_loss\":"));
      const std::string first = metrics.substr(cursor, metrics.find('\n', cursor) - cursor);
      REQUIRE_THAT(seen, ContainsSubstring(fmt::format("id: {}\ndata: {}\n", cursor + first.size() + 1, first)));
      REQUIRE_THAT(seen, !ContainsSubstring("event: reset"));
      REQUIRE(contains(seen, fmt::format("id: {}\n", second)) == (cursor == 0));
    }
    const Connection connection(port);
    connection.send("GET /api/events?run=run&after=999999999 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    REQUIRE_THAT(connection.read_until("id: "), ContainsSubstring("event: reset"));
  });
}

TEST_CASE("what is inside a model while it reads a text that it can read", "[serve_test]") {
  const TrainedRun run;
  serve({run.path}, [&](int port, const std::string&) {
    const auto inside = [&](const std::string& text) {
      return request(port, "POST", "/api/inside", json{{"model", "run"}, {"text", text}}.dump(),
                     "Content-Type: application/json\r\n");
    };
    REQUIRE(inside("the").json().at("tokens") == json{"t", "h", "e"});
    REQUIRE(inside("\u732b").status == 400);
  });
}

TEST_CASE("a damaged or vanished checkpoint, and a model that does not continue texts, are refused with a sentence",
          "[serve_test]") {
  const TrainedRun run;
  const std::string encoder = run.folder / "encoder", corpus = run.folder.write("other.txt", small_text());
  require_ok(run_maki(Arguments{"train", corpus, "--out", encoder, "--max-steps", "2", "--model", "encoder"} +
                      without("--eval-interval", kSmall)));
  write_bytes(checkpoint(run.path, 20), "damaged");
  serve({run.folder.path()}, [&](int port, const std::string&) {
    const Reply damaged = complete(port, {{"model", "run@20"}, {"max_tokens", 1}});
    REQUIRE(damaged.status == 500);
    REQUIRE(damaged.json().at("error").at("type") == "server_error");
    REQUIRE(complete(port, {{"model", "run@21"}, {"max_tokens", 1}}).status == 404);
    REQUIRE(complete(port, {{"model", "run@../../x"}, {"max_tokens", 1}}).status == 404);
    REQUIRE(complete(port, {{"model", "nothing"}, {"max_tokens", 1}}).status == 404);
    REQUIRE_THAT(complete(port, {{"model", "encoder"}, {"max_tokens", 1}}).body,
                 ContainsSubstring("does not continue a text"));
    REQUIRE(request(port, "GET", "/api/runs").json().size() == 2);
    REQUIRE_THAT(request(port, "POST", "/v1/chat/completions", "{}", "Content-Type: application/json\r\n").body,
                 ContainsSubstring("not trained on conversations"));
    REQUIRE(complete(port, {{"model", "run"}, {"max_tokens", 1}}).status == 200);
    std::filesystem::remove_all(run.path);
    REQUIRE(complete(port, {{"model", "run"}, {"max_tokens", 1}}).status == 404);
    REQUIRE(request(port, "GET", "/v1/models").status == 200);
  });
}

TEST_CASE("errors begin with the field of the request that they are about, and name no option", "[serve_test]") {
  const TrainedRun run;
  serve({run.path}, [&](int port, const std::string&) {
    const auto require_error = [](const Reply& reply, int status, const std::string& begin) {
      INFO(reply.body);
      REQUIRE(reply.status == status);
      const std::string message = reply.json().at("error").at("message");
      REQUIRE(message.substr(0, begin.size()) == begin);
      REQUIRE_THAT(message, !ContainsSubstring("`") && !ContainsSubstring("--"));
    };
    const auto inside = [&](const json& body) {
      return request(port, "POST", "/api/inside", body.dump(), "Content-Type: application/json\r\n");
    };
    const std::string lacks = "tokenizer: the vocabulary of ", unknown = "\u732b";
    require_error(complete(port, {{"model", "run"}, {"prompt", unknown}}), 400, "prompt: " + lacks);
    require_error(complete(port, {{"model", "run"}, {"prompt", {1, 2, 999}}}), 400, "prompt: an id must be below ");
    require_error(inside({{"model", "run"}, {"text", unknown}}), 400, "text: " + lacks);
    for (const char* const choice : {"999", "undefined"}) {
      const std::string model = fmt::format("run@{}", choice);
      const std::string message = fmt::format("model: the run run has no checkpoint {}; ", choice);
      require_error(complete(port, {{"model", model}}), 404, message);
      require_error(inside({{"model", model}, {"text", "a"}}), 404, message);
    }
    require_error(complete(port, {{"model", "nothing"}}), 404, "model: there is no run nothing here; ");
    for (const char* const path : {"/api/events?run=nothing", "/api/report?run=nothing"})
      require_error(request(port, "GET", path), 404, "run: there is no run nothing here; ");
    require_error(request(port, "GET", "/api/events"), 404, "run: must name a run; ");
  });
}

TEST_CASE("another checkpoint answers for a damaged one, of which stderr tells once", "[serve_test]") {
  const TrainedRun run;
  const std::int64_t best = maki::RunDirectory(run.path).best().value().step;
  const std::string file = checkpoint(run.path, static_cast<int>(best));
  for (const std::string& bytes : {with_damage(file, "values"), with_damage(file, "tensors"), std::string("damaged")}) {
    write_bytes(file, bytes);
    const Finished ended = serve({run.path}, [&](int port, const std::string&) {
      for (int i = 0; i < 2; ++i)
        REQUIRE(complete(port, {{"model", "run"}, {"max_tokens", 1}}).json().at("step") != best);
    });
    const std::string note = "using another checkpoint";
    REQUIRE_THAT(ended.err, ContainsSubstring(note));
    REQUIRE(ended.err.find(note) == ended.err.rfind(note));
  }
}

TEST_CASE("a run that was deleted while it is served is no longer listed", "[serve_test]") {
  const TrainedRun run;
  serve({run.path}, [&](int port, const std::string&) {
    std::filesystem::remove_all(run.path);
    REQUIRE(request(port, "GET", "/api/runs").json() == json::array());
    REQUIRE(request(port, "GET", "/v1/models").json().at("data") == json::array());
    for (const char* const path : {"/api/report?run=run", "/api/events?run=run"})
      REQUIRE(request(port, "GET", path).status == 404);
    REQUIRE(complete(port, {{"model", "run"}, {"max_tokens", 1}}).status == 404);
  });
}

TEST_CASE("a run that cannot be read hides no other", "[serve_test]") {
  const TrainedRun run;
  const std::string other = run.folder / "other", locked = run.folder / "locked";
  for (const std::string& copy : {other, locked})
    std::filesystem::copy(run.path, copy, std::filesystem::copy_options::recursive);
  std::filesystem::remove(other + "/checkpoints/best");
  std::filesystem::create_directory(other + "/checkpoints/best");
  // A name that leads to itself is as unreadable as a directory of another user.
  std::filesystem::remove_all(locked + "/checkpoints");
  std::filesystem::create_directory_symlink("checkpoints", locked + "/checkpoints");
  serve({run.folder.path()}, [&](int port, const std::string&) {
    const json runs = request(port, "GET", "/api/runs").json();
    REQUIRE(runs.size() == 1);
    REQUIRE(runs.at(0).at("name") == "run");
    REQUIRE(complete(port, {{"model", "run"}, {"max_tokens", 1}}).status == 200);
    REQUIRE(complete(port, {{"model", "other"}, {"max_tokens", 1}}).status == 500);
  });
}

TEST_CASE("events pass over lines that are no measurements", "[serve_test]") {
  const TrainedRun run;
  const std::string metrics = run.path + "/metrics.jsonl", next = R"({"kind":"train","step":31,"loss":1.5})";
  write_bytes(metrics, read_text(metrics) + std::string(1'000'000, 'x') + "\nxxx\r\nnull\n\n{\"a\"\n" + next + "\n");
  serve({run.path}, [&](int port, const std::string&) {
    const Connection connection(port);
    connection.send("GET /api/events?run=run HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const std::string seen = connection.read_until(next);
    REQUIRE_THAT(seen, ContainsSubstring("data: " + next));
    for (const char* const other : {"xxx", "data: null", "data: \n", "data: {\"a\""})
      REQUIRE_THAT(seen, !ContainsSubstring(other));
  });
}

TEST_CASE("stream_options are known or refused, and null stands for any field that is not given", "[serve_test]") {
  const TrainedRun run;
  serve({run.path}, [&](int port, const std::string&) {
    json body{{"model", "run"}, {"max_tokens", 1}, {"stream", true}, {"best_of", nullptr}};
    for (const json& options : {json(5), json::array(), json{{"include_usage", 1}}, json{{"usage", true}}}) {
      body["stream_options"] = options;
      REQUIRE_THAT(complete(port, body).body, ContainsSubstring("stream_options: must be"));
    }
    for (const json& options : {json::object(), json{{"include_usage", false}}}) {
      body["stream_options"] = options;
      REQUIRE(complete(port, body).status == 200);
    }
  });
}

TEST_CASE("streams that the end of the server cuts off say so", "[serve_test]") {
  const TrainedRun run;
  const std::string body = R"({"model":"run","max_tokens":100000,"stream":true})";
  std::vector<std::unique_ptr<Connection>> streams;
  const Finished ended = serve({run.path}, [&](int port, const std::string&) {
    for (int i = 0; i < 4; ++i) {
      streams.push_back(std::make_unique<Connection>(port));
      streams.back()->send(fmt::format(
          "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
          "{}\r\n\r\n{}",
          body.size(), body));
    }
    for (const auto& stream : streams) stream->read_until("data: ");
  });
  REQUIRE(ended.exit_code == 0);
  for (const auto& stream : streams)
    REQUIRE_THAT(stream->read_until("the server ends"), ContainsSubstring("the server ends"));
}

TEST_CASE("many requests at once get the texts that each gets alone", "[serve_test]") {
  const TrainedRun run;
  serve({run.path}, [&](int port, const std::string&) {
    const auto body = [](int i) {
      return json{{"model", "run"},
                  {"prompt", std::string(small_text(), 0, static_cast<std::size_t>(1 + i % 7))},
                  {"max_tokens", 20 + i},
                  {"temperature", 0.5 + 0.05 * i},
                  {"seed", i}}
          .dump();
    };
    std::vector<std::unique_ptr<Connection>> connections;
    for (int i = 0; i < 20; ++i) {
      connections.push_back(std::make_unique<Connection>(port));
      connections.back()->send(
          fmt::format("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                      "Connection: close\r\nContent-Length: {}\r\n\r\n{}",
                      body(i).size(), body(i)));
    }
    for (int i = 0; i < 20; ++i) {
      const json together = connections[static_cast<std::size_t>(i)]->reply().json();
      REQUIRE(together.at("choices") == complete(port, json::parse(body(i))).json().at("choices"));
    }
  });
}

TEST_CASE("bad arguments of serve", "[serve_test]") {
  const TrainedRun run;
  require_refused(run_maki({"serve", run.folder / "nothing"}), 2, {"there is no such directory"});
  require_refused(run_maki({"serve", run.path + "/checkpoints"}), 2, {"contains no run"});
  require_refused(run_maki({"serve", run.path, "--port", "70000"}), 2, {"port: must be between 0 and 65535"});
  require_refused(run_maki({"serve", run.path, "--host", "example.org"}), 2, {"must be a numeric address"});
  require_refused(run_maki({"serve", run.path, "--token", "short"}), 2, {"token: must be 8 to 256"});
  serve({run.path}, [&](int port, const std::string&) {
    require_refused(run_maki({"serve", run.path, "--port", std::to_string(port)}), 2, {"is in use", "or 0"});
  });
}
