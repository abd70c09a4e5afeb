#include "train/app/serve/completions.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <limits>

#include "data/io/number.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

constexpr std::int64_t kMaxAlternatives = 100;          // for each token
constexpr std::int64_t kMaxAnswerEntries = 10'000'000;  // tokens and alternatives of all texts
constexpr std::size_t kMaxStops = 16, kMaxStopBytes = 1000;
constexpr int kMaxJsonDepth = 4;
constexpr double kMaxPenalty = 100;

std::string shown(const Json& value) {
  return truncate_for_message(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// The fields of a body. null stands for a field that was not given.
class BodyFields {
 public:
  explicit BodyFields(std::string_view body) : body_(parse_body(body)) {}

  const Json* find(const char* name) {
    known_.emplace_back(name);
    const auto field = body_.find(name);
    return field == body_.end() || field->is_null() ? nullptr : &*field;
  }
  template <class Number>
  Number number(const char* name, Number otherwise, double low, double high) {
    const Json* const value = find(name);
    if (value == nullptr) return otherwise;
    const bool whole = std::is_integral_v<Number>;
    const double number = value->is_number() ? value->get<double>() : low - 1;
    check((!whole || value->is_number_integer()) && number >= low && number <= high,
          "{}: must be a {}number between {} and {}; got {}", name, whole ? "whole " : "", low, high, shown(*value));
    return value->get<Number>();
  }
  bool flag(const char* name) {
    const Json* const value = find(name);
    check(value == nullptr || value->is_boolean(), "{}: must be true or false", name);
    return value != nullptr && value->get<bool>();
  }
  void require_no_others() const {
    for (const auto& [name, value] : body_.items()) {
      check(value.is_null() || std::ranges::find(known_, name) != known_.end(),
            "{}: is no field of a completion; must be one of {}", truncate_for_message(name), fmt::join(known_, ", "));
    }
  }

 private:
  Json body_;
  std::vector<std::string> known_;
};

CompletionRequest::Prompt prompt_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  check(value.is_array() && !value.empty(), "prompt: must be a text, ids of tokens, or a list of these; got {}",
        shown(value));
  std::vector<std::int32_t> ids;
  for (const Json& id : value) {
    check(id.is_number_unsigned() && id.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max(),
          "prompt: an id must be a whole number of at least 0; got {}", shown(id));
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

void read_prompts(BodyFields& body, CompletionRequest& request) {
  const Json* const prompt = body.find("prompt");
  if (prompt == nullptr || !prompt->is_array() || prompt->empty() || prompt->front().is_number()) {
    request.prompts.push_back(prompt_of(prompt == nullptr ? Json("") : *prompt));
  } else {
    for (const Json& one : *prompt) request.prompts.push_back(prompt_of(one));
  }
}

void read_stops(BodyFields& body, std::vector<std::string>& stops) {
  const Json* const stop = body.find("stop");
  const Json list = stop == nullptr ? Json::array() : stop->is_array() ? *stop : Json::array({*stop});
  check(list.size() <= kMaxStops, "stop: must be at most {} texts; got {}", kMaxStops, list.size());
  for (const Json& text : list) {
    stops.push_back(text.is_string() ? text.get<std::string>() : "");
    check(!stops.back().empty() && stops.back().size() <= kMaxStopBytes,
          "stop: must be a text of 1 to {} bytes, or a list of such; got {}", kMaxStopBytes, shown(text));
  }
}

void read_sampling(BodyFields& body, Sampling& sampling) {
  sampling.temperature = body.number("temperature", 1.0, 0, kMaxCount);
  sampling.top_p = body.number("top_p", 1.0, 0, 1);
  sampling.top_k = body.number<std::int64_t>("top_k", 0, 0, kMaxCount);
  sampling.min_p = body.number("min_p", 0.0, 0, 1);
  sampling.repetition_penalty = body.number("repetition_penalty", 1.0, 1 / kMaxPenalty, kMaxPenalty);
  sampling.frequency_penalty = body.number("frequency_penalty", 0.0, -kMaxPenalty, kMaxPenalty);
  sampling.presence_penalty = body.number("presence_penalty", 0.0, -kMaxPenalty, kMaxPenalty);
  sampling.seed = body.number<std::uint64_t>("seed", sampling.seed, 0, kMaxSeed);
  const Sampler valid(sampling);
}

bool asks_for_usage(const Json& options) {
  const auto usage = options.find("include_usage");
  check(options.is_object() && options.size() == 1 && usage != options.end() && usage->is_boolean(),
        "stream_options: must be an object with include_usage, true or false; got {}", shown(options));
  return usage->get<bool>();
}

Json head_json(const CompletionHead& head) {
  return {{"id", head.id},     {"object", "text_completion"}, {"created", head.created}, {"model", head.model},
          {"step", head.step}, {"seed", head.seed},           {"choices", Json::array()}};
}

Json choice_json(const CompletionChoice& choice) {
  Json reason;
  if (choice.end)
    reason = *choice.end == TextEnd::stop_string || *choice.end == TextEnd::end_of_text ? "stop" : "length";
  return {{"text", choice.text}, {"index", choice.index}, {"logprobs", choice.logprobs}, {"finish_reason", reason}};
}

Json usage_json(const CompletionUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

}  // namespace

Json parse_body(std::string_view text) {
  Json body;
  try {
    body = Json::parse(text, [](int depth, Json::parse_event_t, const Json&) { return depth <= kMaxJsonDepth; });
  } catch (const Json::exception& error) {
    fail("body: must be JSON; {}", truncate_for_message(error.what(), 200));
  }
  check(body.is_object(), "body: must be an object of JSON; got {}", shown(body));
  return body;
}

CompletionRequest parse_completion(std::string_view text, std::uint64_t seed) {
  BodyFields body(text);
  CompletionRequest request;
  const Json* const model = body.find("model");
  check(model != nullptr && model->is_string(), "model: must be given, as GET /v1/models lists them");
  request.model = model->get<std::string>();
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
  check(choices * generate.max_tokens * (alternatives + 2) <= kMaxAnswerEntries,
        "max_tokens: texts, their tokens and alternatives must be at most {} in all; ask for fewer", kMaxAnswerEntries);
  request.echo = body.flag("echo");
  request.stream = body.flag("stream");
  if (const Json* const options = body.find("stream_options")) request.include_usage = asks_for_usage(*options);
  body.find("user");  // which has no effect
  body.require_no_others();
  return request;
}

void LogprobsWriter::clear() {
  lists_ = Json::object();
  for (const char* name : {"tokens", "token_ids", "token_logprobs", "top_logprobs", "top_ids", "text_offset"})
    lists_[name] = Json::array();
}

// A token that is no text of its own is named by its bytes, so that no two have the same name: bytes:\xe3\x81.
std::string LogprobsWriter::name(std::int32_t id) const {
  const std::string_view bytes = tokenizer_.bytes(id);
  if (!invalid_utf8(bytes)) return std::string(bytes);
  std::string escaped = "bytes:";
  for (const char byte : bytes) escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return escaped;
}

void LogprobsWriter::add(std::int32_t id, const TokenLogProbabilities* scores) {
  Json top, ids, value;
  if (scores != nullptr) value = scores->drawn.value;
  for (std::size_t i = 0; scores != nullptr && i < scores->top.size(); ++i) {
    const LogProbability& entry = scores->top[i];
    top[name(entry.id)] = entry.value;
    ids[name(entry.id)] = entry.id;
  }
  lists_["tokens"].push_back(name(id));
  lists_["token_ids"].push_back(id);
  lists_["token_logprobs"].push_back(value);
  lists_["top_logprobs"].push_back(top);
  lists_["top_ids"].push_back(ids);
  lists_["text_offset"].push_back(offset_);
  offset_ += std::ranges::count_if(tokenizer_.bytes(id), [](char byte) { return !is_continuation(byte); });
}

Json LogprobsWriter::take() {
  Json taken = std::move(lists_);
  clear();
  return taken;
}

Json completion_json(const CompletionHead& head, const std::vector<CompletionChoice>& choices,
                     const CompletionUsage* usage) {
  Json answer = head_json(head);
  for (const CompletionChoice& choice : choices) answer["choices"].push_back(choice_json(choice));
  if (usage != nullptr) answer["usage"] = usage_json(*usage);
  return answer;
}

}  // namespace maki
