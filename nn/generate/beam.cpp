#include "nn/generate/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/core/check.h"

namespace maki {
namespace {

// A hypothesis of `source` continued by `id`: `parent` is its row in the batch of the state.
struct Candidate {
  double log_probability;
  std::int32_t id, parent;
};

// The order of candidates of one source. Equal probabilities: the smaller id first.
bool before(const Candidate& a, const Candidate& b) {
  if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
  return a.id != b.id ? a.id < b.id : a.parent < b.parent;
}

// A hypothesis that is still being continued.
struct Live {
  std::vector<std::int32_t> ids;
  double log_probability = 0;
};

// The search for one row of the prompt.
struct Search {
  std::vector<Live> live;
  std::vector<Hypothesis> found;
};

// The `count` best continuations (all, if V is less) of one hypothesis whose log-probability is `base`, in no order:
// logits [V] and their log-softmax, of which only one element is used: log p(id) = logit(id) − log Σ exp, in double,
// orders ids exactly as their logits.
template <class T>
std::vector<Candidate> best_of_row(std::span<const T> logits, const T* log_softmax, double base, std::int32_t parent,
                                   std::size_t count) {
  std::size_t largest = 0;
  bool nan = false;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    nan = nan || std::isnan(logits[i]);
    if (logits[i] > logits[largest]) largest = i;
  }
  check<BadLogitsError>(!nan && std::isfinite(logits[largest]),
                        "beam search: the logits {}; the model has diverged, use an earlier checkpoint",
                        nan ? "contain NaN" : "have no finite maximum");
  const double log_sum = static_cast<double>(logits[largest]) - static_cast<double>(log_softmax[largest]);
  std::vector<Candidate> best;  // a heap whose front is the last in order
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const Candidate next{base + (static_cast<double>(logits[i]) - log_sum), static_cast<std::int32_t>(i), parent};
    if (best.size() == count) {
      if (!before(next, best.front())) continue;
      std::ranges::pop_heap(best, before);
      best.pop_back();
    }
    best.push_back(next);
    std::ranges::push_heap(best, before);
  }
  return best;
}

// The best continuations of every row of the state, in no order.
std::vector<std::vector<Candidate>> continuations(const Tensor& logits, const std::vector<double>& bases,
                                                  std::size_t count) {
  const Tensor probabilities = log_softmax(logits);
  const std::int64_t rows = logits.shape()[0], v = logits.shape()[1];
  std::vector<std::vector<Candidate>> result(bases.size());
  dispatch(logits.dtype(), [&]<class T>() {
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto row = static_cast<std::size_t>(r);
      const std::span<const T> own(logits.data<T>() + r * v, static_cast<std::size_t>(v));
      result[row] =
          best_of_row<T>(own, probabilities.data<T>() + r * v, bases[row], static_cast<std::int32_t>(r), count);
    }
  });
  return result;
}

Hypothesis hypothesis(std::vector<std::int32_t> ids, double log_probability, bool ended, double alpha) {
  const auto length = static_cast<std::int64_t>(ids.size()) + (ended ? 1 : 0);
  return {std::move(ids), log_probability, log_probability / length_penalty(length, alpha), ended};
}

void keep_best(std::vector<Hypothesis>& found, std::int64_t count) {
  std::ranges::sort(found, [](const Hypothesis& a, const Hypothesis& b) {
    if (a.ended != b.ended) return a.ended;
    return a.score != b.score ? a.score > b.score : a.ids < b.ids;
  });
  if (static_cast<std::int64_t>(found.size()) > count) found.resize(static_cast<std::size_t>(count));
}

// Whether `beam_size` hypotheses have ended with scores that no live one has at its present length. Ends that are
// merely among the most likely tokens of their step, as with smoothed labels every end is, do not end a search.
bool is_decided(std::vector<Hypothesis>& found, const Live& best, const BeamOptions& options) {
  if (std::ssize(found) < options.beam_size) return false;
  keep_best(found, options.beam_size);
  return found.back().score >= best.log_probability / length_penalty(std::ssize(best.ids), options.length_penalty);
}

