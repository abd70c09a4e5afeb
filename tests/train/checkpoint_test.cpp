// Checkpoints: everything in them is restored to the last bit, weights are loaded without the optimizer, messages name
// what does not match, and a forged section with a valid checksum does no harm.
#include "train/run/checkpoint.h"

#include <cmath>

#include "data/io/error.h"
#include "data/tokenizer/byte_tokenizer.h"
#include "data/tokenizer/char_tokenizer.h"
#include "tests/files.h"
#include "tests/optim/small_store.h"
#include "tests/train/small_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

// A store of three tensors and its optimizer.
struct CheckpointModel {
  explicit CheckpointModel(OptimizerOptions options = AdamWOptions{}, DType dtype = DType::float32,
                           std::int64_t width = 3, const std::string& last = "ln.bias", std::uint64_t seed = 1)
      : store(dtype), owned(make(store, options)), optimizer(*owned) {
    store.add("wte.weight", {5, width}, init::normal(1));
    store.add("ln.weight", {width}, init::normal(1));
    store.add(last, {width}, init::normal(1));
    store.seal(seed);
  }
  // A step with gradients that differ from element to element, so that no two moments are equal.
  void step() {
    store.gradients();
    dispatch(store.dtype(), [&]<class T>() {
      std::size_t i = 0;
      for (const auto& parameter : store.parameters()) {
        Tensor gradient = parameter->gradient();
        for (T& g : gradient.values<T>()) g = static_cast<T>(std::sin(static_cast<double>(++i)));
      }
    });
    optimizer.step(0.01);
  }
  std::vector<double> values() {
    std::vector<double> list;
    for (std::int64_t i = 0; i < store.values().numel(); ++i) list.push_back(store.values().at(i));
    return list;
  }
  std::vector<double> moments() {
    std::vector<double> list;
    for (const auto& moment : optimizer.moments()) {
      for (std::int64_t i = 0; i < moment.values.numel(); ++i) list.push_back(moment.values.at(i));
    }
    return list;
  }
  ParameterStore store;
  std::unique_ptr<Optimizer> owned;
  Optimizer& optimizer;
};

CheckpointState some_state() {
  CheckpointState state;
  state.step = 7;
  state.vocab_size = 5;
  state.characters = 1000;
  state.train_tokens = 900;
  state.val_tokens = 100;
  state.corpus_hash = "0123456789abcdef0123456789abcdef";
  state.best_possible_loss = 0.75;
  state.config.n_layer = 2;
  state.config.dropout = 0.1;
  state.config.optimizer = "adam";
  state.config.lr_decay_steps = 60;
  state.tokenizer = CharTokenizer(std::string_view("a\0bcd", 5)).save();
  return state;
}

std::string save(const TemporaryFolder& folder, CheckpointModel& model, const CheckpointState& state,
                 const char* name = "a.maki") {
  write_checkpoint(posix_file_system(), folder / name, state, model.store, model.optimizer);
  return folder / name;
}

// Reads everything that a resumed run reads. Must throw nothing but CheckpointError.
void load_everything(const std::string& path, CheckpointModel& model) {
  const ContainerReader file(path);
  file.verify();
  const CheckpointState state = read_state(file);
  read_tensors(file);
  load_values(file, model.store);
  load_optimizer(file, state.step, model.optimizer);
}

}  // namespace

TEST_CASE("a checkpoint restores everything to the last bit: state, values, moments, steps") {
  const TemporaryFolder folder;
  for (const OptimizerOptions& options : {OptimizerOptions(AdamWOptions{}), OptimizerOptions(AdamOptions{}),
                                          OptimizerOptions(SgdOptions{.momentum = 0.9}), OptimizerOptions(SgdOptions{}),
                                          OptimizerOptions(MuonOptions{})}) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      CheckpointModel model(options, dtype);
      model.step();
      const CheckpointState state = some_state();
      const std::string path = save(folder, model, state);
      CheckpointModel again(options, dtype, 3, "ln.bias", 2);
      REQUIRE(again.values() != model.values());
      const ContainerReader file(path);
      file.verify();
      const CheckpointState read = read_state(file);
      load_values(file, again.store);
      load_optimizer(file, read.step, again.optimizer);
      REQUIRE(again.values() == model.values());
      REQUIRE(again.moments() == model.moments());
      REQUIRE(again.optimizer.steps() == 7);
      REQUIRE(read.step == state.step);
      REQUIRE(read.vocab_size == state.vocab_size);
      REQUIRE(read.characters == state.characters);
      REQUIRE(read.train_tokens == state.train_tokens);
      REQUIRE(read.val_tokens == state.val_tokens);
      REQUIRE(read.corpus_hash == state.corpus_hash);
      REQUIRE(read.best_possible_loss == state.best_possible_loss);
      REQUIRE(read.tokenizer == state.tokenizer);
      REQUIRE(training_differences(read.config, state.config).empty());
      REQUIRE(read.config.n_layer == 2);
    }
  }
}

