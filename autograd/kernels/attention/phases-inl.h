// The loops over the tiles and blocks of a piece of backward attention (attention/backward.cpp), which the kernels for
// float32, float64 and operands rounded to bfloat16 share. Compiled once per SIMD target.
#if defined(MAKI_KERNELS_ATTENTION_PHASES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_ATTENTION_PHASES_INL_H_
#undef MAKI_KERNELS_ATTENTION_PHASES_INL_H_
#else
#define MAKI_KERNELS_ATTENTION_PHASES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "autograd/kernels/attention/pack-inl.h"
#include "autograd/kernels/attention/tile.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

// `Work` computes one head: start_queries(t, rows), start_keys(keys, at) and start_distances(begin, end) pack rows and
// set their gradients to 0; pair(t, rows, keys, at) adds what a tile of queries and a block of keys contribute; the
// three finish_… deliver gradients. t and at are the first query and the first key, rows the queries of the tile.

template <class T, class Work>
HWY_INLINE void start_piece(const AttentionBackwardHead<T>& head, const Work& work, const AttentionPiece& piece) {
  work.start_distances(piece.distance_begin, piece.distance_end);
  for (std::int64_t t = piece.query_begin; t < piece.query_end; t += kBackwardTileQueries) {
    work.start_queries(t, std::min(kBackwardTileQueries, piece.query_end - t));
  }
  for (std::int64_t at = piece.key_begin; at < piece.key_end; at += kKeyBlock) {
    work.start_keys(KeyBlock(head.key_mask, at, head.keys), at);
  }
}

/// Computes every visible pair of a piece; key blocks are the outer loop.
template <class T, class Work>
HWY_INLINE void sweep_piece(const AttentionBackwardHead<T>& head, const Work& work, const AttentionPiece& piece) {
  for (std::int64_t at = piece.key_begin; at < piece.key_end; at += kKeyBlock) {
    const KeyBlock keys(head.key_mask, at, head.keys);
    if (keys.count == 0) continue;
    const std::int64_t sees = head.last_key_step == 0 ? 0 : std::max<std::int64_t>(at - head.last_key, 0);
    for (std::int64_t t = std::max(piece.query_begin, sees / kBackwardTileQueries * kBackwardTileQueries);
         t < piece.query_end; t += kBackwardTileQueries) {
      work.pair(t, std::min(kBackwardTileQueries, piece.query_end - t), keys, at);
    }
  }
}

template <class T, class Work>
HWY_INLINE void finish_piece(const AttentionBackwardHead<T>& head, const Work& work, const AttentionPiece& piece) {
  for (std::int64_t at = piece.key_begin; at < piece.key_end && head.dk; at += kKeyBlock) {
    work.finish_keys(KeyBlock(head.key_mask, at, head.keys), at, std::min(kKeyBlock, piece.key_end - at));
  }
  work.finish_distances(piece.distance_begin, piece.distance_end);
  for (std::int64_t t = piece.query_begin; t < piece.query_end && head.dq; t += kBackwardTileQueries) {
    work.finish_queries(t, std::min(kBackwardTileQueries, piece.query_end - t));
  }
  hwy::FlushStream();
}

template <class T, class Work>
HWY_INLINE void run_phase(const AttentionBackwardHead<T>& head, const Work& work, const AttentionPiece& piece,
                          BackwardPhase phase) {
  if (phase == BackwardPhase::start) return start_piece(head, work, piece);
  if (phase == BackwardPhase::sweep) return sweep_piece(head, work, piece);
  if (phase == BackwardPhase::finish) return finish_piece(head, work, piece);
  const AttentionPiece queries{piece.query_begin, piece.query_end, 0, 0, piece.distance_begin, piece.distance_end};
  start_piece(head, work, queries);
  for (std::int64_t at = piece.key_begin; at < piece.key_end; at += kKeyBlock) {  // all phases while a block is cached
    const AttentionPiece block{0, 0, at, std::min(at + kKeyBlock, piece.key_end), 0, 0};
    start_piece(head, work, block);
    sweep_piece(head, work, {piece.query_begin, piece.query_end, block.key_begin, block.key_end, 0, 0});
    finish_piece(head, work, block);
  }
  finish_piece(head, work, queries);
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_ATTENTION_PHASES_INL_H_
