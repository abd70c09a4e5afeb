#include "data/ngram/ngram_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "autograd/core/check.h"

namespace maki {
namespace {

constexpr std::int64_t kBlockTokens = 1 << 14;  // read without asking whether to stop: some milliseconds

// The blocks of a text in an order of which every beginning is spread evenly over the text: the numbers of the blocks
// with their bits reversed (van der Corput 1935). Calls read(begin, end) until it returns false.
template <class Read>
void read_spread(std::int64_t tokens, std::int64_t block, const Read& read) {
  const auto blocks = static_cast<std::uint64_t>((tokens + block - 1) / block);
  const std::uint64_t numbers = std::bit_ceil(blocks);
  std::uint64_t reversed = 0;
  for (std::uint64_t i = 0; i < numbers; ++i) {
    const auto begin = static_cast<std::int64_t>(reversed) * block;
    if (reversed < blocks && !read(begin, std::min(tokens, begin + block))) return;
    // The next number, counted from the highest bit.
    std::uint64_t bit = numbers >> 1;
    for (; (reversed & bit) != 0; bit >>= 1) reversed ^= bit;
    reversed |= bit;
  }
}

// The ids [begin, end) of a text and the `before` ids before them, or fewer at the beginning of a piece.
class Block {
 public:
  Block(TokenSpan text, std::int64_t begin, std::int64_t end, std::int64_t before) : joins_(text.joins()) {
    const auto next = std::ranges::upper_bound(joins_, begin);
    piece_ = next == joins_.begin() ? 0 : *std::prev(next);
    first_ = std::max(piece_, begin - before);
    known_ = begin - first_;
    join_ = static_cast<std::size_t>(next - joins_.begin());
    ids_.resize(static_cast<std::size_t>(end - first_));
    text.copy(first_, ids_);
  }

  /// Calls known(id) for the ids before the block, then read(id, begins) for its own; begins: a piece begins here.
  template <class Known, class Read>
  void each(const Known& known, const Read& read) {
    for (std::int64_t i = 0; i < std::ssize(ids_); ++i) {
      const std::int32_t id = ids_[static_cast<std::size_t>(i)];
      const bool joined = join_ < joins_.size() && joins_[join_] == first_ + i;
      if (joined) ++join_;
      if (i < known_) {
        known(id);
      } else {
        read(id, joined || first_ + i == piece_);
      }
    }
  }