TEST_CASE("equal states give equal bytes, which depend on training fields but not on run fields") {
  const TemporaryFolder folder;
  CheckpointModel model;
  CheckpointState state = some_state();
  const std::string bytes = read_bytes(save(folder, model, state));
  state.config.out = "elsewhere";
  state.config.corpus = {"another path"};
  state.config.threads = 3;
  state.config.max_steps = 99;
  state.config.eval_interval = 1;
  state.config.keep_last = 9;
  state.config.target = "sse4";
  REQUIRE(read_bytes(save(folder, model, state)) == bytes);
  state.config.seed += 1;
  REQUIRE(read_bytes(save(folder, model, state)) != bytes);
  model.step();
  REQUIRE(read_bytes(save(folder, model, some_state())) != bytes);
}

TEST_CASE("weights are loaded without the optimizer, even if its sections are damaged") {
  const TemporaryFolder folder;
  CheckpointModel model;
  model.step();
  const std::string path = save(folder, model, some_state());
  std::uint64_t moments = 0;
  {
    const ContainerReader file(path);
    for (const auto& entry : file.entries()) {
      if (entry.name == "exp_avg") moments = entry.offset;
    }
  }
  REQUIRE(moments > 0);
  std::string bytes = read_bytes(path);
  bytes[moments] ^= 1;
  write_bytes(path, bytes);
  CheckpointModel other(AdamWOptions{}, DType::float32, 3, "ln.bias", 2);
  const ContainerReader file(path);
  read_state(file);
  load_values(file, other.store);
  REQUIRE(other.values() == model.values());
  REQUIRE(contains(error_message<CheckpointError>([&] { load_optimizer(file, 7, other.optimizer); }), "exp_avg"));
}

TEST_CASE("loading values raises the version of the store, which invalidates packed copies") {
  const TemporaryFolder folder;
  CheckpointModel model;
  const std::string path = save(folder, model, some_state());
  const std::uint64_t before = model.store.version();
  load_values(ContainerReader(path), model.store);
  REQUIRE(model.store.version() > before);
}

TEST_CASE("a model with another shape, name, type or optimizer is rejected, naming the difference") {
  const TemporaryFolder folder;
  CheckpointModel model;
  const std::string path = save(folder, model, some_state());
  const ContainerReader file(path);
  REQUIRE(contains(error_message<CheckpointError>([&] {
                     CheckpointModel wide(AdamWOptions{}, DType::float32, 4);
                     load_values(file, wide.store);
                   }),
                   "wte.weight [5, 3]"));
  REQUIRE(contains(error_message<CheckpointError>([&] {
                     CheckpointModel renamed(AdamWOptions{}, DType::float32, 3, "ln.other");
                     load_values(file, renamed.store);
                   }),
                   "ln.other"));
  CheckpointModel wider(AdamWOptions{}, DType::float64);
  REQUIRE(contains(error_message<CheckpointError>([&] { load_values(file, wider.store); }), path));
  ParameterStore fewer;
  fewer.add("wte.weight", {5, 3}, init::constant(0));
  fewer.seal();
  REQUIRE(contains(error_message<CheckpointError>([&] { load_values(file, fewer); }), "3 tensors"));
  CheckpointModel sgd(SgdOptions{.momentum = 0.9});
  REQUIRE(contains(error_message<CheckpointError>([&] { load_optimizer(file, 7, sgd.optimizer); }), "momentum"));
}

TEST_CASE("a checkpoint without one of its sections is rejected, naming the section") {
  const TemporaryFolder folder;
  CheckpointModel model;
  const Sections all = sections_of(save(folder, model, some_state()));
  REQUIRE(all.size() == 7);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Sections fewer = all;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    write_sections(folder / "fewer.maki", fewer);
    REQUIRE(
        contains(error_message<CheckpointError>([&] { load_everything(folder / "fewer.maki", model); }), all[i].first));
  }
}

