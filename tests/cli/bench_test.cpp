// maki bench: its numbers are consistent, a wrong result is never timed, and invalid options are rejected. No test
// depends on how fast anything is.
#include "train/app/verbs/bench.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "data/io/error.h"
#include "tests/catch.h"
#include "tests/cli/require_refused.h"
#include "tests/cli/small_run.h"
#include "train/app/bench/gemm_bench.h"
#include "train/app/bench/profile.h"
#include "train/app/bench/step_bench.h"
#include "train/run/config/models.h"

using namespace maki;
using namespace maki::tests;
using nlohmann::json;

namespace {

json bench_facts(const Arguments& arguments) {
  const Finished finished = run_maki(Arguments{"bench"} + arguments);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return json::parse(finished.out);
}

void require_positive(const json& facts, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    INFO(key);
    const double value = facts.at(key).get<double>();
    REQUIRE(std::isfinite(value));
    REQUIRE(value > 0);
  }
}

const Arguments kTiny = {"--n-layer",    "2", "--n-head",     "2",  "--n-embd", "16", "--block-size", "8",
                         "--batch-size", "3", "--vocab-size", "19", "--steps",  "2",  "--json"};
const Arguments kTinyGenerate = {"generate",     "--n-layer", "2",         "--n-head",     "2",  "--n-embd", "16",
                                 "--block-size", "8",         "--no-bias", "--vocab-size", "19", "--json"};

}  // namespace

TEST_CASE("bench measures a step: its numbers are positive, finite, and agree with each other") {
  const json facts = bench_facts({"--workload", "quickstart", "--steps", "2", "--json"});
  require_positive(facts, {"peak_gflop_per_second", "gflop_per_second", "share_of_peak", "ms_per_step",
                           "tokens_per_second", "peak_memory_bytes", "peak_gflop_per_second_of_one",
                           "multiply_add_gflop_per_second", "copy_gigabytes_per_second"});
  const auto value = [&](const char* key) { return facts.at(key).get<double>(); };
  REQUIRE(value("share_of_peak") == value("gflop_per_second") / value("peak_gflop_per_second"));
  // The peak is that of the units that compute the products.
  const bool tiles = facts.at("target") == "amx";
  REQUIRE(facts.at("product_unit") == (tiles ? "AMX tiles" : "multiply-adds"));
  if (!tiles) REQUIRE(value("peak_gflop_per_second") == value("multiply_add_gflop_per_second"));
  REQUIRE(facts.at("steps") == 2);
  const double tokens = 12 * 64, parameters = 65 * 128 + 4 * (12 * 128 * 128 + 2 * 128) + 128;
  REQUIRE(value("parameters") == parameters);
  REQUIRE(value("gflop_per_step") == Approx(1e-9 * tokens * (6 * parameters + 12 * 4 * 128 * 64)));
  REQUIRE(value("tokens_per_second") * value("ms_per_step") == Approx(1e3 * tokens));
  REQUIRE(value("gflop_per_second") * value("ms_per_step") == Approx(1e3 * value("gflop_per_step")));
  for (const char* const key : {"peak_gflop_per_second", "peak_gflop_per_second_of_one", "copy_gigabytes_per_second"})
    REQUIRE(value(key) < 1e6);  // no number of operations or bytes
  const json quartiles = facts.at("ms_per_step_quartiles");
  REQUIRE(quartiles.at(0).get<double>() <= value("ms_per_step"));
  REQUIRE(quartiles.at(1).get<double>() >= value("ms_per_step"));

  REQUIRE(value("peak_memory_bytes") > 4 * 4 * parameters);  // weights, gradients, two moments

  // The profile covers the whole step: the FLOP of its products are those of the convention, except that 6N also counts
  // the weights of the norms.
  double flop = 0;
  for (const json& row : facts.at("profile")) {
    REQUIRE(std::isfinite(row.at("ms").get<double>()));
    REQUIRE(row.at("calls").get<int>() > 0);
    REQUIRE(row.at("bytes").get<double>() >= 0);
    flop += row.at("flop").get<double>();
  }
  REQUIRE(flop == Approx(1e9 * value("gflop_per_step")).epsilon(0.005));
  for (const std::string pass : {"forward", "backward"}) {
    for (const std::string op : {"attention", "layer_norm", "linear_cross_entropy", "embedding"}) {
      INFO(op << " " << pass);
      REQUIRE(std::ranges::any_of(facts.at("profile"),
                                  [&](const json& row) { return row.at("op") == op && row.at("pass") == pass; }));
    }
  }
}

