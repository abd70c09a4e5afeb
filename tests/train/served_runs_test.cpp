// What `maki serve` says of its runs.
#include "train/app/serve/served_runs.h"

#include <nlohmann/json.hpp>

#include "tests/train/every_small_model.h"
#include "tests/train/small_checkpoint.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("of the runs that are served, those can generate that predict a next token without reading a source") {
  for (const SmallModel& small : every_small_model()) {
    INFO(small.name);
    const TemporaryFolder folder;
    Unsynced fs;
    const RunDirectory run(folder / "run", fs);
    run.create();
    write_container(fs, run.checkpoint_file(10), {});
    write_bytes(run.config_file(), to_toml(small.config));
    const auto facts = nlohmann::json::parse(ServedRuns(folder.path()).runs_json()).at(0);
    REQUIRE(facts.at("name") == "run");
    REQUIRE(facts.at("kind") == small.config.model);
    REQUIRE(facts.at("task") == small.config.task);
    REQUIRE(facts.at("loss_per_text") == (small.config.task == "classify"));
    REQUIRE(facts.at("can_generate") == (small.config.task == "next_token"));
    REQUIRE(facts.at("can_look_inside") == (small.config.model != "seq2seq"));
    REQUIRE((facts.at("width") == 8 && facts.at("n_layer") == 2 && facts.at("n_head") == 2));
  }
}
