#include "data/tokenizer/tokens.h"

#include <algorithm>
#include <limits>

#include "autograd/core/check.h"
#include "data/io/error.h"

namespace maki {
namespace {

void check_file_id(std::int32_t id, std::int64_t vocab_size) {
  check<CorpusError>(id >= 0 && id < vocab_size,
                     "tokens: the ids in a token file must be below the {} of its vocabulary; got {}; the file is "
                     "damaged or belongs to another tokenizer",
                     vocab_size, static_cast<std::uint32_t>(id));
}

}  // namespace

std::size_t TokenSpan::size() const {
  return std::visit([](auto ids) { return ids.size(); }, ids_);
}

std::int32_t TokenSpan::operator[](std::size_t i) const {
  const std::int32_t id = std::visit([i](auto ids) { return static_cast<std::int32_t>(ids[i]); }, ids_);
  if (vocab_size_ > 0) check_file_id(id, vocab_size_);
  return id;
}

void TokenSpan::copy(std::int64_t begin, std::span<std::int32_t> to) const {
  const auto first = static_cast<std::size_t>(begin);
  std::visit(
      [&](auto ids) {
        if constexpr (std::is_same_v<decltype(ids), SourceRange>) {
          ids.source->copy(ids.begin + first, to);
        } else {
          std::ranges::copy(ids.subspan(first, to.size()), to.begin());
        }
      },
      ids_);
  if (vocab_size_ == 0) return;
  // Read as unsigned numbers, negative ids are too large.
  std::uint32_t largest = 0;
  for (const std::int32_t id : to) largest = std::max(largest, static_cast<std::uint32_t>(id));
  check_file_id(static_cast<std::int32_t>(largest), vocab_size_);
}

std::vector<std::int32_t> TokenSpan::ids(std::size_t begin, std::size_t count) const {
  begin = std::min(begin, size());
  std::vector<std::int32_t> copied(std::min(count, size() - begin));
  copy(static_cast<std::int64_t>(begin), copied);
  return copied;
}

TokenSpan TokenSpan::first(std::size_t count) const {
  TokenSpan part = *this;
  std::visit([&](auto ids) { part.ids_ = ids.first(count); }, ids_);
  return part;
}

TokenSpan TokenSpan::last(std::size_t count) const {
  TokenSpan part = *this;
  std::visit([&](auto ids) { part.ids_ = ids.last(count); }, ids_);
  return part;
}

std::pair<std::size_t, std::size_t> TokenSpan::joins_between(std::int64_t begin, std::int64_t end) const {
  const auto index = [&](std::int64_t at) {
    return static_cast<std::size_t>(std::ranges::lower_bound(joins_, at) - joins_.begin());
  };
  return {index(begin), index(end)};
}

TokenChain::TokenChain(std::vector<TokenSpan> parts, Border border) : parts_(std::move(parts)) {
  std::erase_if(parts_, [](const TokenSpan& part) { return part.empty(); });
  for (const TokenSpan& part : parts_) {
    const auto begin = static_cast<std::int64_t>(size());
    if (border == Border::piece && begin > 0) joins_.push_back(begin);
    for (const std::int64_t join : part.joins()) joins_.push_back(begin + join);
    ends_.push_back(size() + part.size());
  }
}

void TokenChain::copy(std::size_t begin, std::span<std::int32_t> to) const {
  auto part = static_cast<std::size_t>(std::ranges::upper_bound(ends_, begin) - ends_.begin());
  for (; !to.empty(); ++part) {
    const std::size_t first = part == 0 ? 0 : ends_[part - 1], count = std::min(to.size(), ends_[part] - begin);
    parts_[part].copy(static_cast<std::int64_t>(begin - first), to.first(count));
    begin += count;
    to = to.subspan(count);
  }
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
  check(owner_ == nullptr, "tokens: those of a file cannot be appended to");
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
  if (owner_) return shared_;
  return std::visit([this](const auto& held) { return TokenSpan(std::span(held), joins_); }, ids_);
}

}  // namespace maki