TEST_CASE("every kind of step is verified before it is timed") {
  Workload tiny{.config = {}, .vocab_size = 19};
  tiny.config.n_layer = tiny.config.n_head = 2;
  tiny.config.n_embd = 16;
  tiny.config.block_size = 8;
  tiny.config.batch_size = 3;
  fill_dependent_defaults(tiny.config);
  std::vector<Workload> kinds(7, tiny);
  kinds[1].config.dtype = DType::float64;
  kinds[2].config.dropout = 0.3;
  kinds[2].config.grad_accum = 2;
  kinds[3].config.tie_weights = false;
  kinds[3].config.label_smoothing = 0.1;
  kinds[4].config.optimizer = "sgd";
  kinds[5].config.activation = Activation::gelu_tanh;
  kinds[6].vocab_size = 65;  // its loss is strongly curved along the gradient
  kinds[6].config.n_layer = 1;
  kinds[6].config.n_head = 4;
  kinds[6].config.n_embd = 8;
  kinds[6].config.batch_size = 12;
  for (const Workload& kind : kinds) {
    StepBench bench(kind);
    bench.verify();
    bench.step();
    bench.verify();
    REQUIRE(bench.trainer().steps() == 1);
    // A gradient that is too large by a third in one tensor is detected.
    bench.trainer().tape().observe([&](const Tape::Observed& op) {
      if (!op.backward || op.name != std::string("embedding")) return;
      Tensor& gradient = bench.trainer().store().find("wte.weight").gradient_buffer();
      dispatch(gradient.dtype(), [&]<class T>() {
        for (T& x : gradient.values<T>()) x *= static_cast<T>(1.33);
      });
    });
    REQUIRE_THROWS_WITH(bench.verify(), ContainsSubstring("the gradient is wrong"));
    REQUIRE(bench.tokens_per_step() == 8 * kind.config.batch_size * kind.config.grad_accum);
  }
}

TEST_CASE("a gradient that is zero everywhere is right only where nothing can change the loss") {
  Workload tiny{.config = {}, .vocab_size = 1};
  tiny.config.n_layer = tiny.config.n_head = 2;
  tiny.config.n_embd = 16;
  tiny.config.block_size = 8;
  tiny.config.batch_size = 3;
  fill_dependent_defaults(tiny.config);
  StepBench constant(tiny);
  constant.verify();
  constant.step();
  constant.verify();
  tiny.vocab_size = 19;
  StepBench lost(tiny);
  lost.trainer().tape().observe([&](const Tape::Observed& op) {
    if (op.backward) std::ranges::fill(lost.trainer().store().gradients().values<float>(), 0.0f);
  });
  REQUIRE_THROWS_WITH(lost.verify(), ContainsSubstring("the gradient is 0") && ContainsSubstring("is wrong"));
  bench_facts({"--n-layer", "1", "--n-embd", "16", "--vocab-size", "1", "--steps", "1", "--json"});
  require_refused(run_maki({"bench", "--model", "encoder", "--n-layer", "1", "--vocab-size", "1"}), 2,
                  {"vocab_size: must be at least 2", "masked", "got 1"});
}

TEST_CASE("the profile leaves the rate of what has no amount empty") {
  Arguments tiny = kTiny;
  tiny.pop_back();  // no JSON
  std::istringstream lines(run_maki(Arguments{"bench"} + tiny).out);
  std::vector<std::size_t> fields;  // of ops that copy and do not compute
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("embedding")) continue;
    std::istringstream words(line);
    fields.push_back(static_cast<std::size_t>(std::distance(std::istream_iterator<std::string>(words), {})));
  }
  REQUIRE(fields == std::vector<std::size_t>{6, 6});  // all but the GFLOP/s, forward and backward
}

