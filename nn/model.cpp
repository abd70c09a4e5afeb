#include "nn/model.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "nn/ngram.h"

namespace maki {
namespace {

// Columns [begin, end) of ids [B, T].
Tensor columns(const Tensor& ids, std::int64_t begin, std::int64_t end) {
  Tensor part = empty(ids.shape().with(1, end - begin), DType::int32);
  for (std::int64_t b = 0; b < ids.shape()[0]; ++b)
    std::copy_n(ids.data<std::int32_t>() + b * ids.shape()[1] + begin, end - begin,
                part.data<std::int32_t>() + b * (end - begin));
  return part;
}

}  // namespace

Tensor loss_of_logits(const Tensor& logits, const Batch& batch, const CrossEntropy& options) {
  if (!batch.expected) return cross_entropy(logits, batch.targets, options);
  check(batch.expected.shape() == logits.shape() && batch.expected.dtype() == logits.dtype(),
        "loss: the expected probabilities must be {} {}, as the logits are; got {} {}", to_string(logits.dtype()),
        logits.shape(), to_string(batch.expected.dtype()), batch.expected.shape());
  return expected_cross_entropy(logits, batch.expected);
}

void Generator::use_prior(std::shared_ptr<const TokenPrior> prior) {
  const std::optional<PriorNeeds> needs = prior_needs();
  check(needs && prior, "{}: has {} prior; got {}", kind(), needs ? "a" : "no", prior ? "one" : "none");
  check(prior->vocab_size() == needs->vocab_size && prior->context_tokens() <= needs->context_tokens,
        "{}: its prior must have a vocabulary of {} and depend on at most {} tokens; got {} and {}", kind(),
        needs->vocab_size, needs->context_tokens, prior->vocab_size(), prior->context_tokens());
  prior_ = std::move(prior);
}

const TokenPrior& Generator::required_prior() const {
  check(prior_ != nullptr, "{}: use_prior() must be called first, because the model was created with a prior", kind());
  return *prior_;
}

Tensor Generator::prior_of_batch(const Batch& batch, DType dtype, const Tensor& before) const {
  if (!prior_needs()) return {};
  if (batch.prior) return batch.prior.dtype() == dtype ? batch.prior : convert(batch.prior, dtype);
  return prior_of(required_prior(), batch.ids, before, dtype);
}

Tensor Generator::prior_of_last(const Tensor& ids, const Tensor& before, DType dtype) const {
  if (!prior_needs()) return {};
  const Shape& shape = ids.shape();
  check(shape.rank() == 2 && shape[1] >= 1 && (!before || before.shape()[0] == shape[0]),
        "{}: the next ids must be [B, t] with t >= 1, for the B sequences of the state; got {}", kind(), shape);
  const std::int64_t tokens = shape[1];
  const TokenPrior& prior = required_prior();
  check_prior_ids(prior, ids);
  RecentTokens read(prior.context_tokens());
  if (before) read.append(before);
  if (tokens > 1) read.append(columns(ids, 0, tokens - 1));
  return prior_of(prior, columns(ids, tokens - 1, tokens), read.ids(), dtype);
}

}  // namespace maki
