// Parameters and optimizers in a file: two lines for any store and any optimizer, including those of a user.
#include "train/run/parameters_file.h"

#include <limits>
#include <utility>

#include "data/io/error.h"
#include "tests/files.h"
#include "tests/optim/matrix_and_vector_optimizer.h"
#include "tests/optim/small_store.h"
#include "tests/train/small_checkpoint.h"
#include "train/run/config/models.h"
#include "train/run/container.h"
#include "train/run/loaded_model.h"

using namespace maki;
using namespace maki::tests;

namespace {

template <class T>
void train(ParameterStore& store, Optimizer& optimizer, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t s = begin; s < end; ++s) {
    draw_gradients<T>(store, s);
    optimizer.step(0.01, 0.5);
  }
}

// A file of the small store and the optimizer that no library file knows, after three steps.
std::string saved(const TemporaryFolder& folder, const char* name = "a.maki") {
  ParameterStore store;
  fill(store);
  MatrixAndVectorOptimizer optimizer(store);
  train<float>(store, optimizer, 0, 3);
  save_parameters(folder / name, store, optimizer);
  return folder / name;
}

std::string loading_says(const std::string& path) {
  ParameterStore store;
  fill(store);
  MatrixAndVectorOptimizer optimizer(store);
  const Tensor before = copy_of<float>(store.values());
  const std::string said = error_message<CheckpointError>([&] { load_parameters(path, store, optimizer); });
  REQUIRE(same_bits(store.values(), before) == !said.empty());
  REQUIRE(optimizer.steps() == (said.empty() ? 3 : 0));
  return said;
}

std::string with_section(const TemporaryFolder& folder, const std::string& name,
                         const std::function<void(std::string&)>& change) {
  Sections sections = sections_of(saved(folder));
  change(section(sections, name));
  return write_sections(folder / "forged.maki", sections);
}

}  // namespace

TEST_CASE("training continues from a file as if it had not stopped, with every optimizer and both types") {
  const TemporaryFolder folder;
  std::vector<std::function<std::unique_ptr<Optimizer>(ParameterStore&)>> makers = {
      [](ParameterStore& store) { return std::make_unique<MatrixAndVectorOptimizer>(store); }};
  for (const OptimizerOptions& options : kAllOptimizers) {
    makers.emplace_back([&options](ParameterStore& store) { return make(store, options); });
  }
  for (std::size_t i = 0; i < makers.size(); ++i) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      INFO("optimizer " << i << ", " << to_string(dtype));
      dispatch(dtype, [&]<class T>() {
        ParameterStore straight(dtype), resumed(dtype);
        fill(straight);
        fill(resumed);
        const auto one = makers[i](straight), two = makers[i](resumed);
        train<T>(straight, *one, 0, 3);
        const ParameterStore& saved_store = straight;  // saving changes nothing
        const Optimizer& saved_optimizer = *one;
        save_parameters(folder / "a.maki", saved_store, saved_optimizer);
        load_parameters(folder / "a.maki", resumed, *two);
        REQUIRE(two->steps() == 3);
        train<T>(straight, *one, 3, 6);
        train<T>(resumed, *two, 3, 6);
        REQUIRE(same_bits(straight.values(), resumed.values()));
        for (std::size_t k = 0; k < one->moments().size(); ++k) {
          REQUIRE(same_bits(one->moments()[k].values, two->moments()[k].values));
        }
      });
    }
  }
}