TEST_CASE("a profile that diverges leaves the trainer as it was") {
  Workload tiny{.config = {}, .vocab_size = 19};
  tiny.config.n_layer = tiny.config.n_head = 2;
  tiny.config.n_embd = 16;
  tiny.config.block_size = 8;
  tiny.config.batch_size = 3;
  fill_dependent_defaults(tiny.config);
  StepBench bench(tiny), other(tiny);
  ParameterStore& store = bench.trainer().store();
  const Tensor initial = store.values().clone();
  std::ranges::fill(store.values().values<float>(), NAN);
  store.mark_changed();
  REQUIRE_THROWS_AS(profile_steps(bench.trainer(), 1), DivergedError);
  std::ranges::copy(initial.values<float>(), store.values().data<float>());
  store.mark_changed();
  for (int i = 0; i < 3; ++i)
    REQUIRE(bench.trainer().step().value().loss == other.trainer().step().value().loss);  // nothing observes the tape
  const std::vector<ProfileRow> rows = profile_steps(bench.trainer(), 1);
  REQUIRE(std::ranges::count(rows, std::string("update"), &ProfileRow::pass) == 1);
}

TEST_CASE("bench measures the described model, and prints the result as text") {
  const Finished text = run_maki(Arguments{"bench"} + Arguments(kTiny.begin(), kTiny.end() - 1));
  INFO(text.err);
  REQUIRE(text.exit_code == 0);
  REQUIRE_THAT(text.err, ContainsSubstring("2 layers, 2 heads, width 16, 3 x 8 tokens, vocabulary of 19"));
  for (const char* word : {"GFLOP/s", "of the peak", "tokens per second", "attention", "update",
                           " ms (median of 2 steps; the middle half: ", " parameters and 24 tokens: "})
    REQUIRE_THAT(text.out, ContainsSubstring(word));
}

TEST_CASE("the workloads of bench are those of the published comparisons") {
  std::vector<std::int64_t> parameters;
  for (const std::string& name : workload_names()) {
    Config config;
    const std::int64_t vocab_size = apply_workload(config, name);
    ParameterStore store;
    make_model(config, vocab_size, Scope(store));
    parameters.push_back(store.multiplied_numel());
  }
  REQUIRE(workload_names() == std::vector<std::string>{"quickstart", "baby", "gpt2", "long", "microgpt"});
  REQUIRE(parameters == std::vector<std::int64_t>{795904, 10646784, 124439808 - 1024 * 768, 795904, 3552});
  // A table that is only looked up does not count.
  Config untied;
  const std::int64_t vocab_size = apply_workload(untied, "quickstart");
  untied.tie_weights = false;
  ParameterStore store;
  make_model(untied, vocab_size, Scope(store));
  REQUIRE(store.multiplied_numel() == parameters.front());
}

TEST_CASE("bench gemm measures products") {
  const json facts =
      bench_facts({"gemm", "13,64,32", "70,65,33", "--transpose", "TN", "--packed", "--threads", "1", "--json"});
  REQUIRE(facts.at("threads") == 1);
  require_positive(facts, {"multiply_add_gflop_per_second", "product_gflop_per_second"});
  if (facts.at("product_unit") == "multiply-adds")
    REQUIRE(facts.at("product_gflop_per_second") == facts.at("multiply_add_gflop_per_second"));
  REQUIRE(facts.at("products").size() == 2);
  for (const json& product : facts.at("products")) {
    require_positive(product, {"ms", "gflop_per_second", "share_of_peak"});
    REQUIRE(product.at("share_of_peak").get<double>() ==
            product.at("gflop_per_second").get<double>() / product.at("peak_gflop_per_second").get<double>());
    REQUIRE(product.at("peak_gflop_per_second") ==
            facts.at(product.at("on_tiles") == true ? "product_gflop_per_second" : "multiply_add_gflop_per_second"));
    REQUIRE(product.at("transpose") == "TN");
    REQUIRE(product.at("packed") == true);
  }
  const Finished text = run_maki({"bench", "gemm", "13,64,32", "8,8,8", "--transpose", "TN", "--threads", "1"});
  INFO(text.err);
  REQUIRE(text.exit_code == 0);
  REQUIRE((text.err.empty() || text.err.starts_with("warning: the middle half of the times lies between ")));
  REQUIRE_THAT(text.out, ContainsSubstring(", 1 thread: peak ") && ContainsSubstring("\n13,64,32                TN ") &&
                             ContainsSubstring("\n8,8,8                   TN "));
}

