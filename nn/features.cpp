#include "nn/features.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <optional>

#include "autograd/core/check.h"
#include "autograd/core/nearest.h"

namespace maki {

std::string to_string(const AttentionForm& form) {
  switch (form.kind) {
    case AttentionForm::Kind::softmax:
      return "softmax";
    case AttentionForm::Kind::elu:
      return "elu";
    case AttentionForm::Kind::random:
      return fmt::format("random:{}", form.features);
    case AttentionForm::Kind::nystrom:
      return fmt::format("nystrom:{}", form.features);
  }
  return "";
}

AttentionForm parse_attention(std::string_view text) {
  if (text == "softmax") return {};
  if (text == "elu") return {.kind = AttentionForm::Kind::elu};
  const std::size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  const bool random = word == "random";
  if ((random || word == "nystrom") && colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    std::int64_t m = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), m);
    const std::int64_t most = random ? kMaxRandomFeatures : kMaxLandmarks;
    check(error == std::errc() && end == digits.data() + digits.size() && m >= 1 && m <= most,
          "attention: the number after {}: must be from 1 to {}; got {}", word, most, truncate_for_message(text));
    const AttentionForm form{random ? AttentionForm::Kind::random : AttentionForm::Kind::nystrom, m};
    check(to_string(form) == text, "attention: write the number without zeros before it; got {}",
          truncate_for_message(text));
    return form;
  }
  const std::string examples[] = {"softmax", "elu", "random:64", "nystrom:32"};
  fail("attention: must be softmax, elu, random:M or nystrom:M, for example random:64; got {}{}",
       truncate_for_message(text), nearest_hint(word, examples));
}

namespace {

// |x|²/2 of each row [… 1].
Tensor half_squares(const Tensor& x) { return scale(sum(mul(x, x), {-1}, true), 0.5); }

}  // namespace

// 1/√M is subtracted in the exponent, where it costs one number per row.
Tensor random_features(const Tensor& x, const Tensor& projection) {
  const double log_root = 0.5 * std::log(static_cast<double>(projection.shape()[0]));
  const Tensor product = matmul(x, projection, false, true);  // compilers differ in the order of arguments
  return exp(sub(product, half_squares(x) + log_root));
}

// |x|²/2 is the same for all features of a row, so it cancels.
Tensor stable_random_features(const Tensor& x, const Tensor& projection) {
  const Tensor product = matmul(x, projection, false, true);
  return exp(sub(product, max(product.detach(), -1, true)));
}

Tensor random_projection(const RandomStream& stream, std::int64_t m, std::int64_t d, bool orthogonal) {
  Tensor w = empty({m, d}, DType::float64);
  double* const data = w.data<double>();
  for (std::int64_t i = 0; i < m * d; ++i) data[i] = stream.normal(static_cast<std::uint64_t>(i));
  if (!orthogonal) return w;
  // Gram–Schmidt within each D rows, which keep their lengths: directions become orthogonal, lengths stay independent
  // of them. Twice, because one pass loses orthogonality by rounding.
  for (std::int64_t row = 0; row < m; ++row) {
    double* const own = data + row * d;
    const double length = std::sqrt(std::inner_product(own, own + d, own, 0.0));
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t other = row / d * d; other < row; ++other) {
        const double* const before = data + other * d;
        const double share =
            std::inner_product(own, own + d, before, 0.0) / std::inner_product(before, before + d, before, 0.0);
        for (std::int64_t c = 0; c < d; ++c) own[c] -= share * before[c];
      }
    }
    const double left = std::sqrt(std::inner_product(own, own + d, own, 0.0));
    for (std::int64_t c = 0; c < d; ++c) own[c] *= length / left;
  }
  return w;
}

namespace {

// x·l_i − |l_i|²/2, [… M].
Tensor landmark_scores(const Tensor& x, const Tensor& landmarks) {
  const Tensor product = matmul(x, landmarks, false, true);
  return sub(product, reshape(half_squares(landmarks), {landmarks.shape()[0]}));
}

}  // namespace

Tensor nystrom_features(const Tensor& x, const Tensor& landmarks, const Tensor& root) {
  return matmul(exp(landmark_scores(x, landmarks.detach())), root.detach());
}

