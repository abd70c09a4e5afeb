// Norms of layers, and how much a step changes them.
#include "train/loop/layer_changes.h"

#include <algorithm>
#include <cmath>

#include "tests/catch.h"
#include "tests/files.h"
#include "train/run/metrics.h"

using namespace maki;

TEST_CASE("the layer of a parameter ends at the first number, or at the first dot") {
  REQUIRE(layer_of("h.0.attn.c_attn.weight") == "h.0");
  REQUIRE(layer_of("decoder.h.11.ln_1.weight") == "decoder.h.11");
  REQUIRE(layer_of("h.10") == "h.10");
  REQUIRE(layer_of("wte.weight") == "wte");
  REQUIRE(layer_of("prior") == "prior");
}

TEST_CASE("norms are those of all elements, updates are relative to them, and frozen parameters have none") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    ParameterStore store(dtype);
    const Parameter& a = store.add("h.0.a", {100, 100}, init::constant(0.5));  // more elements than are sampled
    store.add("h.0.b", {4}, init::constant(1));
    store.add("frozen", {3}, init::constant(2), ParamGroup::frozen);
    store.add("zero", {3}, init::constant(0));
    store.seal();
    LayerChanges changes(store);
    changes.before_step();
    Tensor values = a.value();
    dispatch(dtype, [&]<class T>() { std::ranges::fill(values.values<T>(), static_cast<T>(0.51)); });
    store.mark_changed();
    const std::vector<LayerReport> layers = changes.after_step();
    REQUIRE(layers.size() == 2);
    REQUIRE(layers[0].layer == "h.0");
    REQUIRE(std::abs(layers[0].norm - std::sqrt(100 * 100 * 0.51 * 0.51 + 4)) < 1e-4);
    REQUIRE(std::abs(layers[0].update * layers[0].norm - 100 * 0.01) < 1e-4);
    REQUIRE(layers[1].layer == "zero");
    REQUIRE(layers[1].norm == 0);
    REQUIRE(layers[1].update == 0);
  }
}

TEST_CASE("layers and remarks are read again as they were written") {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  {
    MetricsFile metrics(path, -1);
    metrics.on_remark({Remark::Kind::plan, 0, "two\nlines"});
    metrics.on_remark({Remark::Kind::session, 0, "2 threads"});
    metrics.on_layers(10, {{"wte", 1.5, 0.25}, {"h.0", 2, 0}});
    metrics.on_remark({Remark::Kind::end, 10, "finished"});
  }
  const RunHistory history = read_history(path);
  REQUIRE(history.remarks().size() == 3);
  REQUIRE(history.remarks()[0].text == "two\nlines");
  REQUIRE(history.remarks()[2].kind == Remark::Kind::end);
  REQUIRE(history.remarks()[2].step == 10);
  REQUIRE(history.layers().size() == 1);
  REQUIRE(history.layers()[0].step == 10);
  REQUIRE(history.layers()[0].layers.size() == 2);
  REQUIRE(history.layers()[0].layers[0].layer == "wte");
  REQUIRE(history.layers()[0].layers[0].norm == 1.5);
  REQUIRE(history.layers()[0].layers[0].update == 0.25);
}
