// Matrix products with the shapes of training and generation, by maki and by the other libraries that were found at
// build time, all on the same operands.
#include <fmt/format.h>
#include <memory>
#include <unordered_map>

#include "autograd/core/parallel.h"
#include "bench/report.h"
#include "train/app/bench/gemm_bench.h"

#ifdef MAKI_HAS_OPENBLAS
#include <cblas.h>
#endif
#ifdef MAKI_HAS_ONEDNN
#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace maki::bench {
namespace {

// x · weightᵀ (NT), dy · weight (NN) and dyᵀ · x (TN) of the quickstart model, the baby GPT and GPT-2's head, products
// with few rows as in generation, and a square product. Shapes are M,N,K.
struct Product {
  const char *shape, *transpose;
};
constexpr Product kProducts[] = {
    {"768,384,128", "NT"},   {"768,128,128", "NT"},   {"768,512,128", "NT"},   {"768,128,512", "NT"},
    {"768,65,128", "NT"},    {"768,128,384", "NN"},   {"384,128,768", "TN"},   {"4096,384,384", "NT"},
    {"4096,1536,384", "NT"}, {"4096,384,1536", "NT"}, {"4096,384,1536", "NN"}, {"1536,384,4096", "TN"},
    {"256,3072,768", "NT"},  {"256,768,3072", "NT"},  {"256,50257,768", "NT"}, {"256,768,50257", "NN"},
    {"50257,768,256", "TN"}, {"1,3072,768", "NT"},    {"1,768,768", "NT"},     {"13,384,384", "NT"},
    {"512,128,768", "TN"},   {"2048,2048,2048", "NN"}};

// Runs `multiply`, which writes the product's C, once and verifies the result.
Prepared verified(const std::shared_ptr<GemmBench>& product, const char* who, std::function<void()> multiply) {
  multiply();
  product->verify(who);
  return {std::move(multiply), product->shape().flop(), 0, product->on_tiles()};
}

void add_maki(const std::string& name, const GemmShape& shape, bool packed) {
  add(fmt::format("gemm/maki{}/{}", packed ? "-packed" : "", name), [shape, packed] {
    const auto product = std::make_shared<GemmBench>(shape, packed);
    return verified(product, "maki", [product] { product->run(); });
  });
}

#ifdef MAKI_HAS_OPENBLAS
void add_openblas(const std::string& name, const GemmShape& shape) {
  add("gemm/openblas/" + name, [s = shape] {
    const auto product = std::make_shared<GemmBench>(s);
    openblas_set_num_threads(threads());
    const auto side = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
    const auto size = [](std::int64_t n) { return static_cast<int>(n); };
    return verified(product, "OpenBLAS", [=] {
      cblas_sgemm(CblasRowMajor, side(s.a_transposed), side(s.b_transposed), size(s.m), size(s.n), size(s.k), 1,
                  product->a(), size(product->lda()), product->b(), size(product->ldb()), 0, product->c(), size(s.n));
    });
  });
}
#endif

#ifdef MAKI_HAS_ONEDNN
void add_onednn(const std::string& name, const GemmShape& shape) {
  add("gemm/onednn/" + name, [s = shape] {
    const auto product = std::make_shared<GemmBench>(s);
    omp_set_num_threads(threads());
    return verified(product, "oneDNN", [=] {
      dnnl_sgemm(s.a_transposed ? 'T' : 'N', s.b_transposed ? 'T' : 'N', s.m, s.n, s.k, 1, product->a(), product->lda(),
                 product->b(), product->ldb(), 0, product->c(), s.n);
    });
  });
}

// The matmul primitive with B prepacked in the format that it prefers. (With B in plain row-major order, it is slower
// than dnnl_sgemm.)
void add_onednn_packed(const std::string& name, const GemmShape& shape) {
  add("gemm/onednn-packed/" + name, [s = shape] {
    using dnnl::memory;
    const auto product = std::make_shared<GemmBench>(s);
    omp_set_num_threads(threads());
    const auto matrix = [](std::int64_t rows, std::int64_t columns, std::int64_t ld, bool transposed) {
      return memory::desc({rows, columns}, memory::data_type::f32,
                          transposed ? memory::dims{1, ld} : memory::dims{ld, 1});
    };
    const memory::desc a = matrix(s.m, s.k, product->lda(), s.a_transposed), c = matrix(s.m, s.n, s.n, false);
    const memory::desc b = matrix(s.k, s.n, product->ldb(), s.b_transposed);
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    dnnl::stream stream(engine);
    const memory::desc any({s.k, s.n}, memory::data_type::f32, memory::format_tag::any);
    const dnnl::matmul::primitive_desc plan({a, any, c}, engine);
    memory unpacked(b, engine, const_cast<float*>(product->b())), packed(plan.weights_desc(), engine);
    dnnl::reorder(unpacked, packed).execute(stream, unpacked, packed);
    stream.wait();
    const std::unordered_map<int, memory> operands{{DNNL_ARG_SRC, memory(a, engine, const_cast<float*>(product->a()))},
                                                   {DNNL_ARG_WEIGHTS, packed},
                                                   {DNNL_ARG_DST, memory(c, engine, product->c())}};
    return verified(product, "oneDNN", [=, kept = product, multiply = dnnl::matmul(plan)]() mutable {
      multiply.execute(stream, operands);
      stream.wait();
    });
  });
}
#endif

}  // namespace

void add_gemm_benchmarks() {
  for (const Product& product : kProducts) {
    const GemmShape shape = parse_gemm_shape(product.shape, product.transpose);
    const std::string name = fmt::format("{}/{}", product.shape, product.transpose);
    add_maki(name, shape, false);
    add_maki(name, shape, true);
#ifdef MAKI_HAS_OPENBLAS
    add_openblas(name, shape);
#endif
#ifdef MAKI_HAS_ONEDNN
    add_onednn(name, shape);
    add_onednn_packed(name, shape);
#endif
  }
}

}  // namespace maki::bench
