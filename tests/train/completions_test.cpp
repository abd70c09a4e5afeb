// What a request for completions may say, and how the answers look.
#include "train/app/serve/completions.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "data/tokenizer/special_text.h"
#include "tests/catch.h"

using namespace maki;

namespace {

std::string message_of(const std::string& fields) {
  try {
    parse_completion(R"({"model":"m")" + fields + "}", 1);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a request for completions has the defaults that clients expect", "[completions_test]") {
  const CompletionRequest request = parse_completion(R"({"model":"m","logprobs":null,"seed":null,"user":"u"})", 77);
  REQUIRE(request.model == "m");
  REQUIRE(request.prompts == std::vector<CompletionRequest::Prompt>{""});
  REQUIRE(request.n == 1);
  REQUIRE(request.text.generate.max_tokens == 16);
  REQUIRE(request.text.generate.sampling.temperature == 1);
  REQUIRE(request.text.generate.sampling.seed == 77);
  REQUIRE_FALSE(request.text.log_probabilities);
  REQUIRE_FALSE((request.echo || request.stream || request.include_usage || request.scores_prompts()));
}

TEST_CASE("the forms of a prompt, and all fields", "[completions_test]") {
  const auto prompts = [](const std::string& prompt) {
    return parse_completion(R"({"model":"m","prompt":)" + prompt + "}", 1).prompts;
  };
  using Ids = std::vector<std::int32_t>;
  using Prompts = std::vector<CompletionRequest::Prompt>;
  REQUIRE(prompts(R"("a")") == Prompts{"a"});
  REQUIRE(prompts(R"(["a","b"])") == Prompts{"a", "b"});
  REQUIRE(prompts("[1,2]") == Prompts{Ids{1, 2}});
  REQUIRE(prompts("[[1,2],[3]]") == Prompts{Ids{1, 2}, Ids{3}});
  const CompletionRequest request = parse_completion(
      R"({"model":"m@3","prompt":"a","n":2,"max_tokens":0,"temperature":0,"top_p":0.5,"top_k":3,"min_p":0.25,"seed":9,
          "stop":["x","y"],"logprobs":5,"echo":true,"stream":true,"stream_options":{"include_usage":true},
          "repetition_penalty":2,"frequency_penalty":-1,"presence_penalty":1.5})",
      1);
  const Sampling& sampling = request.text.generate.sampling;
  REQUIRE((sampling.temperature == 0 && sampling.top_p == 0.5 && sampling.top_k == 3 && sampling.min_p == 0.25));
  REQUIRE((sampling.seed == 9 && sampling.repetition_penalty == 2 && sampling.frequency_penalty == -1));
  REQUIRE(sampling.presence_penalty == 1.5);
  REQUIRE(request.text.stop == std::vector<std::string>{"x", "y"});
  REQUIRE(request.text.log_probabilities == 5);
  REQUIRE((request.n == 2 && request.text.generate.max_tokens == 0));
  REQUIRE((request.stream && request.include_usage && request.scores_prompts()));
}

TEST_CASE("what is no request for completions is refused with the name of the field", "[completions_test]") {
  for (const char* body : {"", "{", "[]", "1", "{\"model\":\"\xff\"}", "{}", R"({"model":1})", R"({"model":"m"}x)"})
    REQUIRE_THROWS_AS(parse_completion(body, 1), Error);
  const std::pair<const char*, const char*> refused[] = {
      {R"(,"prompt":1)", "prompt: must be"},
      {R"(,"prompt":[])", "prompt: must be"},
      {R"(,"prompt":[-1])", "prompt: an id must be"},
      {R"(,"prompt":[1,"a"])", "prompt: an id must be"},
      {R"(,"prompt":["a",[]])", "prompt: must be"},
      {R"(,"prompt":[3000000000])", "prompt: an id must be a whole number between 0 and 2147483647; got 3000000000"},
      {R"(,"prompt":[[[[[[1]]]]]])", "prompt: an id must be"},
      {R"(,"n":0)", "n: must be"},
      {R"(,"max_tokens":-1)", "max_tokens: must be"},
      {R"(,"max_tokens":1.5)", "max_tokens: must be a whole number"},
      {R"(,"max_tokens":99999999999999999999)", "max_tokens: must be"},
      {R"(,"temperature":-0.1)", "temperature: must be"},
      {R"(,"temperature":"hot")", "temperature: must be"},
      {R"(,"temperature":1e999)", "body: must be JSON; a number in it is too large"},
      {R"(,"top_p":0)", "top_p: must be a number above 0 and at most 1; got 0"},
      {R"(,"top_p":-1)", "top_p: must be a number above 0 and at most 1; got -1"},
      {R"(,"top_p":1.5)", "top_p: must be a number above 0 and at most 1; got 1.5"},
      {R"(,"min_p":1.5)", "min_p: must be a number between 0 and 1; got 1.5"},
      {R"(,"seed":-1)", "seed: must be"},
      {R"(,"stop":"")", "stop: must be"},
      {R"(,"stop":[1])", "stop: must be"},
      {R"(,"logprobs":101)", "logprobs: must be"},
      {R"(,"logprobs":true)", "logprobs: must be"},
      {R"(,"echo":1)", "echo: must be true or false; got 1"},
      {R"(,"stream":"yes")", "stream: must be true or false; got \"yes\""},
      {R"(,"stream_options":{"include_usage":true})", "stream_options: have an effect only with \"stream\": true"},
      {R"(,"stream":false,"stream_options":{})", "stream_options: have an effect only with"},
      {R"(,"suffix":"x")", "suffix: is no field"},
      {R"(,"n":128,"max_tokens":100000)", "max_tokens: texts"}};
  for (const auto& [fields, message] : refused) {
    INFO(fields);
    REQUIRE_THAT(message_of(fields), ContainsSubstring(message));
    REQUIRE_FALSE(message_of(fields).empty());
  }
}

