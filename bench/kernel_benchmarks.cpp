// Every kernel except GEMM, with the sizes of the baby GPT (4096 tokens of width 384) unless its name gives others.
// Before it is timed in float32, its results are compared with those in float64 on the same operands.
#include <cmath>
#include <fmt/format.h>
#include <memory>

#include "autograd/kernels/attention/attention.h"
#include "autograd/kernels/broadcast.h"
#include "autograd/kernels/column_sum.h"
#include "autograd/kernels/cross_entropy.h"
#include "autograd/kernels/dropout.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/embedding.h"
#include "autograd/kernels/gemm/gemm.h"
#include "autograd/kernels/layout.h"
#include "autograd/kernels/norm.h"
#include "autograd/kernels/optimizer.h"
#include "autograd/kernels/reduce.h"
#include "autograd/kernels/softmax.h"
#include "bench/operands.h"
#include "bench/report.h"

namespace maki::bench {
namespace {

constexpr std::int64_t kRows = 4096, kCols = 384, kNarrow = kRows * kCols, kParameters = 10'646'784;
constexpr std::int64_t kWideCols = 4 * kCols, kWide = kRows * kWideCols;

// Registers a benchmark. `make(operands)` creates the operands and returns a function that runs the kernel on them.
template <class Make>
void kernel(const std::string& name, const Make& make, double flop = 0) {
  add("kernel/" + name, [name, make, flop] {
    const auto operands = std::make_shared<Operands<float>>();
    const auto run = make(*operands);
    Operands<double> exact;
    make(exact)();
    run();
    verify(name, operands->outputs(), exact.outputs());
    return Prepared{[operands, run] { run(); }, flop, operands->bytes()};
  });
}

template <class O>
using TypeOf = typename std::remove_reference_t<O>::Type;

void add_elementwise() {
  using kernels::UnaryOp;
  struct Named {
    const char* name;
    UnaryOp f;
    double low;
  };
  for (const Named u :
       {Named{"exp", UnaryOp::exp, -2}, Named{"log", UnaryOp::log, 0.1}, Named{"sqrt", UnaryOp::sqrt, 0.1},
        Named{"tanh", UnaryOp::tanh, -2}, Named{"sigmoid", UnaryOp::sigmoid, -2}, Named{"relu", UnaryOp::relu, -2},
        Named{"silu", UnaryOp::silu, -2}, Named{"gelu", UnaryOp::gelu, -2},
        Named{"gelu_tanh", UnaryOp::gelu_tanh, -2}}) {
    kernel(fmt::format("{}_forward", u.name), [u](auto& o) {
      return [u, x = o.in(kWide, u.low), y = o.out(kWide)] { kernels::unary_forward(u.f, kWide, x, y); };
    });
    kernel(fmt::format("{}_backward", u.name), [u](auto& o) {
      return [u, kept = o.in(kWide, kernels::keeps_output(u.f) ? 0.1 : u.low, 0.9), dy = o.in(kWide),
              dx = o.sink(kWide)] { kernels::unary_backward(u.f, kWide, kept, dy, dx); };
    });
  }
  kernel("scale", [](auto& o) {
    using T = TypeOf<decltype(o)>;
    return [x = o.in(kWide), y = o.sink(kWide)] { kernels::scale(kWide, x, T{3}, y); };
  });
  kernel("dropout", [](auto& o) {
    return [x = o.in(kWide), y = o.sink(kWide)] {
      kernels::dropout(kWide, x, 0.2, RandomStream(1, RandomPurpose::test), y);
    };
  });
  const auto binary = [](const std::string& name, kernels::BinaryOp op, const Shape& b) {
    kernel(name, [op, b](auto& o) {
      const Shape a{kRows, kCols};
      return [op, plan = kernels::plan_broadcast(a, b, a), x = o.in(a.numel()), z = o.in(b.numel(), 1, 2),
              y = o.sink(a.numel())] { kernels::binary(op, plan, x, z, y); };
    });
  };
  binary("add", kernels::BinaryOp::add, {kRows, kCols});
  binary("mul", kernels::BinaryOp::mul, {kRows, kCols});
  binary("div", kernels::BinaryOp::div, {kRows, kCols});
  binary("add_row", kernels::BinaryOp::add, {kCols});
  binary("add_column", kernels::BinaryOp::add, {kRows, 1});
}

void add_rows() {
  constexpr std::int64_t stats = kernels::kLayerNormStats;
  kernel("layer_norm_forward", [](auto& o) {
    return [x = o.in(kNarrow), weight = o.in(kCols), bias = o.in(kCols), y = o.out(kNarrow),
            s = o.scratch(kRows * stats)] { kernels::layer_norm_forward(kRows, kCols, x, weight, bias, 1e-5, y, s); };
  });
  kernel("layer_norm_backward", [](auto& o) {
    using T = TypeOf<decltype(o)>;
    const T *const x = o.in(kNarrow), *const weight = o.in(kCols), *const dy = o.in(kNarrow);
    T* const s = o.scratch(kRows * stats);
    kernels::layer_norm_forward<T>(kRows, kCols, x, weight, nullptr, 1e-5, o.scratch(kNarrow), s);
    return [x, weight, dy, s, dx = o.sink(kNarrow), dweight = o.sink(kCols), dbias = o.sink(kCols),
            scratch = o.scratch(kernels::layer_norm_backward_scratch(kRows, kCols))] {
      kernels::layer_norm_backward<T>(kRows, kCols, x, weight, s, dy, dx, dweight, dbias, scratch);
    };
  });
  kernel("softmax_forward", [](auto& o) {
    return [x = o.in(kNarrow), y = o.out(kNarrow)] { kernels::softmax_forward(kRows, kCols, x, y); };
  });
  kernel("softmax_backward", [](auto& o) {
    return [y = o.in(kNarrow, 0, 2.0 / kCols), dy = o.in(kNarrow), dx = o.sink(kNarrow)] {
      kernels::softmax_backward(kRows, kCols, y, dy, dx);
    };
  });
  kernel("log_softmax_forward", [](auto& o) {
    return [x = o.in(kNarrow), y = o.out(kNarrow)] { kernels::log_softmax_forward(kRows, kCols, x, y); };
  });
  kernel("log_softmax_backward", [](auto& o) {
    return [y = o.in(kNarrow, -8, -4), dy = o.in(kNarrow), dx = o.sink(kNarrow)] {
      kernels::log_softmax_backward(kRows, kCols, y, dy, dx);
    };
  });
  kernel("column_sum", [](auto& o) {
    return [x = o.in(kWide), sums = o.sink(kWideCols)] { kernels::column_sum(kRows, kWideCols, x, kWideCols, sums); };
  });
  kernel("sum_rows", [](auto& o) {
    const kernels::ReductionPlan plan = kernels::plan_reduction({kRows, kCols}, 0b10);
    return [plan, x = o.in(kNarrow), scratch = o.template scratch<double>(kernels::reduction_scratch(plan)),
            sums = o.sink(kRows)] { kernels::sum(plan, x, 1, scratch, sums); };
  });
  kernel("sum_all", [](auto& o) {
    const kernels::ReductionPlan plan = kernels::plan_reduction({kRows, kCols}, 0b11);
    return [plan, x = o.in(kNarrow, 0, 1), scratch = o.template scratch<double>(kernels::reduction_scratch(plan)),
            sums = o.sink(1)] { kernels::sum(plan, x, 1, scratch, sums); };
  });
}

void add_cross_entropy(std::int64_t rows, std::int64_t vocabulary) {
  const std::int64_t n = rows * vocabulary, stats = kernels::kCrossEntropyStats;
  const auto shape = [=](auto& o) {
    return kernels::CrossEntropyRows{rows, vocabulary, o.ids(rows, vocabulary), -1, 0};
  };
  kernel(fmt::format("cross_entropy_forward/{}x{}", rows, vocabulary), [=](auto& o) {
    const kernels::CrossEntropyRows r = shape(o);
    return [r, x = o.in(n), s = o.scratch(rows * stats), loss = o.out(1),
            scratch = o.template scratch<double>(kernels::cross_entropy_scratch(r.rows, r.vocabulary))] {
      *loss = static_cast<TypeOf<decltype(o)>>(kernels::cross_entropy_forward(r, x, s, scratch));
    };
  });
  kernel(fmt::format("cross_entropy_backward/{}x{}", rows, vocabulary), [=](auto& o) {
    const kernels::CrossEntropyRows r = shape(o);
    const auto* const x = o.in(n);
    auto* const s = o.scratch(rows * stats);
    kernels::cross_entropy_forward(r, x, s,
                                   o.template scratch<double>(kernels::cross_entropy_scratch(r.rows, r.vocabulary)));
    return [r, x, s, dx = o.sink(n)] { kernels::cross_entropy_backward(r, x, s, 1, dx); };
  });
}

void add_embedding(std::int64_t vocabulary) {
  const kernels::EmbeddingShape shape{.vocabulary = vocabulary, .cols = kCols, .id_count = kRows};
  kernel(fmt::format("embedding_forward/{}", vocabulary), [shape](auto& o) {
    return [shape, table = o.table(shape.vocabulary * kCols), ids = o.ids(kRows, shape.vocabulary),
            y = o.out(kRows * kCols)] { kernels::embedding_forward(shape, table, ids, y); };
  });
  kernel(fmt::format("embedding_backward/{}", vocabulary), [shape](auto& o) {
    return [shape, ids = o.ids(kRows, shape.vocabulary), dy = o.in(kRows * kCols),
            dtable = o.sink(shape.vocabulary * kCols),
            scratch = o.template scratch<std::int32_t>(kernels::embedding_backward_scratch(shape))] {
      kernels::embedding_backward(shape, ids, dy, dtable, scratch);
    };
  });
}

// Causal self-attention over the packed projection q‖k‖v. By convention, FLOP are counted as if it were not causal.
void add_attention(std::int64_t batch, std::int64_t tokens, std::int64_t heads, std::int64_t head_size) {
  const std::int64_t width = heads * head_size, n = batch * tokens * width;
  const kernels::AttentionShape shape{.batch = batch,
                                      .queries = tokens,
                                      .keys = tokens,
                                      .heads = heads,
                                      .head_size = head_size,
                                      .causal = true,
                                      .scale = 1 / std::sqrt(static_cast<double>(head_size))};
  const double flop = 4 * static_cast<double>(n) * static_cast<double>(tokens);
  const std::string sizes = fmt::format("{}x{}x{}x{}", batch, tokens, heads, head_size);
  const auto columns = [=]<class T>(T* data, std::int64_t part) {
    return kernels::HeadRows<T>{data + part * width, 3 * width, tokens * 3 * width};
  };
  kernel(
      "attention_forward/" + sizes,
      [=](auto& o) {
        using T = TypeOf<decltype(o)>;
        const T* const qkv = o.in(3 * n);
        const kernels::HeadRows<T> y{o.out(n), width, tokens * width};
        return [=, lse = o.scratch(batch * heads * tokens),
                scratch = o.scratch(kernels::attention_forward_scratch<T>(shape))] {
          kernels::attention_forward<T>(shape, columns(qkv, 0), columns(qkv, 1), columns(qkv, 2), y, lse, scratch);
        };
      },
      flop);
  kernel(
      "attention_backward/" + sizes,
      [=](auto& o) {
        using T = TypeOf<decltype(o)>;
        const T *const qkv = o.in(3 * n), *const dy = o.in(n);
        T *const y = o.scratch(n), *const lse = o.scratch(batch * heads * tokens), *const dqkv = o.out(3 * n);
        const std::int64_t batch_stride = tokens * width;
        kernels::attention_forward<T>(shape, columns(qkv, 0), columns(qkv, 1), columns(qkv, 2),
                                      {y, width, batch_stride}, lse,
                                      o.scratch(kernels::attention_forward_scratch<T>(shape)));
        const auto sink = [=](std::int64_t part) {
          return kernels::HeadSink<T>{dqkv + part * width, 3 * width, 3 * batch_stride, false};
        };
        return [=, scratch = o.scratch(kernels::attention_backward_scratch<T>(shape))] {
          kernels::attention_backward<T>(shape, columns(qkv, 0), columns(qkv, 1), columns(qkv, 2),
                                         {y, width, batch_stride}, {dy, width, batch_stride}, lse, sink(0), sink(1),
                                         sink(2), scratch);
        };
      },
      2 * flop);
}

void add_layout() {
  kernel("transpose_heads", [](auto& o) {  // [B, T, H, D] to [B, H, T, D]
    const kernels::Transposition shape{.outer = 16, .rows = 256, .middle = 1, .cols = 6, .inner = 64};
    return [shape, x = o.in(kNarrow), y = o.sink(kNarrow)] { kernels::transpose(shape, x, y); };
  });
  kernel("transpose_matrix", [](auto& o) {
    const kernels::Transposition shape{.outer = 1, .rows = kRows, .middle = 1, .cols = kCols, .inner = 1};
    return [shape, x = o.in(kNarrow), y = o.sink(kNarrow)] { kernels::transpose(shape, x, y); };
  });
  kernel("copy_rows", [](auto& o) {
    return [x = o.in(kNarrow), y = o.sink(kNarrow)] { kernels::copy_rows(kRows, kCols, x, kCols, y, kCols); };
  });
  kernel("pack_b", [](auto& o) {  // the packed form is verified through a product with row 7 of the identity matrix
    using T = TypeOf<decltype(o)>;
    const T* const b = o.in(kWideCols * kCols);
    kernels::Gemm<T> g{.m = 1, .n = kWideCols, .k = kCols, .lda = kCols, .b = b, .ldb = kCols, .b_transposed = true};
    T* const packed = o.scratch(kernels::packed_size(g));
    T *const c = o.out(kWideCols), *const one = o.scratch(kCols);
    one[7] = 1;
    g.a = one;
    g.b_packed = packed;
    g.c = c;
    g.ldc = kWideCols;
    return [=] {
      kernels::pack_b(g, packed);
      kernels::gemm(g, {});
    };
  });
}

void add_optimizers() {
  kernel("adam_step", [](auto& o) {
    return [gradient = o.in(kParameters), value = o.inout(kParameters), m = o.inout(kParameters),
            v = o.inout(kParameters, 0.1)] {
      const kernels::AdamStep step{.learning_rate = 1e-3, .weight_decay = 0.1, .correction1 = 0.1, .correction2 = 0.1};
      kernels::adam_step(step, kParameters, gradient, value, m, v);
    };
  });
  kernel("sgd_step", [](auto& o) {
    return [gradient = o.in(kParameters), value = o.inout(kParameters), velocity = o.inout(kParameters)] {
      const kernels::SgdStep step{.learning_rate = 1e-3, .momentum = 0.9};
      kernels::sgd_step(step, kParameters, gradient, value, velocity);
    };
  });
  kernel("sum_of_squares", [](auto& o) {
    using T = TypeOf<decltype(o)>;
    return [x = o.in(kParameters), sum = o.out(1),
            scratch = o.template scratch<double>(kernels::sum_of_squares_scratch(kParameters))] {
      *sum = static_cast<T>(kernels::sum_of_squares(kParameters, x, scratch));
    };
  });
}

}  // namespace

void add_kernel_benchmarks() {
  add_elementwise();
  add_rows();
  add_cross_entropy(4096, 65);
  add_cross_entropy(256, 50257);
  add_embedding(65);
  add_embedding(50257);
  add_attention(12, 64, 4, 32);
  add_attention(16, 256, 6, 64);
  add_attention(1, 2048, 4, 32);
  add_layout();
  add_optimizers();
}

}  // namespace maki::bench