// One step of the search of one source: `candidates` are all continuations of its live hypotheses, whose rows in the
// state begin at `first_row`. Appends the rows that go on and the tokens that they read to parents and ids.
void advance(Search& search, std::vector<Candidate> candidates, std::int32_t first_row, const BeamOptions& options,
             bool last, std::vector<std::int32_t>& parents, std::vector<std::int32_t>& ids) {
  std::ranges::sort(candidates, before);
  const auto beam = static_cast<std::size_t>(options.beam_size);
  std::vector<Live> next;
  std::vector<Candidate> chosen;
  for (std::size_t rank = 0; rank < candidates.size() && next.size() < beam; ++rank) {
    const Candidate& c = candidates[rank];
    if (c.log_probability == -std::numeric_limits<double>::infinity()) break;
    const Live& parent = search.live[static_cast<std::size_t>(c.parent - first_row)];
    if (c.id == options.end) {
      // An end below the beam's width would be kept although better continuations are dropped.
      if (rank < beam) search.found.push_back(hypothesis(parent.ids, c.log_probability, true, options.length_penalty));
      continue;
    }
    next.push_back({parent.ids, c.log_probability});
    next.back().ids.push_back(c.id);
    chosen.push_back(c);
  }
  search.live.clear();
  if (next.empty() || is_decided(search.found, next.front(), options)) return;
  if (last) {
    for (Live& cut : next) {
      search.found.push_back(hypothesis(std::move(cut.ids), cut.log_probability, false, options.length_penalty));
    }
    return;
  }
  search.live = std::move(next);
  for (const Candidate& c : chosen) {
    parents.push_back(c.parent);
    ids.push_back(c.id);
  }
}

void check_options(const State& state, const Tensor& prompt, const BeamOptions& o) {
  check(o.beam_size >= 1 && o.n_best >= 1 && o.n_best <= o.beam_size,
        "beam search: beam_size must be at least 1 and n_best between 1 and beam_size; got {} and {}", o.beam_size,
        o.n_best);
  check(o.length_penalty >= 0 && std::isfinite(o.length_penalty),
        "beam search: length_penalty must be at least 0; got {}", o.length_penalty);
  check(prompt.shape().rank() == 2 && prompt.shape()[0] == state.batch() && prompt.shape()[1] >= 1,
        "beam search: the prompt must be [{}, t], the batch of the state and t >= 1; got {}", state.batch(),
        prompt.shape());
  const std::int64_t room = state.capacity() - state.length() - prompt.shape()[1] + 1;
  check(o.max_tokens >= 1 && o.max_tokens <= room,
        "beam search: max_tokens must be in [1, {}], for which the state has room; got {}", room, o.max_tokens);
}

}  // namespace

double length_penalty(std::int64_t length, double alpha) {
  return std::pow((5 + static_cast<double>(length)) / 6, alpha);
}

std::vector<std::vector<Hypothesis>> beam_search(const Generator& model, State& state, const Tensor& prompt,
                                                 const BeamOptions& options) {
  check_options(state, prompt, options);
  std::vector<Search> searches(static_cast<std::size_t>(state.batch()));
  for (Search& search : searches) search.live.resize(1);
  // Twice as many candidates as hypotheses go on, because up to half of them may be ends.
  const std::size_t count = 2 * static_cast<std::size_t>(options.beam_size);
  Tensor unread = prompt;
  for (std::int64_t step = 1; unread; ++step) {
    const Tensor logits = model.next_logits(unread, state);
    std::vector<double> bases;
    for (const Search& search : searches) {
      for (const Live& live : search.live) bases.push_back(live.log_probability);
    }
    const std::vector<std::vector<Candidate>> of_rows = continuations(logits, bases, count);
    std::vector<std::int32_t> parents, ids;
    std::size_t row = 0;
    for (Search& search : searches) {
      if (search.live.empty()) continue;
      const std::size_t first = row;
      std::vector<Candidate> candidates;
      for (; row < first + search.live.size(); ++row) {
        candidates.insert(candidates.end(), of_rows[row].begin(), of_rows[row].end());
      }
      advance(search, std::move(candidates), static_cast<std::int32_t>(first), options, step == options.max_tokens,
              parents, ids);
    }
    unread = ids.empty() ? Tensor() : tensor(ids, {static_cast<std::int64_t>(ids.size()), 1});
    if (unread) state.reorder(parents);
  }
  std::vector<std::vector<Hypothesis>> result;
  for (Search& search : searches) {
    keep_best(search.found, options.n_best);
    result.push_back(std::move(search.found));
  }
  return result;
}

}  // namespace maki
