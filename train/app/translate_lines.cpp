#include "train/app/translate_lines.h"

#include <cerrno>
#include <fmt/core.h>
#include <istream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "data/io/error.h"
#include "data/io/number.h"
#include "data/io/utf8.h"
#include "train/app/console.h"
#include "train/app/interrupt.h"
#include "train/app/progress.h"

namespace maki {
namespace {

// Lines that are read, sorted by length and answered together.
constexpr std::size_t kLinesPerBlock = 512;

std::vector<std::int32_t> encode_source(const LoadedModel& loaded, const std::string& line, std::int64_t number,
                                        const std::string& unknown) {
  const auto bad = invalid_utf8(line);
  check<CorpusError>(!bad, "line {}: must be UTF-8; the byte at offset {} is not", number, bad.value_or(0));
  std::int64_t left_out = 0;
  try {
    std::vector<std::int32_t> ids =
        encode_line(*loaded.tokenizers.source, line, parse_unknown_policy(unknown), left_out);
    const Config& c = loaded.state.config;
    check<CorpusError>(c.positions != "learned" || std::ssize(ids) < c.block_size,
                       "may have at most {} tokens, because the model has learned positions; it has {}; shorten it",
                       c.block_size - 1, ids.size());
    if (left_out > 0)
      to_stderr("line {}: {} that the vocabulary lacks left out or replaced\n", number,
                pluralize(left_out, "character"));
    return ids;
  } catch (const CorpusError& error) {
    fail<CorpusError>("line {}: {}", number, error.what());
  }
}

void print_line(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fputc('\n', stdout) == EOF)
    throw std::system_error(errno, std::generic_category());
}

std::string json_line(const LoadedModel& loaded, const std::string& source, const std::string& text,
                      const Hypothesis& result) {
  const nlohmann::ordered_json facts{{"checkpoint", loaded.path},
                                     {"step", loaded.state.step},
                                     {"source", source},
                                     {"text", text},
                                     {"tokens", result.ids.size()},
                                     {"log_probability", result.log_probability},
                                     {"score", result.score},
                                     {"ended", result.ended}};
  return facts.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Answers a block of lines, the first of which has this number. Lines without a token are not translated.
void answer(const LoadedModel& loaded, const std::vector<std::string>& lines, std::int64_t first,
            const TranslateLines& how) {
  std::vector<std::vector<std::int32_t>> sources;
  std::vector<std::size_t> rows;  // of the lines that are translated
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    auto source = encode_source(loaded, lines[i], first + static_cast<std::int64_t>(i), how.unknown);
    if (source.empty()) continue;
    sources.push_back(std::move(source));
    rows.push_back(i);
  }
  const std::vector<Hypothesis> found =
      translate(loaded.generator(), sources, ends_of(loaded.tokenizers), how.options, interrupt_request());
  if (interrupted() != 0) return;
  std::vector<Hypothesis> results(lines.size());
  for (std::size_t i = 0; i < rows.size(); ++i) results[rows[i]] = found[i];
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string text = translated_line(*loaded.tokenizers.target, results[i]);
    print_line(how.json ? json_line(loaded, lines[i], text, results[i]) : text);
  }
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
}

}  // namespace

std::vector<std::string> read_lines(std::istream& input, std::size_t most) {
  std::vector<std::string> lines;
  for (std::string line; lines.size() < most && std::getline(input, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

int translate_lines(const LoadedModel& loaded, std::istream& input, bool interactive, const TranslateLines& how) {
  parse_unknown_policy(how.unknown);
  const DeferInterrupts deferred;
  std::int64_t number = 1;
  try {
    for (;;) {
      const std::vector<std::string> lines = read_lines(input, interactive ? 1 : kLinesPerBlock);
      if (lines.empty()) return 0;
      answer(loaded, lines, number, how);
      if (interrupted() != 0) return interrupt_exit_code();
      number += static_cast<std::int64_t>(lines.size());
    }
  } catch (const BadLogitsError& error) {
    fail<CheckpointError>("{}: {}", loaded.path, error.what());
  }
}

}  // namespace maki
