// Documents in JSON lines, or behind a separator, whose text arrives in blocks of any size.
#include <stdexcept>

#include "data/io/error.h"
#include "data/io/utf8.h"
#include "data/text/documents.h"
#include "tests/fuzz/targets.h"

namespace maki::fuzz {
namespace {

std::string documents_of(const DocumentOptions& options, std::string_view text, std::size_t block) {
  std::string found;
  DocumentReader reader(
      options, "file", [&](std::string_view part) { found += part; }, [&] { found += '\x1e'; });
  for (std::size_t at = 0; at < text.size(); at += block) reader.push(text.substr(at, block));
  reader.finish();
  return found;
}

void read_as_json_lines(const std::string& bytes) {
  const std::string text = replace_invalid_utf8(bytes);  // what a DocumentReader requires
  const DocumentOptions separated{.separator = "%%"}, lines{.json_field = "text"};
  for (const DocumentOptions& options : {separated, lines}) {
    if (documents_of(options, text, text.size() + 1) != documents_of(options, text, 3))
      throw std::logic_error("documents depend on the blocks in which their text arrives");
  }
}

std::vector<std::string> json_lines_seeds() {
  return {"{\"text\": \"The cat.\\n\\u732b\", \"id\": [1, {\"a\": null}]}\n{\"text\":\"\"}\n",
          "{\"text\":\"\\ud83d\\ude00\"}"};
}

}  // namespace

const Target kJsonLines = {"json_lines", read_as_json_lines, is<CorpusError>, json_lines_seeds};

}  // namespace maki::fuzz
