// The configuration on the command line: an option for every field, --preset and --config, in the order of precedence.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/config.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace maki {

/// An option that takes a number, read as those of the table are: the same range of notations, the same sentences.
CLI::Option* add_number(CLI::App& command, const std::string& option, std::int64_t& value, double low, double high,
                        const std::string& help);
/// Without a default: `help` says what holds when it is not given.
CLI::Option* add_number(CLI::App& command, const std::string& option, std::optional<std::int64_t>& value, double low,
                        double high, const std::string& help);
CLI::Option* add_number(CLI::App& command, const std::string& option, double& value, double low, double high,
                        const std::string& help);

class ConfigFlags {
 public:
  /// Adds the options to a sub-command, as the table of fields describes them: of the fields named, or of all.
  explicit ConfigFlags(CLI::App& command, const std::vector<std::string>& names = {});

  /// Overlays what was given on `config`: preset, then file, then flags. `default_preset` serves when none was named;
  /// empty: none does.
  void apply(Config& config, const std::string& default_preset) const;
  /// The options that were given: "--n-layer".
  std::vector<std::string> given() const;
  bool has_preset() const { return !preset_.empty(); }

 private:
  struct Given {
    const Field* field;
    std::string text;
    std::vector<std::string> list;
    CLI::Option* option = nullptr;
  };
  std::vector<std::unique_ptr<Given>> given_;
  std::string preset_, config_file_;
};

}  // namespace maki
