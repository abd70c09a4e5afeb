// What `maki inspect` shows of measurements and configurations, as tables and for programs.
#include "train/app/verbs/measured.h"

#include <nlohmann/json.hpp>

#include "tests/catch.h"

using namespace maki;

TEST_CASE("a table of measurements has a row for each step, with empty cells for what was not measured") {
  RunHistory history;
  REQUIRE(measurements_csv(history) ==
          "step,loss,learning_rate,grad_norm,tokens,tokens_per_second,elapsed_seconds,train_loss,val_loss,"
          "val_accuracy\n");
  history.on_eval({.step = 0, .train_loss = 3, .val_loss = 3.5}, true);
  history.on_log({.step = 2, .loss = 1.5, .learning_rate = 0.00001, .grad_norm = 0.25, .tokens = 96}, 1000, 2.5);
  history.on_log({.step = 4, .loss = 1.25, .learning_rate = 0.02, .grad_norm = 0.5, .tokens = 192}, 2000, 4.5);
  history.on_eval({.step = 4, .train_loss = 1.125, .val_loss = 1.375, .val_accuracy = 0.625}, true);
  history.on_eval({.step = 10, .train_loss = 1}, true);
  // At the end the whole text is measured as well, which cannot be compared with the other rows.
  history.on_eval({.step = 12, .train_loss = 1, .val_loss = 1.75, .sampled_val_loss = 1.25, .sampled_val_share = 0.1},
                  true);
  const std::string text = measurements_csv(history);
  REQUIRE(text.substr(text.find('\n') + 1) ==
          "0,,,,,,,3,3.5,\n"
          "2,1.5,1e-5,0.25,96,1000,2.5,,,\n"
          "4,1.25,0.02,0.5,192,2000,4.5,1.125,1.375,0.625\n"
          "10,,,,,,,1,,\n"
          "12,,,,,,,1,1.25,\n");
}

TEST_CASE("the training fields of a configuration as JSON, with the weights and the phases that it begins with") {
  Config config;
  config.n_layer = 3;
  config.threads = 2;
  const Json plain = training_json(config);
  REQUIRE(plain.at("n_layer") == 3);
  REQUIRE(plain.at("bias") == config.bias);
  for (const char* const name : {"threads", "init_from", "phases"}) REQUIRE_FALSE(plain.contains(name));
  config.init_from = "a hash";
  config.phases = {{.start = 5, .end = 9, .learning_rate = 0.5, .min_lr = 0.25, .warmup_steps = 2}};
  const Json facts = training_json(config);
  REQUIRE(facts.at("init_from") == "a hash");
  REQUIRE(facts.at("phases") ==
          Json::array({{{"start", 5}, {"end", 9}, {"learning_rate", 0.5}, {"min_lr", 0.25}, {"warmup_steps", 2}}}));
}
