// The heads of one call of the attention kernels, as plain pointers into its matrices.
#pragma once

#include "autograd/kernels/attention/attention.h"
#include "autograd/kernels/attention/tile.h"
#include "autograd/kernels/simd/stream.h"

namespace maki::kernels {

/// The position term of head h for the queries from t on.
template <class T>
TileDistances<T> tile_distances(const AttentionShape& shape, const RelativeRows<T>& relative, std::int64_t h,
                                std::int64_t t) {
  if (!shape.relative) return {};
  const std::int64_t column = h * shape.head_size;
  return {.rows = relative.r + (shape.keys - 1) * relative.row_stride + column,
          .stride = -relative.row_stride,
          .first = shape.queries - 1 - t,
          .origin = relative.r + column,
          .minus_u = relative.minus_u + column,
          .minus_v = relative.minus_v + column};
}

/// A head's columns of a gradient in sequence b. `bytes`: of all that is stored; 0: it is not stored past the caches.
template <class T>
GradientRows<T> head_of(const HeadSink<T>& sink, std::int64_t b, std::int64_t column, std::int64_t bytes) {
  if (sink.data == nullptr) return {};
  T* const data = sink.data + b * sink.batch_stride + column;
  const Delivery stores = goes_past_caches(data, sink.row_stride, bytes) ? Delivery::stream : Delivery::store;
  return {data, sink.row_stride, sink.add ? Delivery::add : stores};
}

/// What forward and backward read.
template <class T>
struct AttentionOperands {
  HeadRows<const T> q, k, v;
  RelativeRows<T> relative;
};

/// Queries [t, t + queries) of head h in sequence b, and all its keys.
template <class T>
AttentionTile<T> tile_of(const AttentionShape& shape, const AttentionOperands<T>& o, std::int64_t b, std::int64_t h,
                         std::int64_t t, std::int64_t queries) {
  const std::int64_t kv_column = h / shape.heads_per_kv_head() * shape.head_size;
  const std::int64_t t_size = shape.queries, s_size = shape.keys;
  AttentionTile<T> tile{};
  tile.q = o.q.data + b * o.q.batch_stride + t * o.q.row_stride + h * shape.head_size;
  tile.k = o.k.data + b * o.k.batch_stride + kv_column;
  tile.v = o.v.data + b * o.v.batch_stride + kv_column;
  tile.q_stride = o.q.row_stride;
  tile.k_stride = o.k.row_stride;
  tile.v_stride = o.v.row_stride;
  tile.queries = queries;
  tile.keys = s_size;
  tile.head_size = shape.head_size;
  tile.last_key = shape.causal ? t + s_size - t_size : s_size - 1;
  tile.last_key_step = shape.causal ? 1 : 0;
  tile.key_mask = shape.key_mask == nullptr ? nullptr : shape.key_mask + b * s_size;
  tile.first_keys = first_keys(tile.key_mask, s_size);
  tile.scale = shape.scale;
  tile.dropout = dropout_rule(shape.dropout_stream, shape.dropout);
  tile.first_weight = shape.first_weight + static_cast<std::uint64_t>(((b * shape.heads + h) * t_size + t) * s_size);
  tile.rounds_operands = shape.rounds<T>();
  tile.distances = tile_distances(shape, o.relative, h, t);
  return tile;
}

/// The matrices of a backward pass.
template <class T>
struct BackwardOperands {
  AttentionOperands<T> read;
  HeadRows<const T> y, dy;
  const T* lse;
  HeadSink<T> dq, dk, dv;
  RelativeSinks<T> relative_sinks;
};

/// Head i, counted over the heads of all sequences.
template <class T>
AttentionBackwardHead<T> backward_head(const AttentionShape& shape, const BackwardOperands<T>& o, std::int64_t i) {
  const std::int64_t b = i / shape.heads, h = i % shape.heads, column = h * shape.head_size;
  const std::int64_t share = shape.heads_per_kv_head(), kv_column = h / share * shape.head_size;
  AttentionBackwardHead<T> head{};
  static_cast<AttentionTile<T>&>(head) = tile_of(shape, o.read, b, h, 0, shape.queries);
  head.y = o.y.data + b * o.y.batch_stride + column;
  head.y_stride = o.y.row_stride;
  head.dy = o.dy.data + b * o.dy.batch_stride + column;
  head.dy_stride = o.dy.row_stride;
  head.lse = o.lse + i * shape.queries;
  const std::int64_t rows = shape.batch * (shape.queries + 2 * shape.keys);  // of all three gradients
  const std::int64_t bytes = rows * shape.heads * shape.head_size * std::int64_t{sizeof(T)};
  head.dq = head_of(o.dq, b, column, bytes);
  head.dk = head_of(o.dk, b, kv_column, share == 1 ? bytes : 0);
  head.dv = head_of(o.dv, b, kv_column, share == 1 ? bytes : 0);
  if (h % share != 0) head.dk.by = head.dv.by = Delivery::add;  // another head has written to them
  head.position_dq = head_of(o.relative_sinks.dq, b, column, 0);
  if (head.distances) head.dr = head_of(o.relative_sinks.dr, b, column, 0).from(shape.keys - 1);
  return head;
}

}  // namespace maki::kernels