TEST_CASE("a body has a limited number of fields and objects, wherever they are", "[completions_test]") {
  const auto repeated = [](const std::string& piece, int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += fmt::format(fmt::runtime(piece), i);
    return list;
  };
  // The body and its field `model` count as well.
  REQUIRE(message_of(repeated(R"(,"x{}":null)", 62)).empty());
  REQUIRE_THAT(message_of(repeated(R"(,"x{}":null)", 63)), ContainsSubstring("at most 64 fields and objects"));
  REQUIRE_THAT(message_of(R"(,"prompt":[1)" + repeated(",{{}}", 61) + "]"), ContainsSubstring("prompt: an id must be"));
  for (const char* const nested : {R"(,"prompt":[1{}])", R"(,"prompt":[[[[[[1{}]]]]]])"})
    REQUIRE_THAT(message_of(fmt::format(fmt::runtime(nested), repeated(",{{}}", 62))),
                 ContainsSubstring("at most 64 fields and objects"));
}

TEST_CASE("echoed prompts are part of what an answer may have", "[completions_test]") {
  const auto refuses = [](const std::string& fields, std::int64_t prompt_tokens) {
    const CompletionRequest request = parse_completion(R"({"model":"m")" + fields + "}", 1);
    try {
      check_answer_size(request, prompt_tokens);
    } catch (const Error& error) {
      REQUIRE_THAT(error.what(), ContainsSubstring("max_tokens: ") && ContainsSubstring("echoed prompts"));
      return true;
    }
    return false;
  };
  const std::string many = R"(,"max_tokens":0,"n":128,"prompt":"a")", scored = many + R"(,"logprobs":98)";
  REQUIRE_FALSE(refuses(scored + R"(,"echo":true)", 78));  // 78 · 128 · 100 is just below a million
  REQUIRE(refuses(scored + R"(,"echo":true)", 79));
  REQUIRE_FALSE(refuses(scored, 1'000'000));
  REQUIRE_FALSE(refuses(many + R"(,"echo":true)", 7812));  // without log-probabilities a token counts once
  REQUIRE(refuses(many + R"(,"echo":true)", 7813));
  // With 2 · 5 texts of 2000 tokens: 5 · (196,000 + 2 · 2000) is a million.
  const std::string both = R"(,"n":5,"prompt":["a","b"],"max_tokens":2000,"echo":true)";
  REQUIRE_FALSE(refuses(both, 196'000));
  REQUIRE(refuses(both, 196'001));
}

TEST_CASE("answers say why a text ended, and name tokens that are no text by their bytes", "[completions_test]") {
  const auto tokenizer = make_tokenizer("byte", TextToLearn(""));
  CompletionChoice choice(2, /*scored=*/true);
  choice.add(*tokenizer, 0xe7, nullptr);
  const TokenLogProbabilities scores{{'a', -0.5}, {{'a', -0.5}, {0xff, -1}}};
  choice.add(*tokenizer, 'a', &scores);
  const Json logprobs = choice.take().at("logprobs");
  REQUIRE(logprobs.at("tokens") == Json{"bytes:\\xe7", "a"});
  REQUIRE(logprobs.at("token_ids") == Json{0xe7, 'a'});
  REQUIRE(logprobs.at("token_logprobs") == Json{nullptr, -0.5});
  REQUIRE(logprobs.at("top_logprobs").at(1) == Json{{"a", -0.5}, {"bytes:\\xff", -1.0}});
  REQUIRE(logprobs.at("top_not_text") == Json::array({nullptr, Json::array({"bytes:\\xff"})}));
  REQUIRE(logprobs.at("text_offset") == Json{0, 1});
  choice.add(*tokenizer, 'b', nullptr);
  REQUIRE(choice.take().at("logprobs").at("text_offset") == Json::array({2}));  // of the whole text
  REQUIRE(choice.take().at("logprobs").at("tokens") == Json::array());

  const std::pair<std::optional<TextEnd>, Json> reasons[] = {{std::nullopt, nullptr},
                                                             {TextEnd::length, "length"},
                                                             {TextEnd::window, "length"},
                                                             {TextEnd::stop_string, "stop"},
                                                             {TextEnd::end_of_text, "stop"}};
  for (const auto& [end, reason] : reasons) {
    CompletionChoice unscored(3, /*scored=*/false);
    unscored.text = "text";
    unscored.end = end;
    REQUIRE(unscored.take() == Json{{"text", "text"}, {"index", 3}, {"logprobs", nullptr}, {"finish_reason", reason}});
    REQUIRE(unscored.take().is_null() == !end.has_value());
  }
}

TEST_CASE("the token that was drawn is among the most probable ones, also if it is none of them",
          "[completions_test]") {
  const auto tokenizer = make_tokenizer("byte", TextToLearn(""));
  CompletionChoice choice(0, /*scored=*/true);
  for (const std::vector<LogProbability>& top : {std::vector<LogProbability>{{'a', -0.5}}, {}, {{0xff, -2}}}) {
    const TokenLogProbabilities scores{{0xff, -2}, top};
    choice.add(*tokenizer, 0xff, &scores);
  }
  const Json logprobs = choice.take().at("logprobs"), drawn{{"bytes:\\xff", -2.0}};
  REQUIRE(logprobs.at("top_logprobs") == Json{{{"a", -0.5}, {"bytes:\\xff", -2.0}}, drawn, drawn});
  REQUIRE(logprobs.at("top_ids").at(0) == Json{{"a", 'a'}, {"bytes:\\xff", 0xff}});
  REQUIRE(logprobs.at("top_not_text").at(0) == Json::array({"bytes:\\xff"}));
}

TEST_CASE("answers say which alternatives nobody can write into a text", "[completions_test]") {
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer("bpe", TextToLearn("a"));
  const std::int32_t end = tokenizer->end_of_text().value(), letter = tokenizer->encode("a").front();
  const auto not_text = [&](const Tokenizer& reader) {
    const TokenLogProbabilities scores{{letter, -0.5}, {{letter, -0.5}, {end, -1}}};
    CompletionChoice choice(0, /*scored=*/true);
    choice.add(reader, letter, &scores);
    return choice.take().at("logprobs").at("top_not_text").at(0);
  };
  REQUIRE(not_text(*tokenizer) == Json::array({"<|endoftext|>"}));
  REQUIRE(not_text(*finding_specials(*tokenizer)).is_null());  // reads what is written as this token
}

TEST_CASE("the offset of a token is that of the first character that shows a part of it", "[completions_test]") {
  const auto tokenizer = make_tokenizer("byte", TextToLearn(""));
  const std::pair<std::vector<std::int32_t>, Json> rows[] = {
      {{'a', 'b', 'c'}, {0, 1, 2}},   {{0xe7, 0x8c, 0xab, 'a'}, {0, 0, 0, 1}},  // one character of three bytes
      {{0xff, 0x80, 'a'}, {0, 1, 2}},  // from here on, each part that is not UTF-8 is shown as U+FFFD
      {{0xe7, 0x8c, 'a'}, {0, 0, 1}}, {{0xe7, 0xe7, 0x8c, 0xab, 'a'}, {0, 1, 1, 1, 2}},
      {{0xe0, 0x80, 'a'}, {0, 1, 2}}, {{'a', 0xf0, 0x9f, 0xff, 'b'}, {0, 1, 1, 2, 3}}};
  for (const auto& [ids, offsets] : rows) {
    CompletionChoice choice(0, /*scored=*/true);
    for (const std::int32_t id : ids) choice.add(*tokenizer, id, nullptr);
    REQUIRE(choice.take().at("logprobs").at("text_offset") == offsets);
  }
  // A prompt and what continues it are shown as texts of their own.
  CompletionChoice choice(0, /*scored=*/true);
  choice.add(*tokenizer, 0xe7, nullptr);
  choice.end_prompt();
  choice.add(*tokenizer, 0x8c, nullptr);
  REQUIRE(choice.take().at("logprobs").at("text_offset") == Json{0, 1});
}
