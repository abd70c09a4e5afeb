// Feature maps of linear attention: functions φ of queries and keys with φ(q)·φ(k) ≈ exp(q·k), so that sums over keys
// become a state of constant size. The spectrum runs from softmax attention, whose features are infinitely many, over
// random and Nyström features of a chosen number M, to the fixed map elu(x) + 1.
//
// Shapes: B sequences of T tokens of width C = H·D, heads of D columns, M features per head; "…" is any number of
// leading axes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "autograd/ops.h"
#include "nn/scope.h"

namespace maki {

/// How attention weighs keys.
struct AttentionForm {
  enum class Kind : std::uint8_t {
    softmax,  ///< exp(q·k / √D), exactly
    elu,      ///< φ(q)·φ(k) with φ(x) = elu(x) + 1: Katharopoulos et al. 2020, arXiv:2006.16236
    random,  ///< exp(q·k / √D) in expectation, by positive random features: Choromanski et al. 2021, arXiv:2009.14794
    nystrom  ///< its projection onto the span of M landmarks: Williams and Seeger 2001
  };
  Kind kind = Kind::softmax;
  std::int64_t features = 0;  ///< M, for random and nystrom

  /// LinearAttention::floor for these features: 1e-30 for random ones, which may all underflow; 0.1 for those of
  /// landmarks, whose products need not be positive; 0, which is none, otherwise. Both numbers were chosen without a
  /// measurement.
  double floor() const { return kind == Kind::random ? 1e-30 : kind == Kind::nystrom ? 0.1 : 0; }
  bool operator==(const AttentionForm&) const = default;
};
/// "softmax", "elu", "random:M" or "nystrom:M", with M in digits.
std::string to_string(const AttentionForm& form);
/// The inverse of to_string(). Throws Error for any other text, also with zeros before the number, and unless M is from
/// 1 to the constant below.
AttentionForm parse_attention(std::string_view text);
/// The most features of one head: each token has as many numbers. Landmarks also have a matrix of the square of their
/// number, whose diagonalization takes time in proportion to the cube.
inline constexpr std::int64_t kMaxRandomFeatures = 65536, kMaxLandmarks = 1024;

/// exp(x·w − |x|²/2) / √M for each of the M rows w of `projection` [M, D]: x [… D] → [… M]. If the w are standard
/// normal, the expectation of φ(x)·φ(y) is exp(x·y), and its standard deviation falls as 1/√M. Choromanski et al. 2021,
/// lemma 1.
Tensor random_features(const Tensor& x, const Tensor& projection);
/// random_features(), divided by the largest feature of each row of x, so that no exp() overflows. Attention does not
/// change when a query's features are multiplied by a number; therefore no gradient flows through that number.
Tensor stable_random_features(const Tensor& x, const Tensor& projection);
/// Standard normal vectors w [M, D], float64, a function of the stream. With `orthogonal`, each D of them are
/// orthogonal to one another, which lowers the variance (Choromanski et al. 2021, section 2.4); every single one is
/// still standard normal.
Tensor random_projection(const RandomStream& stream, std::int64_t m, std::int64_t d, bool orthogonal);

/// K^(−1/2) k(x), where k(x)_i = exp(x·l_i − |l_i|²/2) for the rows l_i of `landmarks` [M, D], and K_ij = exp(−|l_i −
/// l_j|²/2): x [… D] → [… M]. φ(x)·φ(y) is the projection of exp(x·y) onto the landmarks, exact if x or y is one of
/// them (up to what nystrom_root() leaves out). `root` is K^(−1/2), from nystrom_root(), converted to the type of x.
/// The gradient flows through x alone.
Tensor nystrom_features(const Tensor& x, const Tensor& landmarks, const Tensor& root);
/// nystrom_features(), divided by the largest k(x)_i of each row. Here the gradient does flow through that number,
/// because a bound on the denominator (AttentionForm::floor()) makes attention depend on it.
Tensor stable_nystrom_features(const Tensor& x, const Tensor& landmarks, const Tensor& root);
/// K^(−1/2) [M, M] of landmarks [M, D], float64: inverse_square_root() with a cutoff of 1e-6.
Tensor nystrom_root(const Tensor& landmarks);
/// M landmarks [M, D], float64, for keys [N, D]: the centres of 20 rounds of k-means, which starts from keys at equal
/// distances in the sequence; a centre to which no key is nearest stays where it is. Zhang and Kwok 2010 show that the
/// error of the Nyström method is bounded by that of k-means. Throws Error unless 1 <= M <= N.
Tensor choose_landmarks(const Tensor& keys, std::int64_t m);

/// a^(−1/2) of a symmetric matrix [M, M] without negative eigenvalues, float64. Eigenvalues of at most `cutoff` times
/// the largest count as 0, and so does their inverse. By Jacobi rotations. Throws Error unless the matrix is square and
/// float64; that it is symmetric is not checked.
Tensor inverse_square_root(const Tensor& a, double cutoff);

/// The feature map of one attention layer, with the vectors that it needs as frozen parameters: `projection` [M, D] for
/// random features (orthogonal draws), `landmarks` [M, D] for Nyström ones. Both are functions of the model's seed, and
/// checkpoints keep them. Landmarks begin as normal vectors of standard deviation 1/2 per column of a key before it is
/// scaled by D^(−1/4); choose_landmarks() gives better ones, once a model is trained.
///
/// Thread safety: may be used by several threads at once.
class FeatureMap {
 public:
  /// Throws Error if form.kind is softmax. Requires: M is at least 1 for random and nystrom.
  FeatureMap(const Scope& scope, const AttentionForm& form, std::int64_t n_head, std::int64_t head_size);

  /// Features of one head: M, or for elu, which maps each column by itself, D.
  std::int64_t features() const { return features_; }
  double floor() const { return form_.floor(); }
  /// Features of the queries and of the keys of all heads: [B, T, C] → [B, T, H·features()].
  Tensor queries(const Tensor& q) const { return apply(q, true); }
  Tensor keys(const Tensor& k) const { return apply(k, false); }
  /// Floating-point operations of the products of the map for one query or key of one head; 0 for elu.
  double flop() const;

 private:
  Tensor apply(const Tensor& x, bool query) const;
  Tensor root() const;

  struct Root;  // K^(−1/2), and the landmarks that it belongs to; copies of the map share it
  AttentionForm form_;
  std::int64_t n_head_, head_size_, features_;
  Parameter* vectors_ = nullptr;
  std::shared_ptr<Root> root_;
};

}  // namespace maki
