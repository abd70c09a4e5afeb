// The tokens of a large vocabulary in compact form: their bytes one after the other, and an index that finds them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/piece_map.h"

namespace maki {

/// Strings by id. Requires: they have less than 4 GiB together.
class TokenList {
 public:
  void add(std::string_view token) {
    bytes_ += token;
    ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  }
  std::size_t size() const { return ends_.size(); }
  /// Valid until a token is added. Requires: id < size().
  std::string_view operator[](std::size_t id) const {
    const std::size_t begin = id == 0 ? 0 : ends_[id - 1];
    return std::string_view(bytes_).substr(begin, ends_[id] - begin);
  }

 private:
  std::string bytes_;
  std::vector<std::uint32_t> ends_;
};

/// Finds the id of a token. Takes 8 to 16 bytes per token.
class TokenIndex {
 public:
  TokenIndex() = default;
  /// `tokens` must outlive the index. Adds all tokens; of equal ones the first is found.
  explicit TokenIndex(const TokenList& tokens) : tokens_(&tokens) {
    std::size_t slots = 16;
    while (slots < 2 * tokens.size()) slots *= 2;
    slots_.assign(slots, -1);
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      std::int32_t& slot = slots_[slot_of(tokens[id])];
      if (slot < 0) slot = static_cast<std::int32_t>(id);
    }
  }

  /// The id of a token, or -1.
  std::int32_t find(std::string_view token) const { return slots_.empty() ? -1 : slots_[slot_of(token)]; }

 private:
  std::size_t slot_of(std::string_view token) const {
    std::size_t slot = hash_of_piece(token) & (slots_.size() - 1);
    while (slots_[slot] >= 0 && (*tokens_)[static_cast<std::size_t>(slots_[slot])] != token)
      slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  const TokenList* tokens_ = nullptr;
  std::vector<std::int32_t> slots_;
};

}  // namespace maki
