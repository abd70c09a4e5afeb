#include "train/app/serve/completions.h"

#include <algorithm>
#include <cmath>
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

// The fields of a body. null stands for a field that was not given.
class BodyFields {
 public:
  explicit BodyFields(std::string_view body) {
    try {
      // What is nested deeper than any field is dropped at once.
      body_ = Json::parse(body, [](int depth, Json::parse_event_t, const Json&) { return depth <= kMaxJsonDepth; });
    } catch (const Json::exception& error) {
      fail("body: must be JSON; byte {} is not", byte_of(error));
    }
    check(body_.is_object(), "body: must be an object of JSON; got {}", shown(body_));
  }

  const Json* find(const char* name) {
    known_.emplace_back(name);
    const auto field = body_.find(name);
    return field == body_.end() || field->is_null() ? nullptr : &*field;
  }
  std::int64_t integer(const char* name, std::int64_t otherwise, std::int64_t low, std::int64_t high) {
    const Json* const value = find(name);
    if (value == nullptr) return otherwise;
    const bool good =
        value->is_number_integer() &&
        (!value->is_number_unsigned() || value->get<std::uint64_t>() <= static_cast<std::uint64_t>(high)) &&
        value->get<std::int64_t>() >= low && value->get<std::int64_t>() <= high;
    check(good, "{}: must be a whole number between {} and {}; got {}", name, low, high, shown(*value));
    return value->get<std::int64_t>();
  }
  double number(const char* name, double otherwise, double low, double high) {
    const Json* const value = find(name);
    if (value == nullptr) return otherwise;
    const bool good = value->is_number() && value->get<double>() >= low && value->get<double>() <= high;
    check(good, "{}: must be a number between {} and {}; got {}", name, low, high, shown(*value));
    return value->get<double>();
  }
  bool flag(const char* name) {
    const Json* const value = find(name);
    check(value == nullptr || value->is_boolean(), "{}: must be true or false; got {}", name,
          value == nullptr ? "" : shown(*value));
    return value != nullptr && value->get<bool>();
  }
  void require_no_others() const {
    for (const auto& [name, value] : body_.items()) {
      check(std::ranges::find(known_, name) != known_.end(), "{}: is not a field of a completion; must be one of {}",
            truncate_for_message(name), fmt::join(known_, ", "));
    }
  }
  static std::string shown(const Json& value) {
    return truncate_for_message(value.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

 private:
  static std::size_t byte_of(const Json::exception& error) {
    const auto* const parse = dynamic_cast<const Json::parse_error*>(&error);
    return parse == nullptr ? 0 : parse->byte;
  }

  Json body_;
  std::vector<std::string> known_;
};

CompletionRequest::Prompt prompt_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  check(value.is_array() && !value.empty(), "prompt: must be a text, ids of tokens, or a list of these; got {}",
        BodyFields::shown(value));
  std::vector<std::int32_t> ids;
  for (const Json& id : value) {
    const bool good = id.is_number_unsigned() &&
                      id.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
    check(good, "prompt: an id must be a whole number of at least 0; got {}", BodyFields::shown(id));
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

void read_prompts(BodyFields& body, CompletionRequest& request) {
  const Json* const prompt = body.find("prompt");
  if (prompt == nullptr) {
    request.prompts.emplace_back("");
  } else if (prompt->is_array() && !prompt->empty() && !prompt->front().is_number()) {
    for (const Json& one : *prompt) request.prompts.push_back(prompt_of(one));
  } else {
    request.prompts.push_back(prompt_of(*prompt));
  }
}

void read_stops(BodyFields& body, std::vector<std::string>& stops) {
  const Json* const stop = body.find("stop");
  if (stop == nullptr) return;
  const Json list = stop->is_array() ? *stop : Json::array({*stop});
  check(list.size() <= kMaxStops, "stop: must be at most {} texts; got {}", kMaxStops, list.size());
  for (const Json& text : list) {
    check(text.is_string() && !text.get<std::string>().empty() && text.get<std::string>().size() <= kMaxStopBytes,
          "stop: must be a text, or a list of texts, of 1 to {} bytes; got {}", kMaxStopBytes, BodyFields::shown(text));
    stops.push_back(text.get<std::string>());
  }
}

void read_bias(BodyFields& body, std::vector<LogitBias>& list) {
  const Json* const bias = body.find("logit_bias");
  if (bias == nullptr) return;
  check(bias->is_object(), "logit_bias: must be an object of ids and numbers; got {}", BodyFields::shown(*bias));
  for (const auto& [id, value] : bias->items()) {
    check(value.is_number() && std::abs(value.get<double>()) <= kMaxCount,
          "logit_bias: must be a number between -1e9 and 1e9; got {}", BodyFields::shown(value));
    list.push_back({static_cast<std::int32_t>(
                        parse_integer("logit_bias: the id", id, 0, std::numeric_limits<std::int32_t>::max())),
                    value.get<double>()});
  }
}

void read_sampling(BodyFields& body, CompletionRequest& request) {
  Sampling& sampling = request.text.generate.sampling;
  sampling.temperature = body.number("temperature", 1, 0, kMaxCount);
  sampling.top_p = body.number("top_p", 1, 0, 1);
  sampling.top_k = body.integer("top_k", 0, 0, static_cast<std::int64_t>(kMaxCount));
  sampling.min_p = body.number("min_p", 0, 0, 1);
  sampling.repetition_penalty = body.number("repetition_penalty", 1, 1 / kMaxPenalty, kMaxPenalty);
  sampling.frequency_penalty = body.number("frequency_penalty", 0, -kMaxPenalty, kMaxPenalty);
  sampling.presence_penalty = body.number("presence_penalty", 0, -kMaxPenalty, kMaxPenalty);
  request.has_seed = body.find("seed") != nullptr;
  sampling.seed = static_cast<std::uint64_t>(body.integer("seed", 0, 0, static_cast<std::int64_t>(kMaxSeed)));
  read_bias(body, sampling.logit_bias);
  const Sampler valid(sampling);
}

// Fields that ask for nothing, or for what maki does not do.
void read_unsupported(BodyFields& body, std::int64_t n) {
  const Json* const user = body.find("user");
  check(user == nullptr || user->is_string(), "user: must be a text");
  const Json* const suffix = body.find("suffix");
  check(suffix == nullptr || *suffix == "", "suffix: texts are continued at their end only; omit it");
  check(body.integer("best_of", n, 1, kMaxChoices) == n, "best_of: must be n, which is {}; omit it", n);
}

Json head_json(const CompletionHead& head) {
  return {{"id", head.id},       {"object", "text_completion"}, {"created", head.created},
          {"model", head.model}, {"seed", head.seed},           {"choices", Json::array()}};
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

std::string event(const Json& data) { return "data: " + json_text(data) + "\n"; }

}  // namespace

CompletionRequest parse_completion(std::string_view text) {
  BodyFields body(text);
  CompletionRequest request;
  if (const Json* const model = body.find("model")) {
    check(model->is_string(), "model: must be a text; got {}", BodyFields::shown(*model));
    request.model = model->get<std::string>();
  }
  read_prompts(body, request);
  request.n = body.integer("n", 1, 1, kMaxChoices);
  const std::int64_t choices = std::ssize(request.prompts) * request.n;
  check(choices <= kMaxChoices, "n: prompts times n must be at most {}; got {}", kMaxChoices, choices);
  request.text.generate.max_tokens = body.integer("max_tokens", 16, 0, kMaxCompletionTokens);
  read_sampling(body, request);
  read_stops(body, request.text.stop);
  if (body.find("logprobs") != nullptr)
    request.text.log_probabilities = body.integer("logprobs", 0, 0, kMaxAlternatives);
  const std::int64_t entries =
      choices * request.text.generate.max_tokens * (request.text.log_probabilities.value_or(0) + 1);
  check(
      entries <= kMaxAnswerEntries,
      "max_tokens: the answer must have at most {} tokens and alternatives in all; got {}; ask for fewer tokens, texts "
      "or logprobs",
      kMaxAnswerEntries, entries);
  request.echo = body.flag("echo");
  request.stream = body.flag("stream");
  if (const Json* const options = body.find("stream_options")) {
    check(options->is_object(), "stream_options: must be an object; got {}", BodyFields::shown(*options));
    const auto usage = options->find("include_usage");
    request.include_usage = usage != options->end() && *usage == true;
  }
  read_unsupported(body, request.n);
  body.require_no_others();
  return request;
}

void LogprobsWriter::clear() {
  lists_ = {{"tokens", Json::array()},       {"token_ids", Json::array()}, {"token_logprobs", Json::array()},
            {"top_logprobs", Json::array()}, {"top_ids", Json::array()},   {"text_offset", Json::array()}};
}

// A token that is no text of its own is named by its bytes, so that no two have the same name: bytes:\xe3\x81.
std::string LogprobsWriter::name(std::int32_t id) const {
  if (id >= tokenizer_.vocab_size()) return fmt::format("token:{}", id);
  const std::string_view bytes = tokenizer_.bytes(id);
  if (!invalid_utf8(bytes)) return std::string(bytes);
  std::string escaped = "bytes:";
  for (const char byte : bytes) escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return escaped;
}

void LogprobsWriter::add(std::int32_t id) {
  lists_["tokens"].push_back(name(id));
  lists_["token_ids"].push_back(id);
  lists_["token_logprobs"].push_back(nullptr);
  lists_["top_logprobs"].push_back(nullptr);
  lists_["top_ids"].push_back(nullptr);
  lists_["text_offset"].push_back(offset_);
  if (id < tokenizer_.vocab_size())
    offset_ += std::ranges::count_if(tokenizer_.bytes(id), [](char byte) { return !is_continuation(byte); });
}

void LogprobsWriter::add(const TokenLogProbabilities& token) {
  add(token.drawn.id);
  lists_["token_logprobs"].back() = token.drawn.value;
  Json top = Json::object(), ids = Json::object();
  for (const LogProbability& entry : token.top) {
    const std::string key = name(entry.id);
    top[key] = entry.value;
    ids[key] = entry.id;
  }
  lists_["top_logprobs"].back() = std::move(top);
  lists_["top_ids"].back() = std::move(ids);
}

Json LogprobsWriter::take() {
  Json taken = std::move(lists_);
  clear();
  return taken;
}

std::string completion_json(const CompletionHead& head, const std::vector<CompletionChoice>& choices,
                            const CompletionUsage& usage) {
  Json answer = head_json(head);
  for (const CompletionChoice& choice : choices) answer["choices"].push_back(choice_json(choice));
  answer["usage"] = usage_json(usage);
  return json_text(answer);
}

std::string chunk_event(const CompletionHead& head, const CompletionChoice& choice, bool include_usage) {
  Json chunk = head_json(head);
  chunk["choices"].push_back(choice_json(choice));
  if (include_usage) chunk["usage"] = nullptr;
  return event(chunk);
}

std::string usage_event(const CompletionHead& head, const CompletionUsage& usage) {
  Json chunk = head_json(head);
  chunk["usage"] = usage_json(usage);
  return event(chunk);
}

}  // namespace maki