 private:
  std::span<const std::int64_t> joins_;
  std::vector<std::int32_t> ids_;
  std::int64_t piece_ = 0;  // where the piece begins that the block begins in
  std::int64_t first_ = 0, known_ = 0;
  std::size_t join_ = 0;
};

}  // namespace

NgramModel::NgramModel(std::int64_t vocab_size, int order, NgramLimits limits, std::optional<std::int32_t> restart)
    : vocab_size_(vocab_size), limits_(limits), restart_(restart), levels_(static_cast<std::size_t>(order)) {}

std::int64_t NgramModel::ngrams() const {
  std::int64_t sum = 0;
  for (const NgramLevel& level : levels_) sum += static_cast<std::int64_t>(level.size());
  return sum;
}

// A token adds at most one n-gram to each level.
bool NgramModel::is_full() const { return ngrams() + order() > limits_.ngrams; }

NgramContext NgramModel::next(const NgramContext& context, std::int32_t token) const {
  if (token == restart_ && context.length > 0) return this->next(NgramContext{}, token);
  NgramContext next;
  next.length = std::min(context.length + 1, order() - 1);
  for (std::size_t k = 0; k < static_cast<std::size_t>(next.length); ++k)
    next.last[k + 1] = levels_[k].find(context.last[k], token);
  return next;
}

NgramContext NgramModel::observe(const NgramContext& context, std::int32_t token) {
  return read(context, token, /*counts=*/true);
}

// The longest n-gram is counted whenever it occurs. Each shorter one counts by how many different tokens it was
// preceded, so it is incremented when the n-gram that is one token longer is new (Kneser and Ney 1995). At the
// beginning of a text nothing precedes, and the longest that there is counts.
NgramContext NgramModel::read(const NgramContext& context, std::int32_t token, bool counts) {
  for (int k = 0; k <= context.length; ++k)
    levels_[static_cast<std::size_t>(k)].prefetch(context.last[static_cast<std::size_t>(k)], token);
  NgramContext next;
  next.length = std::min(context.length + 1, order() - 1);
  for (auto k = static_cast<std::size_t>(context.length) + 1; k-- > 0;) {
    if (!counts && k + 1 >= levels_.size()) continue;
    const std::uint32_t ngram = levels_[k].find_or_add(context.last[k], token);
    if (k + 1 < levels_.size()) next.last[k + 1] = ngram;
    if (!counts || ngram == kNoNgram) continue;  // kNoNgram: the context was looked up, and never counted
    counts = levels_[k].count(ngram) == 0;
    levels_[k].increment(ngram);
  }
  return token == restart_ ? this->next(NgramContext{}, token) : next;
}

void NgramModel::fit_discounts() {
  for (NgramLevel& level : levels_) level.fit_discounts();
}

double NgramModel::count(TokenSpan text, const StopRequest& stop) {
  const auto tokens = static_cast<std::int64_t>(text.size());
  std::int64_t counted = 0;
  counted_.clear();
  read_spread(tokens, kBlockTokens, [&](std::int64_t begin, std::int64_t end) {
    if (counted >= limits_.tokens || is_full() || stop.requested()) return false;
    NgramContext context;
    Block(text, begin, end, order() - 1)
        .each([&](std::int32_t id) { context = read(context, id, /*counts=*/false); },
              [&](std::int32_t id, bool begins) { context = observe(begins ? NgramContext{} : context, id); });
    counted += end - begin;
    counted_.push_back({begin, end});
    return true;
  });
  fit_discounts();
  return tokens == 0 ? 1 : static_cast<double>(counted) / static_cast<double>(tokens);
}

NgramLoss NgramModel::evaluate(TokenSpan text, const StopRequest& stop) const {
  return evaluate_ngrams(
      text, order(), limits_.tokens, stop,
      [this](const NgramContext& context, std::int32_t token) { return next(context, token); },
      [this](const NgramContext& context, std::int32_t token) { return std::log(probability(context, token)); });
}

NgramLoss evaluate_ngrams(TokenSpan text, int order, std::int64_t most_tokens, const StopRequest& stop,
                          const std::function<NgramContext(const NgramContext&, std::int32_t)>& next,
                          const std::function<double(const NgramContext&, std::int32_t)>& log_probability) {
  const auto tokens = static_cast<std::int64_t>(text.size());
  double sum = 0;
  std::int64_t targets = 0, read = 0;
  read_spread(tokens, kBlockTokens, [&](std::int64_t begin, std::int64_t end) {
    if (read >= most_tokens || stop.requested()) return false;
    NgramContext context;
    double block = 0;
    Block(text, begin, end, order - 1)
        .each([&](std::int32_t id) { context = next(context, id); },
              [&](std::int32_t id, bool begins) {
                if (begins) context = {};
                if (!begins) block -= log_probability(context, id);
                targets += begins ? 0 : 1;
                context = next(context, id);
              });
    read += end - begin;
    sum += block;
    return true;
  });
  const double share = tokens == 0 ? 1 : static_cast<double>(read) / static_cast<double>(tokens);
  return {targets == 0 ? 0 : sum / static_cast<double>(targets), targets, share};
}

double NgramModel::probability(const NgramContext& context, std::int32_t token) const {
  double p = 1 / static_cast<double>(vocab_size_);
  for (int k = 0; k <= context.length; ++k) {
    const auto at = static_cast<std::size_t>(k);
    if (context.last[at] == kNoNgram) break;  // nor were longer contexts ever counted
    p = levels_[at].interpolate(context.last[at], token, p);
  }
  return p;
}

double NgramModel::probability(std::span<const std::int32_t> text, std::int32_t token) const {
  NgramContext context;
  const std::size_t from = text.size() - std::min(text.size(), static_cast<std::size_t>(order() - 1));
  for (const std::int32_t id : text.subspan(from)) context = next(context, id);
  return probability(context, token);
}

}  // namespace maki
