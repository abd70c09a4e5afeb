// The strings of tests/fixtures/make_bpe.py, and what Hugging Face's tokenizers make of them.
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/io/utf8.h"
#include "tests/files.h"

namespace maki::tests {

class BpeFixture {
 public:
  BpeFixture() : json_(nlohmann::json::parse(read_bytes(MAKI_SOURCE_DIR "/tests/fixtures/bpe_ids.json"))) {
    for (int i = 0; i < json_["count"].get<int>(); ++i) strings_.push_back(next_string());
  }

  const std::vector<std::string>& strings() const { return strings_; }
  std::int64_t vocabulary() const { return json_["vocabulary"]; }
  std::vector<std::string> rules() const {
    std::vector<std::string> names;
    for (const auto& [name, hashes] : json_["hashes"].items()) names.push_back(name);
    return names;
  }
  /// The hash of a hundred strings, from block * 100 on, that the script stored for a rule.
  std::string hash(const std::string& rule, std::size_t block) const { return json_["hashes"][rule][block]; }
  /// The text that the vocabulary was learned from.
  std::string training_text() const {
    std::string text;
    for (std::size_t i = 0; i < json_["trained"].get<std::size_t>(); ++i) text += (i == 0 ? "" : "\n") + strings_[i];
    return text;
  }
  static std::string tokenizer_path() { return MAKI_SOURCE_DIR "/tests/fixtures/bpe_tokenizer.json"; }

 private:
  // The generator of make_bpe.py, which must draw the same strings.
  std::uint64_t below(std::uint64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % n;
  }
  std::string next_string() {
    std::string text;
    for (std::uint64_t parts = 1 + below(12); parts > 0; --parts) {
      if (below(4) == 0) {
        const auto& range = json_["ranges"][below(json_["ranges"].size())];
        const std::uint64_t first = range[0], last = range[1];
        append_utf8(text, static_cast<char32_t>(first + below(last - first + 1)));
      } else {
        text += json_["fragments"][below(json_["fragments"].size())].get<std::string>();
      }
    }
    return text;
  }

  nlohmann::json json_;
  std::uint64_t state_ = 1;
  std::vector<std::string> strings_;
};

/// Continues `hash` by FNV-1a over ids of four bytes, the least significant first.
inline void add_to_hash(std::uint64_t& hash, const std::vector<std::int32_t>& ids) {
  for (const std::int32_t id : ids) {
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ (static_cast<std::uint32_t>(id) >> shift & 0xFF)) * 0x100000001B3u;
  }
}

}  // namespace maki::tests
