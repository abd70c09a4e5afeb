#include "nn/ngram.h"

#include <algorithm>
#include <charconv>
#include <fmt/ranges.h>
#include <functional>
#include <limits>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"

namespace maki {
namespace {

const NgramOptions& checked(const NgramOptions& o) {
  check(!o.orders.empty() && std::ranges::adjacent_find(o.orders, std::ranges::greater_equal()) == o.orders.end() &&
            o.orders.front() >= 2 && o.orders.back() <= kMaxNgramTableOrder,
        "ngram: orders must be ascending numbers from 2 to {}; got {}", kMaxNgramTableOrder, fmt::join(o.orders, ","));
  // So that the row numbers of all orders together fit in int32.
  check(o.rows >= 1 && o.rows <= std::numeric_limits<std::int32_t>::max() / kMaxNgramTableOrder,
        "ngram: an order must have between 1 and {} rows; got {}",
        std::numeric_limits<std::int32_t>::max() / kMaxNgramTableOrder, o.rows);
  check(o.dropout >= 0 && o.dropout < 1, "ngram: dropout must be in [0, 1); got {}", o.dropout);
  return o;
}

// base^exponent, or `limit` + 1 if it is more than that.
std::int64_t power_up_to(std::int64_t base, std::int64_t exponent, std::int64_t limit) {
  std::int64_t power = 1;
  for (std::int64_t i = 0; i < exponent; ++i) {
    if (power > limit / base) return limit + 1;
    power *= base;
  }
  return power;
}

// The finalizer of MurmurHash3 (Appleby), which lets every bit of x change every bit of the result.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdU;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53U;
  return x ^ (x >> 33);
}

}  // namespace

std::string ngram_orders_text(const std::vector<std::int64_t>& orders) {
  return orders.empty() ? "none" : fmt::format("{}", fmt::join(orders, ","));
}

std::vector<std::int64_t> ngram_orders_named(std::string_view text) {
  std::vector<std::int64_t> orders;
  const char *at = text.data(), *const end = at + text.size();
  while (text != "none" && at < end) {
    std::int64_t order = 0;
    const auto [next, error] = std::from_chars(at, end, order);
    if (error != std::errc()) break;
    orders.push_back(order);
    at = next == end ? end : next + 1;
  }
  const bool ascending = std::ranges::adjacent_find(orders, std::ranges::greater_equal()) == orders.end();
  check(ngram_orders_text(orders) == text && ascending &&
            (orders.empty() || (orders.front() >= 2 && orders.back() <= kMaxNgramTableOrder)),
        "ngram_orders: must be none or ascending numbers from 2 to {} with commas, such as 2,3,4; got {}",
        kMaxNgramTableOrder, truncate_for_message(text));
  return orders;
}

void RecentTokens::append(const Tensor& ids) {
  if (capacity_ == 0) return;
  const std::int64_t batch = ids.shape()[0], added = ids.shape()[1], held = ids_ ? ids_.shape()[1] : 0;
  const std::int64_t kept = std::min(held, std::max<std::int64_t>(0, capacity_ - added));
  const std::int64_t taken = std::min(added, capacity_);
  Tensor next = empty({batch, kept + taken}, DType::int32);
  for (std::int64_t b = 0; b < batch; ++b) {
    std::int32_t* to = next.data<std::int32_t>() + b * (kept + taken);
    if (kept > 0) to = std::copy_n(ids_.data<std::int32_t>() + (b + 1) * held - kept, kept, to);
    std::copy_n(ids.data<std::int32_t>() + (b + 1) * added - taken, taken, to);
  }
  ids_ = next;
}

void RecentTokens::reorder(std::span<const std::int32_t> rows) {
  if (!ids_) return;
  const std::int64_t held = ids_.shape()[1];
  Tensor next = empty({std::ssize(rows), held}, DType::int32);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(ids_.data<std::int32_t>() + rows[i] * held, held,
                next.data<std::int32_t>() + static_cast<std::int64_t>(i) * held);
  }
  ids_ = next;
}

std::vector<NgramEmbedding::Table> NgramEmbedding::tables(std::int64_t vocab_size, const NgramOptions& options) {
  std::vector<Table> tables;
  std::int64_t first = 0;
  for (const std::int64_t order : options.orders) {
    const std::int64_t all = power_up_to(vocab_size, order, options.rows);
    tables.push_back({order, first, std::min(all, options.rows), all <= options.rows});
    first += tables.back().rows;
  }
  return tables;
}

NgramEmbedding::NgramEmbedding(const Scope& scope, std::int64_t vocab, std::int64_t n_embd, const NgramOptions& o)
    : options(checked(o)),
      vocab_size(vocab),
      weight(scope.table("weight", Shape{tables(vocab, o).back().first + tables(vocab, o).back().rows, n_embd})),
      drop{o.dropout},
      tables_(tables(vocab, o)) {
  weight.set_multiplied(false);
}

// The row of the n-gram that ends in *last, before which `available` tokens are known; −1 if these are too few.
std::int32_t NgramEmbedding::row(const Table& table, const std::int32_t* last, std::int64_t available) const {
  if (available < table.order - 1) return -1;
  std::uint64_t row = 0;
  if (table.exact) {
    for (std::int64_t i = table.order - 1; i >= 0; --i) {
      row = row * static_cast<std::uint64_t>(vocab_size) + static_cast<std::uint64_t>(last[-i]);
    }
  } else {
    for (std::int64_t i = table.order - 1; i >= 0; --i) row = mixed(row + static_cast<std::uint64_t>(last[-i]) + 1);
    row = ((row >> 32) * static_cast<std::uint64_t>(table.rows)) >> 32;
  }
  return static_cast<std::int32_t>(table.first + static_cast<std::int64_t>(row));
}

Tensor NgramEmbedding::rows(const Tensor& ids, const Tensor& before) const {
  const std::int64_t batch = ids.shape()[0], tokens = ids.shape()[1], terms = std::ssize(tables_);
  const std::int64_t held = before ? std::min(before.shape()[1], longest() - 1) : 0, width = held + tokens;
  Tensor line = empty({batch, width}, DType::int32), rows = empty({batch, tokens, terms}, DType::int32);
  parallel_for(batch, width * terms, [&](std::int64_t b) {
    std::int32_t* const all = line.data<std::int32_t>() + b * width;
    if (held > 0) std::copy_n(before.data<std::int32_t>() + (b + 1) * before.shape()[1] - held, held, all);
    std::copy_n(ids.data<std::int32_t>() + b * tokens, tokens, all + held);
    std::int32_t* to = rows.data<std::int32_t>() + b * tokens * terms;
    for (std::int64_t t = held; t < width; ++t) {
      for (const Table& table : tables_) *to++ = row(table, all + t, t);
    }
  });
  return rows;
}

}  // namespace maki