TEST_CASE("a wrong product is detected") {
  for (const char* transpose : {"NN", "NT", "TN", "TT"}) {
    for (const bool packed : {false, true}) {
      GemmBench small(parse_gemm_shape("19,33,70", transpose), packed);
      REQUIRE_THROWS_AS(small.verify(), std::logic_error);  // not computed yet, so the result is NaN
      small.run();
      small.verify();
      float& entry = small.c()[7 * 33 + 20];
      const float right = entry;
      entry = right + 1e-3f;
      REQUIRE_THROWS_WITH(small.verify("somebody"),
                          ContainsSubstring("somebody") && ContainsSubstring("row 7, column 20"));
      entry = std::nextafter(right, 2 * right);  // a different rounding is accepted
      small.verify();
      small.spoil();
      REQUIRE_THROWS_AS(small.verify(), std::logic_error);
    }
  }
  GemmBench large(parse_gemm_shape("300,200,50", "NT"));
  large.run();
  large.verify();
  for (std::int64_t i = 0; i < 300; ++i) large.c()[i * 200 + i % 7] += 0.5f;  // in 7 of the 200 columns
  REQUIRE_THROWS_AS(large.verify(), std::logic_error);
}

TEST_CASE("products of rounded operands are verified against sums of rounded operands") {
  for (const char* transpose : {"NN", "NT", "TN", "TT"}) {
    GemmBench rounded(parse_gemm_shape("19,33,70", transpose), false, Precision::bfloat16);
    GemmBench exact(parse_gemm_shape("19,33,70", transpose));
    rounded.run();
    rounded.verify();
    exact.run();
    std::copy_n(exact.c(), 19 * 33, rounded.c());
    REQUIRE_THROWS_AS(rounded.verify(), std::logic_error);
  }
  const json facts = bench_facts({"gemm", "8,8,8", "--precision", "bfloat16", "--json"});
  REQUIRE(facts.at("precision") == "bfloat16");
  const Finished wrong = run_maki({"bench", "gemm", "8,8,8", "--precision", "float16"});
  REQUIRE(wrong.exit_code == 2);
  REQUIRE_THAT(wrong.err, ContainsSubstring("must be float32 or bfloat16; got float16"));
}

TEST_CASE("if OpenMP binds threads to cores, all cores are still used") {
  const std::vector<std::string> gemm{"bench", "gemm", "8,8,8", "--json"};
  RunOptions bound;
  bound.environment = {"OMP_WAIT_POLICY", "OMP_NUM_THREADS", "OMP_PROC_BIND=true"};
  RunOptions free = bound;
  free.environment.pop_back();
  const Finished with = run_maki(gemm, bound), without = run_maki(gemm, free);
  INFO(with.err << without.err);
  REQUIRE(json::parse(with.out).at("threads") == json::parse(without.out).at("threads"));
}

TEST_CASE("bench generate measures tokens") {
  const json facts = bench_facts(kTinyGenerate);
  require_positive(facts, {"tokens_per_second", "ms_per_token", "weight_bytes", "read_gigabytes_per_second",
                           "ms_to_read_weights", "share_of_bandwidth", "peak_memory_bytes"});
  REQUIRE(facts.at("tokens_per_second").get<double>() * facts.at("ms_per_token").get<double>() == Approx(1e3));
  REQUIRE(facts.at("share_of_bandwidth").get<double>() ==
          Approx(facts.at("ms_to_read_weights").get<double>() / facts.at("ms_per_token").get<double>()));
  const double parameters = 19 * 16 + 2 * (12 * 16 * 16 + 2 * 16) + 16;
  REQUIRE(facts.at("weight_bytes").get<double>() == 4 * parameters);
  REQUIRE(facts.at("read_gigabytes_per_second").get<double>() * facts.at("ms_to_read_weights").get<double>() ==
          Approx(1e-6 * 4 * parameters));
  REQUIRE(facts.at("block_size") == 8);
  REQUIRE_THAT(
      run_maki(Arguments{"bench"} + kTinyGenerate + Arguments{"--steps", "1"}).err,
      ContainsSubstring("2 layers, 2 heads, width 16, context of 8 tokens, vocabulary of 19; initial weights"));
}