Tensor stable_nystrom_features(const Tensor& x, const Tensor& landmarks, const Tensor& root) {
  const Tensor scores = landmark_scores(x, landmarks.detach());
  return matmul(exp(sub(scores, max(scores, -1, true))), root.detach());
}

struct FeatureMap::Root {
  std::mutex mutex;
  Tensor landmarks, root;
};

namespace {

// The standard deviation of initial landmarks, where standard normal keys have 1.
constexpr double kLandmarkStdFactor = 0.5;

// The initial value of random projections: all of it is drawn at once, when the first element of a stream is asked for.
// A seal() that fails may be followed by one with another stream.
Initializer projection_initializer(std::int64_t m, std::int64_t d) {
  struct Drawn {
    std::mutex mutex;
    std::optional<RandomStream> stream;
    Tensor values;
  };
  return [m, d, drawn = std::make_shared<Drawn>()](const RandomStream& stream, std::uint64_t index) {
    const std::scoped_lock lock(drawn->mutex);
    if (drawn->stream != stream) {
      drawn->values = random_projection(stream, m, d, true);
      drawn->stream = stream;
    }
    return drawn->values.data<double>()[index];
  };
}

}  // namespace

FeatureMap::FeatureMap(const Scope& scope, const AttentionForm& form, std::int64_t n_head, std::int64_t head_size)
    : form_(form),
      n_head_(n_head),
      head_size_(head_size),
      features_(form.kind == AttentionForm::Kind::elu ? head_size : form.features) {
  check(form.kind != AttentionForm::Kind::softmax, "features: softmax attention has no features");
  if (form.kind == AttentionForm::Kind::random) {
    vectors_ = &scope.frozen("projection", {features_, head_size}, projection_initializer(features_, head_size));
  } else if (form.kind == AttentionForm::Kind::nystrom) {
    const double scale = std::pow(static_cast<double>(head_size), -0.25);
    vectors_ = &scope.frozen("landmarks", {features_, head_size}, init::normal(kLandmarkStdFactor * scale));
    root_ = std::make_shared<Root>();
  }
  if (vectors_ != nullptr) vectors_->set_multiplied(false);  // flop() counts them
}

double FeatureMap::flop() const {
  const double m = static_cast<double>(features_), d = static_cast<double>(head_size_);
  if (form_.kind == AttentionForm::Kind::random) return 2 * m * d;
  if (form_.kind == AttentionForm::Kind::nystrom) return 2 * m * d + 2 * m * m;
  return 0;
}

// The landmarks hardly ever change, so their K^(−1/2) is kept.
Tensor FeatureMap::root() const {
  const Tensor& landmarks = vectors_->value();
  const auto bytes = static_cast<std::size_t>(landmarks.numel() * size_of(landmarks.dtype()));
  const std::lock_guard lock(root_->mutex);
  const bool known = root_->landmarks && dispatch(landmarks.dtype(), [&]<class T>() {
                       return std::memcmp(landmarks.data<T>(), root_->landmarks.data<T>(), bytes) == 0;
                     });
  if (!known) {
    root_->root = convert(nystrom_root(landmarks.detach()), landmarks.dtype());
    root_->landmarks = convert(landmarks.detach(), landmarks.dtype());
  }
  return root_->root;
}

// exp(q·k/√D) is exp(x·y) of x = D^(−1/4) q and y = D^(−1/4) k.
Tensor FeatureMap::apply(const Tensor& x, bool query) const {
  if (form_.kind == AttentionForm::Kind::elu) return elu_plus_one(x);
  const std::int64_t batch = x.shape()[0], tokens = x.shape()[1];
  const Tensor heads =
      scale(reshape(x, {batch * tokens * n_head_, head_size_}), std::pow(static_cast<double>(head_size_), -0.25));
  Tensor y;
  if (form_.kind == AttentionForm::Kind::random) {
    y = query ? stable_random_features(heads, *vectors_) : random_features(heads, *vectors_);
  } else {
    y = query ? stable_nystrom_features(heads, *vectors_, root()) : nystrom_features(heads, *vectors_, root());
  }
  return reshape(y, {batch, tokens, n_head_ * features_});
}

}  // namespace maki
