#include "nn/models/seq2seq.h"

#include <algorithm>
#include <cmath>

#include "autograd/core/check.h"
#include "nn/state_of.h"

namespace maki {
namespace {

const Seq2SeqConfig& checked(const Seq2SeqConfig& c) {
  checked("seq2seq", c);
  check(c.source_vocab_size >= 1, "seq2seq: source_vocab_size must be at least 1; got {}", c.source_vocab_size);
  check(!c.shared_embeddings || c.source_vocab_size == c.vocab_size,
        "seq2seq: shared_embeddings needs one vocabulary for both sides; got {} source and {} target tokens",
        c.source_vocab_size, c.vocab_size);
  return c;
}

double embedding_std(const TransformerConfig& c) { return 1 / std::sqrt(static_cast<double>(c.n_embd)); }

TokenInput input_of(const Scope& scope, TransformerConfig c, std::int64_t vocab_size) {
  c.vocab_size = vocab_size;
  return TokenInput(scope, c, std::sqrt(static_cast<double>(c.n_embd)), embedding_std(c));
}

}  // namespace

Seq2Seq::Seq2Seq(const Scope& scope, const Seq2SeqConfig& c)
    : config(checked(c)),
      dtype(scope.dtype()),
      drop{c.dropout},
      source_input(input_of(scope / "encoder", c, c.source_vocab_size)),
      wte(c.shared_embeddings ? scope / "wte" : scope / "decoder" / "wte", c.vocab_size, c.n_embd, embedding_std(c),
          c.tie_weights),
      target_input(input_of(scope / "decoder", c, c.vocab_size)) {
  const Scope left = scope / "encoder", right = scope / "decoder";
  if (!c.shared_embeddings) source_wte.emplace(left / "wte", c.source_vocab_size, c.n_embd, embedding_std(c));
  const BlockOptions options = block_options(c, dtype, /*causal=*/false, Init::xavier);
  for (std::int64_t i = 0; i < c.n_layer; ++i) encoder.emplace_back(left / "h" / i, options);
  for (std::int64_t i = 0; i < c.n_layer; ++i) decoder.emplace_back(right / "h" / i, options);
  if (c.norm_order == NormOrder::pre) {
    encoder_ln_f.emplace(left / "ln_f", c.n_embd, c.norm, c.bias, c.norm_epsilon);
    decoder_ln_f.emplace(right / "ln_f", c.n_embd, c.norm, c.bias, c.norm_epsilon);
  }
  if (!c.tie_weights) {
    lm_head.emplace(scope / "lm_head", c.n_embd, c.vocab_size, /*with_bias=*/false, init::normal(embedding_std(c)),
                    kOutputLayer);
  }
}

Tensor Seq2Seq::encode(const Tensor& source, const Tensor& source_mask) const {
  const Tensor mask = checked_padding_mask("seq2seq", source, source_mask);
  Tensor x = drop(source_input("seq2seq", source_wte ? source_wte->weight : wte.weight, source));
  for (const Block& block : encoder) x = block(x, nullptr, mask);
  return encoder_ln_f ? (*encoder_ln_f)(x) : x;
}

Tensor Seq2Seq::decode(const Tensor& ids, const Tensor& memory, const Tensor& source_mask) const {
  Tensor x = drop(target_input("seq2seq", wte.weight, ids));
  for (const DecoderBlock& block : decoder) x = block(x, {block.cross.keys_values(memory), source_mask});
  return decoder_ln_f ? (*decoder_ln_f)(x) : x;
}

Tensor Seq2Seq::loss(const Batch& batch, const CrossEntropy& options) const {
  const Tensor mask = checked_padding_mask("seq2seq", batch.source, batch.source_mask);
  const Tensor y = decode(batch.ids, encode(batch.source, mask), mask);
  if (batch.expected) return loss_of_logits(linear(y, head_weight()), batch, options);
  return linear_cross_entropy(y, head_weight(), batch.targets, options);
}

std::unique_ptr<Seq2SeqState> Seq2Seq::start(const Tensor& source, const Tensor& source_mask) const {
  const Tensor mask = checked_padding_mask("seq2seq", source, source_mask), memory = encode(source, mask);
  std::vector<CrossKeys> keys;
  for (const DecoderBlock& block : decoder) keys.push_back({block.cross.keys_values(memory), mask});
  return std::make_unique<Seq2SeqState>(config, std::move(keys));
}

Tensor Seq2Seq::next_logits(const Tensor& ids, Seq2SeqState& state) const {
  check(ids.shape().rank() == 2 && ids.shape()[0] == state.batch() && ids.shape()[1] >= 1,
        "seq2seq: the next ids must be [{}, t], the batch of the state and t >= 1; got {}", state.batch(), ids.shape());
  check_layers("seq2seq", state.self().layers(), config.n_layer);
  const std::int64_t tokens = ids.shape()[1];
  check(state.length() + tokens <= state.capacity(), "seq2seq: a target has at most block_size = {} tokens; got {}",
        state.capacity(), state.length() + tokens);
  Tensor x = target_input("seq2seq", wte.weight, ids, state.length(), state.self().recent.ids());
  for (std::size_t i = 0; i < decoder.size(); ++i) x = decoder[i](x, state.source()[i], &state.self().layer(i));
  state.self().recent.append(ids);
  if (decoder_ln_f) x = (*decoder_ln_f)(x);
  return reshape(head(slice(x, 1, tokens - 1, tokens)), {state.batch(), config.vocab_size});
}

// Saved per pair of tokens by a block of the decoder, beside what one of the encoder saves: another norm (C), the
// projections of cross-attention (q C, k‖v 2C), its result (C), and a residual sum (C). Around the blocks: scaled
// embeddings and final norms. Alive at once in backward: also the gradient of the memory.
std::int64_t Seq2SeqModel::activation_bytes(std::int64_t batch, std::int64_t length) const {
  const Seq2SeqConfig& c = seq2seq.config;
  const std::int64_t width = c.n_embd, tokens = batch * length, size = size_of(seq2seq.dtype);
  const std::int64_t cross = 6 * width + c.n_head + 2;
  const std::int64_t saved = c.n_layer * (2 * saved_by_block(c) + cross) + 4 * width;
  const std::int64_t passing = passing_in_block(c) + width + 2 * width * c.ngram().activation_vectors();
  return tokens * (saved + passing) * size + std::min(tokens * c.vocab_size * size, kMaxLogitsBytes);
}

std::unique_ptr<State> Seq2SeqModel::start(std::int64_t batch, const Tensor& source, const Tensor& source_mask) const {
  check(source && source.shape().rank() == 2 && source.shape()[0] == batch,
        "seq2seq: needs a source of {} sequences; got {}", batch,
        source ? fmt::format("{}", source.shape()) : std::string("none"));
  return seq2seq.start(source, source_mask);
}

Tensor Seq2SeqModel::next_logits(const Tensor& ids, State& state) const {
  return seq2seq.next_logits(ids, state_of<Seq2SeqState>(state, "seq2seq"));
}

Seq2SeqState::Seq2SeqState(const Seq2SeqConfig& c, std::vector<CrossKeys> source)
    : self_(c.n_layer, source.front().kv.shape()[0], c.block_size, c.kv_width(), source.front().kv.dtype(),
            c.recent_tokens()),
      source_(std::move(source)) {}

void Seq2SeqState::reorder(std::span<const std::int32_t> rows) {
  self_.reorder(rows);  // checks the rows
  const Tensor mask = source_.front().key_mask ? rows_of(source_.front().key_mask, rows) : Tensor();
  for (CrossKeys& keys : source_) keys = {rows_of(keys.kv, rows), mask};
}

std::vector<std::pair<std::string, Tensor*>> Seq2SeqState::tensors() {
  std::vector<std::pair<std::string, Tensor*>> list = self_.tensors();
  for (std::size_t i = 0; i < source_.size(); ++i) list.emplace_back("cross." + std::to_string(i), &source_[i].kv);
  if (source_.front().key_mask) list.emplace_back("source_mask", &source_.front().key_mask);
  return list;
}

}  // namespace maki