TEST_CASE("a forged section with a valid checksum causes a CheckpointError or, at worst, different numbers") {
  const TemporaryFolder folder;
  CheckpointModel model;
  const Sections good = sections_of(save(folder, model, some_state()));
  int refused = 0, tried = 0;
  const auto attempt = [&](std::size_t section, std::string bytes) {
    Sections forged = good;
    forged[section].second = std::move(bytes);
    std::filesystem::remove(folder / "forged.maki");
    write_sections(folder / "forged.maki", forged);
    ++tried;
    refused += !error_message<CheckpointError>([&] { load_everything(folder / "forged.maki", model); }).empty();
  };
  for (std::size_t section = 0; section < good.size(); ++section) {
    const std::string& name = good[section].first;
    const std::string& bytes = good[section].second;
    if (name != "config" && name != "state" && name != "tensors") continue;
    INFO("section " << name);
    // Every byte of the numbers; every seventh of text and names.
    const std::size_t stride = name == "state" ? 1 : 7;
    for (std::size_t at = 0; at < bytes.size(); at += stride) {
      for (const int mask : {0x01, 0x80, 0xFF}) {
        std::string other = bytes;
        other[at] = static_cast<char>(other[at] ^ mask);
        INFO("byte " << at << " with " << mask);
        attempt(section, other);
      }
    }
    for (std::size_t size = 0; size < bytes.size(); size += stride) attempt(section, bytes.substr(0, size));
    attempt(section, bytes + bytes);
    attempt(section, std::string(100000, '['));
    attempt(section, std::string(1000, '\xff'));
  }
  REQUIRE(tried > 500);
  REQUIRE(refused > tried / 2);
}

TEST_CASE("a state that no run can have is rejected") {
  const TemporaryFolder folder;
  CheckpointModel model;
  const auto said = [&](auto change) {
    CheckpointState state = some_state();
    change(state);
    const std::string path = save(folder, model, state, "odd.maki");
    return error_message<CheckpointError>([&] { read_state(ContainerReader(path)); });
  };
  REQUIRE(said([](CheckpointState&) {}).empty());
  REQUIRE_FALSE(said([](CheckpointState& s) { s.step = -1; }).empty());
  REQUIRE_FALSE(said([](CheckpointState& s) { s.vocab_size = 0; }).empty());
  REQUIRE_FALSE(said([](CheckpointState& s) { s.vocab_size = std::int64_t{1} << 40; }).empty());
  REQUIRE_FALSE(said([](CheckpointState& s) { s.best_possible_loss = std::nan(""); }).empty());
  const std::string range = "a number in section state is out of range";
  REQUIRE(contains(said([](CheckpointState& s) { s.characters = -1; }), range));
  REQUIRE(contains(said([](CheckpointState& s) { s.train_tokens = -1; }), range));
  REQUIRE(contains(said([](CheckpointState& s) { s.val_tokens = -1; }), range));
  REQUIRE(contains(said([](CheckpointState& s) { s.best_possible_loss = -0.5; }), range));
  const auto phase_from = [](std::int64_t start) {
    return [start](CheckpointState& s) { s.config.phases = {{start, 60, 0.1, 0.01, 0}}; };
  };
  REQUIRE(said(phase_from(6)).empty());
  REQUIRE(contains(said(phase_from(7)), "every phase of its configuration must start before its step 7"));
  REQUIRE_FALSE(said([](CheckpointState& s) { s.config.n_head = 3; }).empty());
  REQUIRE_FALSE(said([](CheckpointState& s) { s.config.n_layer = 0; }).empty());
}

TEST_CASE("an invalid corpus hash and a tensor name that is too long are rejected when writing") {
  const TemporaryFolder folder;
  CheckpointModel model;
  CheckpointState state = some_state();
  state.corpus_hash = "short";
  REQUIRE(contains(error_message<CheckpointError>([&] { save(folder, model, state); }), "short"));
  CheckpointModel named(AdamWOptions{}, DType::float32, 3, std::string(128, 'n'));
  REQUIRE(contains(error_message<CheckpointError>([&] { save(folder, named, some_state()); }), "nnn"));
  REQUIRE_FALSE(std::filesystem::exists(folder / "a.maki"));
}
