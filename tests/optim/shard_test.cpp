// Optimizers of which each updates a part of the parameters do together what one does.
#include <algorithm>

#include "optim/clip.h"
#include "optim/make_optimizer.h"
#include "tests/catch.h"
#include "tests/optim/matrix_and_vector_optimizer.h"
#include "tests/tensors.h"

using namespace maki;
using namespace maki::tests;

namespace {

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(ParameterStore&)>;

// Matrices, vectors and a table, of several blocks each, and an optimizer for them.
struct Model {
  explicit Model(const MakeOptimizer& make) {
    store.add("embedding", {300, 90}, init::normal(1));
    store.add("first", {120, 128}, init::normal(1), std::nullopt, 3);
    store.add("second", {128, 100}, init::normal(1), std::nullopt, 1);
    store.add("bias", {9001}, init::normal(1));
    store.add("rows", {40, 5}, init::normal(1), ParamGroup::rows);
    optimizer = make(store);
  }
  void step(std::uint64_t number) {
    store.set_gradients(random_tensor(store.gradients().shape(), number, DType::float32));
    optimizer->step(0.01, 0.5);
  }
  ParameterStore store;
  std::unique_ptr<Optimizer> optimizer;
};

std::vector<std::pair<std::string, MakeOptimizer>> every_optimizer() {
  std::vector<std::pair<std::string, MakeOptimizer>> list;
  for (const std::string& name : optimizer_names())
    list.emplace_back(name, [name](ParameterStore& store) { return make_optimizer(name, {}, store); });
  list.emplace_back("one of a program",
                    [](ParameterStore& store) { return std::make_unique<MatrixAndVectorOptimizer>(store); });
  return list;
}

Tensor part_of(const Tensor& flat, FlatRange range) { return flat.slice_flat(range.begin, Shape{range.size()}); }

bool is_zero(const Tensor& x) {
  return std::ranges::all_of(x.values<float>(), [](float value) { return value == 0; });
}

}  // namespace

TEST_CASE("an optimizer divides the parameters into parts that cover them, and does not cut what it sees as a whole") {
  for (const auto& [name, make] : every_optimizer()) {
    Model model(make);
    model.store.assign_offsets();
    for (const int parts : {1, 2, 3, 7, 40}) {
      INFO(name << ", " << parts << " parts");
      const std::vector<FlatRange> ranges = model.optimizer->divide(parts);
      REQUIRE(std::ssize(ranges) == parts);
      std::int64_t end = 0, last_block = -1;
      for (const FlatRange& range : ranges) {
        REQUIRE(range.begin == end);
        REQUIRE(range.end >= range.begin);
        if (range.size() > 0 && range.begin > 0) REQUIRE(range.begin / kNormBlock > last_block);
        if (range.size() > 0) last_block = range.begin / kNormBlock;
        end = range.end;
        if (name == "muon" && end < model.store.trainable().end) {
          const Parameter &first = model.store.find("first"), &second = model.store.find("second");
          REQUIRE((end <= first.offset() || end == second.offset() || end >= second.offset() + 12800));
        }
      }
      REQUIRE(end == model.store.trainable().end);
    }
    const std::vector<FlatRange> halves = model.optimizer->divide(2);
    REQUIRE(std::abs(halves[0].size() - halves[1].size()) < model.store.trainable().size() / 4);
  }
}

TEST_CASE("optimizers of parts do together what one does, bit for bit, and keep no other moments") {
  for (const auto& [name, make] : every_optimizer()) {
    Model whole(make);
    whole.store.seal(1);
    for (const std::uint64_t number : {2, 3}) whole.step(number);
    for (int rank = 0; rank < 3; ++rank) {
      INFO(name << ", part " << rank);
      Model part(make);
      part.store.seal(1);
      const FlatRange own = part.optimizer->divide(3)[static_cast<std::size_t>(rank)];
      int shared = 0;
      part.optimizer->keep_shard({own, [&] { ++shared; }});
      const Tensor before = copy_of<float>(part.store.values());
      for (const std::uint64_t number : {2, 3}) part.step(number);
      REQUIRE(shared == 2);
      REQUIRE(same_bits(part_of(part.store.values(), own), part_of(whole.store.values(), own)));
      const FlatRange left{0, own.begin}, right{own.end, part.store.trainable().end};
      REQUIRE(same_bits(part_of(part.store.values(), left), part_of(before, left)));
      REQUIRE(same_bits(part_of(part.store.values(), right), part_of(before, right)));
      for (std::size_t i = 0; i < part.optimizer->moments().size(); ++i) {
        const Moment &mine = part.optimizer->moments()[i], &all = whole.optimizer->moments()[i];
        const FlatRange kept = Optimizer::part_of(mine, own), flat = Optimizer::part_of(mine, part.store.trainable());
        REQUIRE(same_bits(part_of(mine.values, kept), part_of(all.values, kept)));
        if (flat.size() == 0) continue;
        const std::int64_t begin = kept.size() > 0 ? kept.begin : flat.end;
        REQUIRE(is_zero(part_of(mine.values, {flat.begin, begin})));
        REQUIRE(is_zero(part_of(mine.values, {kept.size() > 0 ? kept.end : flat.end, flat.end})));
      }
      REQUIRE_THROWS_AS(part.optimizer->keep_shard({own, [] {}}), Error);
    }
  }
}

TEST_CASE("what was written to moments of other parts can be dropped") {
  Model model(every_optimizer().front().second);
  model.store.seal(1);
  const FlatRange own = model.optimizer->divide(2)[1];
  model.optimizer->keep_shard({own, [] {}});
  model.step(2);
  for (Moment& moment : model.optimizer->moments()) {
    const Tensor before = copy_of<float>(part_of(moment.values, Optimizer::part_of(moment, own)));
    std::ranges::fill(moment.values.values<float>().first(64), 1.0F);
    model.optimizer->drop_other_shards();
    if (moment.values.numel() * 4 > 8192) REQUIRE(moment.values.at(0) == (own.begin * 4 >= 4096 ? 0 : 1));
    REQUIRE(same_bits(part_of(moment.values, Optimizer::part_of(moment, own)), before));
  }
}

TEST_CASE("the norm of a tensor is that of the squares of its blocks") {
  const Tensor x = random_tensor({2 * kNormBlock + 17}, 1);
  const std::vector<double> squares = squares_of_blocks(x);
  REQUIRE(squares.size() == 3);
  REQUIRE(norm_of_blocks(squares) == global_norm(x));
  const Tensor last = x.slice_flat(2 * kNormBlock, Shape{17});
  REQUIRE(squares_of_blocks(last) == std::vector<double>{squares[2]});
}
