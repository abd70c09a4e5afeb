// Configuration files, and the configuration in a checkpoint, which begins with its schema.
#include "train/run/config/config.h"

#include "data/io/error.h"
#include "tests/fuzz/targets.h"

namespace maki::fuzz {
namespace {

// Wrong values are usage errors; another schema and the path of a corpus that cannot be represented are not.
bool expects(const Error&) { return true; }

// Whatever it says about these, it is reported as an error.
template <class Action>
void allow_errors(const Action& action) {
  try {
    action();
  } catch (const Error&) {  // such as values that contradict each other
  }
}

void read_as_config(const std::string& bytes) {
  if (bytes.starts_with("schema")) {
    if (training_toml(read_training_toml(bytes)) != bytes) throw std::logic_error("a configuration is not canonical");
    return;
  }
  Config config;
  apply_toml(config, bytes, "config.toml");
  allow_errors([&] {
    Config checked = config;
    fill_open_fields(checked);
    fill_dependent_defaults(checked);
    validate(checked);
  });
  Config again;
  apply_toml(again, to_toml(config), "config.toml");
  if (to_toml(again) != to_toml(config)) throw std::logic_error("a configuration is not read as it was written");
}

std::vector<std::string> config_seeds() {
  std::vector<std::string> texts = {training_toml(Config{})};
  for (const char* const run : {"gpt", "seq2seq", "lora"})
    texts.push_back(source_file(fmt::format("tests/golden/{}/config.toml", run)));
  texts.emplace_back("corpus = ['a.txt', \"\\u732b\"]\nlearning_rate = 1e-3\nmax_steps = 20\n");
  return texts;
}

}  // namespace

const Target kConfig = {"config", read_as_config, expects, config_seeds};

}  // namespace maki::fuzz
