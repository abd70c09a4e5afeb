#include "train/app/serve/completions.h"

#include <algorithm>
#include <limits>

#include "data/io/number.h"
#include "data/tokenizer/special_text.h"
#include "train/app/serve/json_body.h"

namespace maki {
namespace {

constexpr std::int64_t kMaxAlternatives = 100;         // for each token
constexpr std::int64_t kMaxAnswerEntries = 1'000'000;  // tokens and alternatives of all texts, with echoed prompts
constexpr std::size_t kMaxStops = 16, kMaxStopBytes = 1000;
constexpr double kMaxPenalty = 100;

CompletionRequest::Prompt prompt_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  check(value.is_array() && !value.empty(), "prompt: must be a text, ids of tokens, or a list of these; got {}",
        ShownJson{value});
  std::vector<std::int32_t> ids;
  constexpr std::int32_t kMaxId = std::numeric_limits<std::int32_t>::max();
  for (const Json& id : value) {
    check(id.is_number_unsigned() && id.get<std::uint64_t>() <= kMaxId,
          "prompt: an id must be a whole number between 0 and {}; got {}", kMaxId, ShownJson{id});
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

void read_prompts(JsonBody& body, CompletionRequest& request) {
  const Json* const prompt = body.find("prompt");
  if (prompt == nullptr || !prompt->is_array() || prompt->empty() || prompt->front().is_number()) {
    request.prompts.push_back(prompt_of(prompt == nullptr ? Json("") : *prompt));
  } else {
    check(prompt->size() <= kMaxChoices, "prompt: must be a list of at most {}; got {}", kMaxChoices, prompt->size());
    for (const Json& one : *prompt) request.prompts.push_back(prompt_of(one));
  }
}

void read_stops(JsonBody& body, std::vector<std::string>& stops) {
  const Json* const stop = body.find("stop");
  const Json list = stop == nullptr ? Json::array() : stop->is_array() ? *stop : Json::array({*stop});
  check(list.size() <= kMaxStops, "stop: must be at most {} texts; got {}", kMaxStops, list.size());
  for (const Json& text : list) {
    stops.push_back(text.is_string() ? text.get<std::string>() : "");
    check(!stops.back().empty() && stops.back().size() <= kMaxStopBytes,
          "stop: must be a text of 1 to {} bytes, or a list of such; got {}", kMaxStopBytes, ShownJson{text});
  }
}

void read_sampling(JsonBody& body, Sampling& sampling) {
  sampling.temperature = body.number("temperature", 1.0, 0, kMaxCount);
  sampling.top_p = body.number("top_p", 1.0, 0, 1, /*above=*/true);
  sampling.top_k = body.number<std::int64_t>("top_k", 0, 0, kMaxCount);
  sampling.min_p = body.number("min_p", 0.0, 0, 1);
  sampling.repetition_penalty = body.number("repetition_penalty", 1.0, 1 / kMaxPenalty, kMaxPenalty);
  sampling.frequency_penalty = body.number("frequency_penalty", 0.0, -kMaxPenalty, kMaxPenalty);
  sampling.presence_penalty = body.number("presence_penalty", 0.0, -kMaxPenalty, kMaxPenalty);
  sampling.seed = body.number<std::uint64_t>("seed", sampling.seed, 0, kMaxSeed);
}

bool asks_for_usage(const Json& options) {
  const bool asks = options == Json{{"include_usage", true}};
  check(asks || options == Json{{"include_usage", false}} || options == Json::object(),
        "stream_options: must be an object with include_usage, true or false; got {}", ShownJson{options});
  return asks;
}

// A token that is no text of its own is named by its bytes, so that no two have the same name: bytes:\xe3\x81.
std::string token_name(std::string_view bytes) {
  if (!invalid_utf8(bytes)) return std::string(bytes);
  std::string escaped = "bytes:";
  for (const char byte : bytes) escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return escaped;
}

}  // namespace

CompletionRequest parse_completion(std::string_view text, std::uint64_t seed) {
  JsonBody body(text);
  CompletionRequest request;
  request.model = body.text("model", "GET /v1/models lists those that can be named");
  read_prompts(body, request);
  request.n = body.number("n", request.n, 1, kMaxChoices);
  const std::int64_t choices = std::ssize(request.prompts) * request.n;
  check(choices <= kMaxChoices, "n: prompts times n must be at most {}; got {}", kMaxChoices, choices);
  GenerateOptions& generate = request.text.generate;
  generate.max_tokens = body.number<std::int64_t>("max_tokens", 16, 0, kMaxCompletionTokens);
  generate.sampling.seed = seed;
  read_sampling(body, generate.sampling);
  read_stops(body, request.text.stop);
  const auto alternatives = body.number<std::int64_t>("logprobs", -1, 0, kMaxAlternatives);
  if (alternatives >= 0) request.text.log_probabilities = alternatives;
  request.echo = body.flag("echo");
  request.stream = body.flag("stream");
  if (const Json* const options = body.find("stream_options")) {
    request.include_usage = asks_for_usage(*options);
    check(request.stream, "stream_options: have an effect only with \"stream\": true; add it, or omit stream_options");
  }
  body.find("user");  // which has no effect
  body.require_no_others();
  check_answer_size(request, /*prompt_tokens=*/0);
  return request;
}

void check_answer_size(const CompletionRequest& request, std::int64_t prompt_tokens) {
  const std::int64_t drawn = std::ssize(request.prompts) * request.text.generate.max_tokens;
  const std::int64_t tokens = request.n * (drawn + (request.echo ? prompt_tokens : 0));
  const std::int64_t entries = tokens * (request.text.log_probabilities.value_or(-1) + 2);
  check(entries <= kMaxAnswerEntries,
        "max_tokens: texts must have at most {} tokens and alternatives in all, with those of echoed prompts; got {}; "
        "ask for fewer",
        kMaxAnswerEntries, entries);
}

CompletionChoice::CompletionChoice(std::int64_t index, bool scored) : index_(index) {
  if (!scored) return;
  for (const char* name :
       {"tokens", "token_ids", "token_logprobs", "top_logprobs", "top_ids", "top_not_text", "text_offset"})
    no_tokens_[name] = Json::array();
  tokens_ = no_tokens_;
}

void CompletionChoice::add(const Tokenizer& tokenizer, std::int32_t id, const TokenLogProbabilities* scores) {
  Json top, ids, not_text;
  std::vector<LogProbability> entries;
  if (scores != nullptr) {
    entries = scores->top;
    // Clients look for the token itself among the most probable ones.
    if (std::ranges::find(entries, scores->drawn.id, &LogProbability::id) == entries.end())
      entries.push_back(scores->drawn);
  }
  for (const LogProbability& entry : entries) {
    const std::string name = token_name(tokenizer.bytes(entry.id));
    top[name] = entry.value;
    ids[name] = entry.id;
    if (invalid_utf8(tokenizer.bytes(entry.id)) || is_unread_special(tokenizer, entry.id)) not_text.push_back(name);
  }
  tokens_["tokens"].push_back(token_name(tokenizer.bytes(id)));
  tokens_["token_ids"].push_back(id);
  tokens_["token_logprobs"].push_back(scores == nullptr ? Json() : Json(scores->drawn.value));
  tokens_["top_logprobs"].push_back(top);
  tokens_["top_ids"].push_back(ids);
  tokens_["top_not_text"].push_back(not_text);  // null: there are none
  tokens_["text_offset"].push_back(place(tokenizer.bytes(id)));
}

void CompletionChoice::end_prompt() { offset_ += count_code_points(characters_.finish()); }

// Adds the bytes of a token. Returns where the first character that shows any of them begins.
std::int64_t CompletionChoice::place(std::string_view bytes) {
  if (bytes.empty()) return offset_;
  offset_ += count_code_points(characters_.push(bytes.substr(0, 1)));
  // The first byte belongs to the last character that is shown, unless it waits for others of its own.
  const bool waits = !Utf8Stream(characters_).finish().empty();
  const std::int64_t begin = waits ? offset_ : offset_ - 1;
  offset_ += count_code_points(characters_.push(bytes.substr(1)));
  return begin;
}

Json CompletionChoice::take() {
  if (text.empty() && !end && no_tokens_.is_null()) return nullptr;
  const bool stopped = end == TextEnd::stop_string || end == TextEnd::end_of_text;
  return {{"text", std::exchange(text, "")},
          {"index", index_},
          {"logprobs", std::exchange(tokens_, no_tokens_)},
          {"finish_reason", end ? Json(stopped ? "stop" : "length") : Json()}};
}

}  // namespace maki
