// Gradient descent, θ ← θ − α ∇L, and Adam (Kingma and Ba 2015, arXiv:1412.6980) in the narrow valley
// L = ½ (x² + κ y²). Gradient descent multiplies x by 1 − α and y by 1 − α κ at each step. It diverges if α > 2/κ, and
// even with the best rate, α = 2/(1 + κ), both shrink only by the factor (κ − 1)/(κ + 1) (Polyak 1964): it jumps from
// side to side and creeps along. Adam divides each coordinate's step by the root of its mean squared gradient and walks
// along the valley as fast as across. But it only sees coordinates: in a valley turned by 45°, it loses most of this.
#include <cmath>
#include <fmt/core.h>
#include <maki/autograd/ops.h>
#include <maki/autograd/tape.h>
#include <maki/optim/adam.h>
#include <maki/optim/sgd.h>

using namespace maki;

namespace {

constexpr double kCurvature = 400, kStartX = -9, kStartY = 1, kBestRate = 2 / (1 + kCurvature);
constexpr std::size_t kSteps = 60;

struct Point {
  double x, y, loss;  // along the valley, across
};

template <class Optimizer>
std::vector<Point> descend(double rate, bool turned) {
  const double c = turned ? std::sqrt(0.5) : 1, s = turned ? c : 0;  // cosine and sine of 45° or 0°
  const Tensor rotation = tensor<double>({c, -s, s, c}, {2, 2}), curvature = tensor<double>({1, kCurvature}, {2, 1});
  ParameterStore store(DType::float64);
  const Tensor start = matmul(rotation, tensor<double>({kStartX, kStartY}, {2, 1}));
  const Parameter& theta = store.add("theta", {2, 1}, init::values(start));
  store.seal();
  Optimizer optimizer(store);
  Tape tape;
  std::vector<Point> path;
  while (path.size() <= kSteps) {
    Tensor xy;
    const Tensor loss = [&] {
      const Recording on(tape);
      xy = matmul(rotation, theta, /*transpose_a=*/true);
      return 0.5 * sum(curvature * xy * xy);
    }();
    path.push_back({xy.at(0), xy.at(1), loss.item()});
    tape.backward(loss);
    optimizer.step(rate);
  }
  return path;
}

// Seen from above, with the minimum at the cross; steps 0 to 9 are digits, later ones dots.
void draw(const char* title, const std::vector<Point>& path) {
  std::vector<std::string> picture(11, std::string(72, ' '));
  picture[5] = std::string(60, '-') + '+' + std::string(11, '-');
  for (std::size_t step = path.size(); step-- > 0;) {
    const double column = std::round(60 + 6 * path[step].x), row = std::round(5 - 4 * path[step].y);
    if (!(column >= 0 && column < 72 && row >= 0 && row < 11)) continue;
    picture[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)] = ".0123456789"[step < 10 ? step + 1 : 0];
  }
  fmt::print("{}\n", title);
  for (const std::string& line : picture) fmt::print("{}\n", line);
}

}  // namespace

int main() {
  const auto sgd = descend<Sgd>(kBestRate, false), adam = descend<Adam>(0.5, false), turned = descend<Adam>(0.5, true);
  draw("gradient descent", sgd);
  draw("Adam", adam);
  fmt::print("step   loss: gradient descent     Adam   Adam in the turned valley\n");
  bool as_the_formula = true;  // NaN is not
  for (std::size_t step = 0; step <= kSteps; ++step) {
    const double factor = std::pow(1 - kBestRate, static_cast<double>(step));  // of x; that of y is its negative
    const double x = factor * kStartX, y = (step % 2 == 0 ? factor : -factor) * kStartY;
    as_the_formula = as_the_formula && std::abs(sgd[step].x - x) < 1e-12 && std::abs(sgd[step].y - y) < 1e-12;
    if (step % 10 == 0)
      fmt::print("{:4} {:23.2f} {:8.2f} {:12.2f}\n", step, sgd[step].loss, adam[step].loss, turned[step].loss);
  }
  const bool wins = adam.back().loss<0.01 * sgd.back().loss, loses = turned.back().loss> 10 * adam.back().loss;
  return as_the_formula && wins && loses ? 0 : 1;
}