TEST_CASE("the same state is the same bytes, with names, sizes and order as documented") {
  const TemporaryFolder folder;
  REQUIRE(read_bytes(saved(folder, "a.maki")) == read_bytes(saved(folder, "b.maki")));
  std::vector<std::string> names;
  for (const auto& [name, bytes] : sections_of(folder / "a.maki")) names.push_back(name);
  REQUIRE(names == std::vector<std::string>{"store", "tensors", "values", "exp_avg", "row_norm", "exp_avg_sq"});
  Sections sections = sections_of(folder / "a.maki");
  REQUIRE(section(sections, "store") == std::string("\4\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16));
}

TEST_CASE("parameters load without the optimizer, into a store that is not sealed, and from a checkpoint") {
  const TemporaryFolder folder;
  ParameterStore expected, sealed;
  fill(expected);
  fill(sealed);
  AdamW optimizer(expected);
  train<float>(expected, optimizer, 0, 3);
  save_parameters(folder / "with.maki", expected, optimizer);
  save_parameters(folder / "without.maki", expected);
  for (const char* name : {"with.maki", "without.maki"}) {
    INFO(name);
    const std::uint64_t version = sealed.version();
    load_parameters(folder / name, sealed);
    REQUIRE(same_bits(sealed.values(), expected.values()));
    REQUIRE(sealed.version() > version);
  }

  const std::string checkpoint = write_smallest(folder / "checkpoint.maki");
  const LoadedModel model(checkpoint);
  ParameterStore planned;
  const auto same = make_model(model.state.config, model.state.vocab_size, Scope(planned));
  load_parameters(checkpoint, planned);
  REQUIRE(planned.sealed());
  REQUIRE(same_bits(planned.values(), model.store.values()));
  AdamW adamw(planned);
  REQUIRE(contains(error_message<CorruptFile>([&] { load_parameters(checkpoint, planned, adamw); }),
                   "must have the sections store"));
}

TEST_CASE("a file of other parameters or of another optimizer is rejected with the difference, and nothing changes") {
  const TemporaryFolder folder;
  REQUIRE(loading_says(saved(folder)).empty());
  ParameterStore other;
  other.add("vector.1", {2}, init::constant(1));
  REQUIRE(contains(error_message<CorruptFile>([&] { load_parameters(folder / "a.maki", other); }), "14 tensors"));
  REQUIRE_FALSE(other.sealed());
  ParameterStore wide(DType::float64);
  fill(wide);
  REQUIRE(
      contains(error_message<CorruptFile>([&] { load_parameters(folder / "a.maki", wide); }), "holds float32 numbers"));
  ParameterStore store;
  fill(store);
  AdamW adamw(store);
  const std::string said = error_message<CorruptFile>([&] { load_parameters(folder / "a.maki", store, adamw); });
  REQUIRE(contains(said, "values, exp_avg, exp_avg_sq for this optimizer; it has"));
  save_parameters(folder / "bare.maki", store);
  REQUIRE(
      contains(error_message<CorruptFile>([&] { load_parameters(folder / "bare.maki", store, adamw); }), "exp_avg"));
  REQUIRE(contains(error_message<CheckpointError>([&] { load_parameters(folder / "none.maki", store); }), "none.maki"));
}

TEST_CASE("moments of a user's optimizer are checked as it declares them") {
  const TemporaryFolder folder;
  const std::string negative("\0\0\x80\xbf", 4);  // -1
  for (const char* moment : {"row_norm", "exp_avg_sq"}) {
    const std::string path = with_section(folder, moment, [&](std::string& bytes) { bytes.replace(0, 4, negative); });
    REQUIRE(contains(loading_says(path), std::string(moment) + " contains a number that is negative"));
  }
  REQUIRE(loading_says(with_section(folder, "exp_avg", [&](auto& bytes) { bytes.replace(0, 4, negative); })).empty());
  const auto shorter = [](std::string& bytes) { bytes.resize(bytes.size() - 64); };
  REQUIRE(contains(loading_says(with_section(folder, "row_norm", shorter)), "section row_norm must have"));
  // The first matrix has one row, so one element of row_norm; 16 fill 64 bytes.
  const auto padding = [](std::string& bytes) { bytes[4] = '\1'; };
  REQUIRE(contains(loading_says(with_section(folder, "row_norm", padding)),
                   "row_norm: the padding after matrix.1 must be zero"));
  REQUIRE(
      contains(loading_says(with_section(folder, "store", [](auto& bytes) { bytes[15] = '\x80'; })), "section store"));
  std::string damaged = read_bytes(saved(folder));
  damaged[damaged.size() - 100] = static_cast<char>(damaged[damaged.size() - 100] ^ 1);
  write_bytes(folder / "damaged.maki", damaged);
  REQUIRE_FALSE(loading_says(folder / "damaged.maki").empty());
}

TEST_CASE("numbers that could not be loaded are not saved, so the file that exists stays") {
  const TemporaryFolder folder;
  const std::string path = saved(folder), before = read_bytes(path);
  ParameterStore store;
  fill(store);
  MatrixAndVectorOptimizer optimizer(store);
  const auto refused = [&](float& number, float bad, const std::string& sentence) {
    const float good = std::exchange(number, bad);
    INFO(sentence);
    REQUIRE(contains(error_message<DivergedError>([&] { save_parameters(path, store, optimizer); }), sentence));
    REQUIRE(read_bytes(path) == before);
    number = good;
  };
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  refused(store.values().data<float>()[0], kNaN, "section values would contain a number that is not finite");
  refused(store.values().data<float>()[0], -kInfinity, "section values would contain a number that is not finite");
  std::vector<Moment>& moments = optimizer.moments();
  const auto first_of = [&](std::size_t i) -> float& { return moments[i].values.data<float>()[0]; };
  refused(first_of(0), kInfinity, "section exp_avg would contain a number that is not finite");
  refused(first_of(1), -1, "section row_norm would contain a number that is negative or not finite");
  first_of(0) = -1;
  save_parameters(path, store, optimizer);
  load_parameters(path, store, optimizer);
  store.values().data<float>()[0] = kNaN;
  REQUIRE_THROWS_AS(save_parameters(path, store), DivergedError);
}

TEST_CASE("an optimizer of another store, and a moment with the name of another section, are rejected") {
  const TemporaryFolder folder;
  ParameterStore one, two;
  fill(one);
  fill(two);
  AdamW optimizer(one);
  REQUIRE_THROWS_AS(save_parameters(folder / "a.maki", two, optimizer), Error);
  REQUIRE_THROWS_AS(load_parameters(saved(folder), two, optimizer), Error);
  struct Misnamed : ParameterOptimizer {
    explicit Misnamed(ParameterStore& store) : ParameterOptimizer(store) {}
    std::vector<MomentSpec> moments_of(const Parameter& p) const override { return {{"values", p.shape()}}; }
    void update_parameter(const OptimizerStep&, ParameterUpdate&) override {}
  } misnamed(one);
  REQUIRE(contains(error_message<CheckpointError>([&] { save_parameters(folder / "b.maki", one, misnamed); }),
                   "got values"));
}