TEST_CASE("bench generate reads weights of 8 bits") {
  const json facts = bench_facts(kTinyGenerate + Arguments{"--weights", "int8"});
  REQUIRE(facts.at("weights") == "int8");
  // Blocks of 16 rows by 64 steps take 16 scales and 1,024 codes: 2 in the embedding of 19 rows; in each of 2 layers 3
  // of q, k and v, 1 of the projection and 4 of each matrix of the feed-forward network, of which one has 64 steps.
  REQUIRE(facts.at("weight_bytes") == (2 + 2 * (3 + 1 + 4 + 1)) * (64 + 1024));
}

TEST_CASE("bench compares teams of threads") {
  const json teams = bench_facts({"--n-layer", "1", "--n-embd", "32", "--batch-size", "2", "--steps", "2", "--threads",
                                  "3", "--scaling", "--json"})
                         .at("scaling");
  REQUIRE(teams.size() == 3);
  REQUIRE(teams.at(0).at("efficiency") == 1);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(teams.at(i).at("threads") == std::array{1, 2, 3}.at(i));
    require_positive(teams.at(i), {"ms_per_step", "efficiency", "share_of_peak"});
    REQUIRE(teams.at(i).at("share_of_peak") < 1e6);  // a share, and no number of operations
    const auto ms = [&](std::size_t team) { return teams.at(team).at("ms_per_step").get<double>(); };
    REQUIRE(teams.at(i).at("efficiency").get<double>() == Approx(ms(0) / ms(i) / static_cast<double>(i + 1)));
  }
}

TEST_CASE("bench rejects what it cannot measure: exit 2") {
  for (const Arguments& wrong : {Arguments{"gemm"},
                                 Arguments{"gemm", "1,2"},
                                 Arguments{"gemm", "0,2,3"},
                                 Arguments{"gemm", "1,2,3,4"},
                                 Arguments{"gemm", "1,2,x"},
                                 Arguments{"gemm", "-1,2,3"},
                                 Arguments{"gemm", "1,2,3", "--transpose", "XN"},
                                 Arguments{"gemm", "1,2,3", "--threads", "-1"},
                                 Arguments{"gemm", "1,2,3", "--thread", "1"},
                                 Arguments{"--preset", "gpt3"},
                                 Arguments{"--preset", "gpt2"},
                                 Arguments{"--workload", "gpt3"},
                                 Arguments{"--workload", "gpt2", "--preset", "quickstart"},
                                 Arguments{"--steps", "1", "gemm", "1,2,3"},
                                 Arguments{"--steps", "-1"},
                                 Arguments{"--steps", "x"},
                                 Arguments{"--vocab-size", "-1"},
                                 Arguments{"--vocab-size", "2000000"},
                                 Arguments{"--n-head", "3"},
                                 Arguments{"nonsense"},
                                 Arguments{"generate", "--steps", "-1"},
                                 Arguments{"generate", "--n-head", "3"}}) {
    const Finished finished = run_maki(Arguments{"bench"} + wrong);
    INFO(wrong.front() << " … " << wrong.back() << ": " << finished.err);
    REQUIRE(finished.exit_code == 2);
    REQUIRE(finished.out.empty());
    REQUIRE_THAT(finished.err, ContainsSubstring("maki: "));
  }
  const TemporaryFolder folder;
  require_refused(run_maki({"bench", "generate", "--config", folder.write("planned.toml", "ngram_prior = 6\n")}), 2,
                  {"ngram_prior: must be 0", "got 6"});
  for (const char* option : {"--preset", "--workload"}) {
    REQUIRE_THAT(run_maki({"bench", option, "quickstat"}).err,
                 ContainsSubstring("nearest") && ContainsSubstring("quickstart"));
  }
}
