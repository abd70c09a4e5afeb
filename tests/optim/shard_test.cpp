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
      const std::vector<FlatRange> ranges = model.optimizer->divide(model.store.trainable(), parts);
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
    const std::vector<FlatRange> halves = model.optimizer->divide(model.store.trainable(), 2);
    REQUIRE(std::abs(halves[0].size() - halves[1].size()) < model.store.trainable().size() / 4);
  }
}

// What each of three parts updates: of two buckets, if elements can be updated one by one.
std::vector<std::vector<FlatRange>> three_parts(const Model& model) {
  const FlatRange all = model.store.trainable();
  std::vector<FlatRange> buckets = {all};
  if (model.optimizer->is_elementwise()) buckets = even_ranges(all, 2);
  std::vector<std::vector<FlatRange>> parts(3);
  for (const FlatRange& bucket : buckets) {
    const std::vector<FlatRange> ranges = model.optimizer->divide(bucket, 3);
    for (std::size_t part = 0; part < 3; ++part) parts[part].push_back(ranges[part]);
  }
  return parts;
}

// Sets a range to zero.
void clear_part(Tensor& flat, FlatRange range) {
  std::ranges::fill(
      flat.values<float>().subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size())),
      0.0F);
}

TEST_CASE("optimizers of parts do together what one does, bit for bit, and keep no other moments") {
  for (const auto& [name, make] : every_optimizer()) {
    Model whole(make);
    whole.store.seal(1);
    for (const std::uint64_t number : {2U, 3U}) whole.step(number);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      INFO(name << ", part " << rank);
      Model part(make);
      part.store.seal(1);
      const std::vector<FlatRange> own = three_parts(part)[rank];
      int shared = 0;
      part.optimizer->keep_shard({own, [&] { ++shared; }});
      Tensor expected = copy_of<float>(part.store.values());
      for (const std::uint64_t number : {2U, 3U}) part.step(number);
      REQUIRE(shared == 2);
      for (const FlatRange& range : own) {
        REQUIRE(same_bits(part_of(part.store.values(), range), part_of(whole.store.values(), range)));
        std::ranges::copy(part_of(part.store.values(), range).values<float>(),
                          expected.values<float>().begin() + range.begin);
      }
      const FlatRange all = part.store.trainable();
      REQUIRE(same_bits(part_of(part.store.values(), all), part_of(expected, all)));
      for (std::size_t i = 0; i < part.optimizer->moments().size(); ++i) {
        const Moment &mine = part.optimizer->moments()[i], &of_all = whole.optimizer->moments()[i];
        Tensor others = copy_of<float>(mine.values);
        for (const FlatRange& range : own) {
          const FlatRange kept = Optimizer::part_of(mine, range);
          REQUIRE(same_bits(part_of(mine.values, kept), part_of(of_all.values, kept)));
          clear_part(others, kept);
        }
        REQUIRE(is_zero(part_of(others, Optimizer::part_of(mine, all))));
      }
      REQUIRE_THROWS_AS(part.optimizer->keep_shard({own, [] {}}), Error);
    }
  }
}

TEST_CASE("what was written to moments of other parts can be dropped, before, between and after those of this one") {
  Model model(every_optimizer().front().second);
  model.store.seal(1);
  const std::vector<FlatRange> quarters = even_ranges(model.store.trainable(), 5);
  const std::vector<FlatRange> own = {quarters[1], quarters[3]};
  model.optimizer->keep_shard({own, [] {}});
  model.step(2);
  for (Moment& moment : model.optimizer->moments()) {
    const Tensor before = copy_of<float>(moment.values);
    for (const std::size_t other : {0U, 2U, 4U}) {
      const FlatRange range = Optimizer::part_of(moment, quarters[other]);
      std::ranges::fill(moment.values.values<float>().subspan(static_cast<std::size_t>(range.begin),
                                                              static_cast<std::size_t>(range.size())),
                        1.0F);
    }
    model.optimizer->drop_other_shards();
    for (const std::size_t part : {0U, 1U, 2U, 3U, 4U}) {
      const FlatRange range = Optimizer::part_of(moment, quarters[part]);
      if (range.size() == 0) continue;
      INFO(moment.name << ", part " << part);
      if (part % 2 == 1) {
        REQUIRE(same_bits(part_of(moment.values, range), part_of(before, range)));
      } else if (range.size() * 4 > 8192) {
        REQUIRE(moment.values.at((range.begin + range.end) / 2) == 0);
      }
    }
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
