// The configuration on the command line: an option for every field, plus --preset and --config. A flag overrides the
// file, and the file overrides the preset. Also the options that several verbs have in common.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/app/command.h"
#include "train/run/config/config.h"

namespace maki {

/// Adds --threads; 0: the number that the process starts with.
void add_threads_option(const Command& command, std::int64_t& threads);
/// Adds --beam and --length-penalty, for models that translate.
void add_search_options(const Command& command, std::int64_t& beam_size, double& length_penalty);
/// Throws Error if this verb was given --length-penalty, but not a beam of several hypotheses.
void check_search(const Command& command, const char* verb, std::int64_t beam_size);

/// Adds --special, for verbs that encode `texts`, as the help calls them.
void add_special_option(const Command& command, const std::string& texts, bool& special);

/// Adds --force, for verbs that write a file or directory.
void add_force(const Command& command, bool& force);
/// Throws Error if --force was given without the option that names the output.
void check_force(const char* option, const std::string& out, bool force);

/// The group of train's help with what most runs need.
inline constexpr const char* kCommonOptions = "Common options";

/// What the values of a verb's fields are, where no option sets them.
enum class Unset {
  preset_or_file,  ///< those of --preset and --config, else defaults
  file,            ///< those of --config, else defaults
  planned,         ///< chosen by the verb
  stored,          ///< those of a run, so help shows no defaults
};

class ConfigFlags {
 public:
  /// Adds to a subcommand the options of the fields in `names`, or of all fields if `names` is empty, as the table of
  /// fields (config.h) describes them; and --preset and --config, if they may set what these leave `unset`.
  explicit ConfigFlags(const Command& command, const std::vector<std::string>& names = {},
                       Unset unset = Unset::preset_or_file);

  /// Applies what was given to `config`: the preset, then the file, then the flags; then fill_open_fields() sets what
  /// all of them left open. `default_preset` is used if there was no --preset; empty: no preset. Throws Error for an
  /// unknown preset, a file that cannot be read or is not valid, and a value that is not allowed.
  void apply(Config& config, const std::string& default_preset) const;
  /// Sets the fields that follow from others, and throws Error unless the configuration is valid and every option that
  /// was given has an effect with it.
  void complete(Config& config) const;
  /// Throws Error if an option that was given has no effect with this configuration.
  void require_effect(const Config& config) const;
  /// The names of the options that were given, such as "--n-layer"; "--bias" also for --no-bias.
  std::vector<std::string> given() const;
  /// The names of the fields that options set, such as "n_layer".
  std::vector<std::string> given_fields() const;
  /// Whether an option sets this field, or the file of --config, once it was applied.
  bool sets(std::string_view field) const;
  /// The file of --config, which the command reads; empty if it was not given.
  const std::string& config_file() const { return config_file_; }
  /// Whether --preset was given.
  bool has_preset() const { return !preset_.empty(); }

 private:
  struct Given {
    const Field* field;
    std::string text;
    std::vector<std::string> list;
  };
  void add(Given& given, bool shows_default);
  bool is_given(const Given& given) const { return command_.given(given.field->option()); }

  Command command_;
  std::vector<std::unique_ptr<Given>> given_;
  std::string preset_, config_file_;
  mutable std::vector<std::string> keys_;  // of that file, once it was applied
};

/// The names of all fields that describe a model, without those in `except`, and `others`.
std::vector<std::string> model_fields_and(const std::vector<std::string>& others,
                                          const std::vector<std::string>& except);

/// Sets the number of threads that the configuration asks for (0: leaves it as it is), and records in it what its bits
/// depend on: the SIMD target, and with precision bfloat16 whether AVX512_BF16 multiplies.
void use_threads(Config& config);

}  // namespace maki
