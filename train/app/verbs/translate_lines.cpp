#include <istream>

#include "data/io/error.h"
#include "train/app/interrupt.h"
#include "train/app/reading.h"
#include "train/app/report.h"
#include "train/app/verbs/generate.h"

namespace maki {
namespace {

// The most lines that are read, sorted by length and answered together: enough that batches have lines of nearly equal
// length, few enough that the first answers to a file come soon.
constexpr std::size_t kLinesPerBlock = 512;

std::vector<std::int32_t> encode_source(const LoadedModel& loaded, const std::string& line, std::int64_t number,
                                        Unknown unknown) {
  const std::string name = fmt::format("line {}", number);
  const Tokenizer& tokenizer = *loaded.tokenizers.source;
  std::vector<std::int32_t> ids = tokenizer.encode_line(encodable_text(tokenizer, line, name, unknown));
  require_positions(loaded, name, std::ssize(ids), /*adds=*/1);
  return ids;
}

std::string json_line(const LoadedModel& loaded, const std::string& source, const std::string& text,
                      const Hypothesis& result) {
  const Json facts{{"checkpoint", loaded.path},
                   {"step", loaded.state.step},
                   {"source", source},
                   {"text", text},
                   {"tokens", result.ids.size()},
                   {"log_probability", result.log_probability},
                   {"score", result.score},
                   {"ended", result.ended}};
  return json_text(facts);
}

// Answers a block of lines, the first of which has this number. Lines without a token are not translated.
void answer(const LoadedModel& loaded, std::span<const std::string> lines, std::int64_t first,
            const TranslateLines& how) {
  std::vector<std::vector<std::int32_t>> sources;
  std::vector<std::size_t> rows;  // of the lines that are translated
  std::exception_ptr bad;         // why the line after the last one cannot be translated
  for (std::size_t i = 0; i < lines.size() && !bad; ++i) {
    if (lines[i].empty()) continue;
    try {
      auto source = encode_source(loaded, lines[i], first + static_cast<std::int64_t>(i), how.unknown);
      if (source.empty()) continue;
      sources.push_back(std::move(source));
      rows.push_back(i);
    } catch (const CorpusError&) {
      bad = std::current_exception();
      lines = lines.first(i);
    }
  }
  const std::vector<Hypothesis> found =
      translate(loaded.generator(), sources, ends_of(loaded.tokenizers), how.options, interrupt_request());
  if (interrupted() != 0) return;
  std::vector<Hypothesis> results(lines.size());
  for (std::size_t i = 0; i < rows.size(); ++i) results[rows[i]] = found[i];
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string text = translated_line(*loaded.tokenizers.target, results[i]);
    print_result(how.json ? json_line(loaded, lines[i], text, results[i]) : text + '\n');
  }
  flush_results();
  if (bad) std::rethrow_exception(bad);
}

}  // namespace

void read_lines(std::istream& input, std::size_t most, std::vector<std::string>& lines) {
  for (std::string line;
       (lines.empty() || (lines.size() < most && input.rdbuf()->in_avail() > 0)) && next_line(input, line);) {
    lines.push_back(line);
  }
}

int translate_lines(const LoadedModel& loaded, std::istream& input, const TranslateLines& how) {
  std::int64_t number = 1;
  try {
    for (;;) {
      std::vector<std::string> lines;
      std::exception_ptr unreadable;  // why what follows them cannot be read
      try {
        read_lines(input, kLinesPerBlock, lines);
      } catch (const CorpusError&) {
        unreadable = std::current_exception();
      }
      if (lines.empty() && !unreadable) return 0;
      const DeferInterrupts deferred;  // not while waiting for lines, when there is nothing to end
      answer(loaded, lines, number, how);
      if (interrupted() != 0) return interrupt_exit_code();
      if (unreadable) std::rethrow_exception(unreadable);
      number += static_cast<std::int64_t>(lines.size());
    }
  } catch (const BadLogitsError& error) {
    fail<CheckpointError>("{}: {}", loaded.path, error.what());
  }
}

}  // namespace maki
