#include <algorithm>
#include <fmt/ranges.h>
#include <utility>

#include "data/io/error.h"
#include "data/io/number.h"
#include "data/io/system_random.h"
#include "train/app/flags.h"
#include "train/app/progress.h"
#include "train/app/verbs/generate.h"

namespace maki {
namespace {

// Factors of a logit, and what is subtracted from one: far beyond useful values, which are near 1 and 0.
constexpr double kMinRepetitionFactor = 0.01, kMaxRepetitionFactor = 100, kMaxSubtractedPenalty = 100;
constexpr double kMaxListedTokens = 1000;  // for each new token, by --logprobs: bounds the output

void add_penalties(const Command& command, Sampling& sampling) {
  command.add_number(
      "--repetition-penalty", sampling.repetition_penalty, kMinRepetitionFactor, kMaxRepetitionFactor, "FACTOR",
      "divide positive logits of tokens in the prompt and the new text by this, and multiply negative ones");
  command.add_number("--frequency-penalty", sampling.frequency_penalty, -kMaxSubtractedPenalty, kMaxSubtractedPenalty,
                     "NUMBER", "subtract this from the logit of a token for each of its occurrences in the new text");
  command.add_number("--presence-penalty", sampling.presence_penalty, -kMaxSubtractedPenalty, kMaxSubtractedPenalty,
                     "NUMBER", "subtract this from the logits of all tokens that occur in the new text");
}

// Throws unless all options that only a draw uses have the values that change nothing.
void require_no_draw_options(const SamplingOptions& flags, const Sampling& sampling) {
  const bool cold = sampling.temperature == 0;
  const std::pair<const char*, bool> unused[] = {{"top-k", cold && sampling.top_k > 0},
                                                 {"top-p", sampling.top_p < 1},
                                                 {"min-p", sampling.min_p > 0},
                                                 {"seed", flags.seed.has_value()}};
  for (const auto& [option, given] : unused) {
    check(!given, "{0}: has no effect with {1}, which always chooses the most likely token; omit --{0}, or {1}", option,
          cold ? "--temperature 0" : "--top-k 1");
  }
}

bool is_whole_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::int32_t> ids_of(const std::string& text, const Tokenizer& tokenizer) {
  try {
    return tokenizer.encode_with_specials(text);
  } catch (const CorpusError& error) {  // rethrown as Error: a wrong value of an option is a usage error (exit code 2)
    fail("logit-bias: {}: {}", text, error.what());
  }
}

// The id of the token that an entry names before its '='. Digits are always an id, so a token whose text consists of
// digits can be named by its id only.
std::int32_t token_named(const std::string& text, const Tokenizer& tokenizer) {
  const std::int64_t vocabulary = tokenizer.vocab_size();
  if (is_whole_number(text))
    return static_cast<std::int32_t>(parse_integer("logit-bias: the id", text, 0, static_cast<double>(vocabulary - 1)));
  const std::vector<std::int32_t> ids = ids_of(text, tokenizer);
  check(ids.size() == 1, "logit-bias: must name one token; \"{}\" is {} ({}); give each an option of its own", text,
        pluralize(std::ssize(ids), "token"), fmt::join(ids, ", "));
  return ids.front();
}

// Parses entries ID=BIAS or TEXT=BIAS, one per token: a whole number is an id, any other text must be the text of one
// token (or of the one that ends a text). The last "=" separates the two. If a token is given twice, the last bias
// holds. Throws Error for an entry without a token of the vocabulary, or whose bias is not a number in [-1e9, 1e9].
std::vector<LogitBias> parse_logit_bias(const std::vector<std::string>& entries, const Tokenizer& tokenizer) {
  std::vector<LogitBias> list;
  for (const std::string& entry : entries) {
    const std::size_t sign = entry.rfind('=');  // the last one: the text of a token may contain '=', a number cannot
    check(sign != std::string::npos && sign > 0, "logit-bias: must be ID=BIAS or TEXT=BIAS, such as 5=-2.5; got {}",
          entry);
    const std::int32_t id = token_named(entry.substr(0, sign), tokenizer);
    const double bias = parse_number("logit-bias", entry.substr(sign + 1), -kMaxCount, kMaxCount);
    std::erase_if(list, [&](const LogitBias& other) { return other.id == id; });
    list.push_back({id, bias});
  }
  return list;
}

// The given seed, else a fresh one.
std::int64_t choose_seed(const SamplingOptions& flags, bool announce) {
  if (flags.seed) return *flags.seed;
  const std::int64_t seed = fresh_seed();
  if (announce) to_stderr("seed {0} (reproduce this text with --seed {0})\n", seed);
  return seed;
}

}  // namespace

bool draws_tokens(const Sampling& sampling) { return sampling.temperature > 0 && sampling.top_k != 1; }

std::vector<std::string> add_sampling_options(const Command& command, SamplingOptions& flags, ContinueTexts& texts) {
  Sampling& sampling = texts.text.generate.sampling;
  command.add_number("-n,--samples", texts.samples, 1, kMaxCount,
                     "number of texts to generate, separated by lines of ---");
  command.add_number("--temperature", sampling.temperature, 0, kMaxCount, "NUMBER",
                     "sampling temperature: higher is more random; 0: always the most likely token");
  command.add_number("--top-k", sampling.top_k, 0, kMaxCount, "sample from the k most likely tokens only; 0: from all");
  command.add_number("--top-p", sampling.top_p, 0, 1, "PROBABILITY",
                     "sample from the smallest set of most likely tokens whose total probability reaches this value");
  command.add_number("--min-p", sampling.min_p, 0, 1, "FRACTION",
                     "sample from tokens that have at least this fraction of the probability of the most likely one");
  add_penalties(command, sampling);
  command.add_list(
      "--logit-bias", flags.logit_bias, "TOKEN=NUMBER",
      "add a number to the logit of a token, given by its id or its text: 5=-2, or the=1.5; may be repeated");
  command.add_number("--seed", flags.seed, 0, kMaxSeed, "random seed [a new one, printed to stderr]");
  command.add_list("--stop", texts.text.stop, "TEXT", "stop generating before this string; may be repeated");
  command.add_option("--overflow", flags.overflow, "recompute|stop",
                     "reaction to a full context window: recompute its second half and go on, or stop [recompute]");
  command.add_number(
      "--logprobs", flags.log_probabilities, 0, kMaxListedTokens,
      "print the log-probability of every token, and of this number of the most likely ones; needs --json");
  return {"--samples",           "--temperature",      "--top-k",      "--top-p", "--min-p", "--repetition-penalty",
          "--frequency-penalty", "--presence-penalty", "--logit-bias", "--seed",  "--stop",  "--overflow",
          "--logprobs"};
}

void check_sampling(const SamplingOptions& flags, const ContinueTexts& texts, bool json) {
  check(flags.overflow == "recompute" || flags.overflow == "stop", "overflow: must be recompute or stop; got {}",
        flags.overflow);
  check(!flags.log_probabilities || json, "logprobs: are printed with --json only; add it, or omit --logprobs");
  const Sampling& sampling = texts.text.generate.sampling;
  const bool draws = draws_tokens(sampling);
  check(
      texts.samples == 1 || draws,
      "samples: {} texts would all be the same with --temperature 0 or --top-k 1; change these, or leave --samples out",
      texts.samples);
  if (!draws) require_no_draw_options(flags, sampling);
  const Sampler valid(sampling);
}

void finish_sampling(const SamplingOptions& flags, const Tokenizer& tokenizer, ContinueTexts& texts, bool announce) {
  GenerateOptions& generate = texts.text.generate;
  generate.slide_context = flags.overflow == "recompute";
  generate.sampling.logit_bias = parse_logit_bias(flags.logit_bias, tokenizer);
  texts.text.log_probabilities = flags.log_probabilities;
  generate.sampling.seed = static_cast<std::uint64_t>(choose_seed(flags, announce && draws_tokens(generate.sampling)));
}

}  // namespace maki
