#include "data/tokenizer/tokens.h"

#include <algorithm>
#include <limits>

namespace maki {

std::size_t TokenSpan::size() const {
  return std::visit([](auto ids) { return ids.size(); }, ids_);
}

std::int32_t TokenSpan::operator[](std::size_t i) const {
  return std::visit([i](auto ids) { return static_cast<std::int32_t>(ids[i]); }, ids_);
}

void TokenSpan::copy(std::int64_t begin, std::span<std::int32_t> to) const {
  std::visit([&](auto ids) { std::ranges::copy(ids.subspan(static_cast<std::size_t>(begin), to.size()), to.begin()); },
             ids_);
}

std::vector<std::int32_t> TokenSpan::ids(std::size_t begin, std::size_t count) const {
  begin = std::min(begin, size());
  std::vector<std::int32_t> copied(std::min(count, size() - begin));
  copy(static_cast<std::int64_t>(begin), copied);
  return copied;
}

std::pair<std::size_t, std::size_t> TokenSpan::joins_between(std::int64_t begin, std::int64_t end) const {
  const auto index = [&](std::int64_t at) {
    return static_cast<std::size_t>(std::ranges::lower_bound(joins_, at) - joins_.begin());
  };
  return {index(begin), index(end)};
}

Tokens::Tokens(std::int64_t vocab_size) {
  if (vocab_size <= std::numeric_limits<std::uint8_t>::max() + 1) {
    ids_ = std::vector<std::uint8_t>();
  } else if (vocab_size <= std::numeric_limits<std::uint16_t>::max() + 1) {
    ids_ = std::vector<std::uint16_t>();
  }
}

void Tokens::reserve(std::size_t ids) {
  std::visit([ids](auto& held) { held.reserve(ids); }, ids_);
}

void Tokens::append(std::span<const std::int32_t> ids) {
  std::visit(
      [ids](auto& held) {
        using Id = typename std::remove_reference_t<decltype(held)>::value_type;
        const std::size_t before = held.size();
        held.resize(before + ids.size());
        std::ranges::transform(ids, held.begin() + static_cast<std::ptrdiff_t>(before),
                               [](std::int32_t id) { return static_cast<Id>(id); });
      },
      ids_);
}

void Tokens::begin_piece() {
  const auto here = static_cast<std::int64_t>(size());
  if (here > 0 && (joins_.empty() || joins_.back() < here)) joins_.push_back(here);
}

TokenSpan Tokens::view() const {
  return std::visit([this](const auto& held) { return TokenSpan(std::span(held), joins_); }, ids_);
}

}  // namespace maki
