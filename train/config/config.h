// The configuration: one table of fields drives flags, TOML files, help, the echo in a run directory and what a
// checkpoint stores. Precedence: flag > file > preset > default.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace maki {

/// A further phase of the learning-rate schedule: from step `start` on, with a warm-up of its own, to its horizon at
/// step `end`. The first phase is what the fields of the configuration say.
struct Phase {
  std::int64_t start = 0, end = 0;
  double learning_rate = 0, min_lr = 0;
  std::int64_t warmup_steps = 0;

  bool operator==(const Phase&) const = default;
};

/// The newest schema of a checkpoint's configuration, and the one that new runs use. A training field that is added
/// later raises it by one; see Field::since and docs/formats.md.
inline constexpr std::int64_t kSchema = 2;

struct Config {
  std::int64_t schema = kSchema;  ///< of the run's checkpoints: a run keeps the schema that it began with
  // Model.
  std::string model = "gpt";
  std::int64_t n_layer = 4, n_head = 4, n_embd = 128, block_size = 64;
  double dropout = 0;
  bool bias = true;  // the quick start reaches 1.893 nats with biases, 1.908 without (validation, mean of three seeds)
  bool tie_weights = true;
  std::string activation = "gelu", dtype = "float32";
  // Text.
  std::string tokenizer = "char", invalid_utf8 = "error";
  double val_fraction = 0.1;
  // Steps.
  std::int64_t batch_size = 12, grad_accum = 1, seed = 1337;
  double label_smoothing = 0, grad_clip = 1;
  std::string optimizer = "adamw";
  double learning_rate = 1e-3, min_lr = 1e-4, beta1 = 0.9, beta2 = 0.99, momentum = 0, weight_decay = 0.1;
  bool nesterov = false;
  std::string schedule = "cosine";
  std::int64_t warmup_steps = 100, lr_decay_steps = 0;  // 0: max_steps, see resolve()
  // The run.
  std::vector<std::string> corpus, include, exclude;
  std::string encoding, out, target;
  std::int64_t max_steps = 2000, threads = 0, eval_interval = 250, eval_batches = -1, checkpoint_interval = 250,
               keep_last = 3, log_interval = 10, patience = 5, sample_interval = 250;
  bool early_stop = true;
  // Training fields that most runs do not have, and that are written only where they are set.
  std::vector<Phase> phases;  ///< ascending
  std::string init_from;      ///< hash of the values that the run began with; empty: it drew its own
};

/// Training fields decide what is computed, are stored in the checkpoint and are fixed for the whole run; run fields
/// may change at every resume.
enum class FieldClass : std::uint8_t { training, run };

struct Field {
  using Member = std::variant<std::int64_t Config::*, double Config::*, bool Config::*, std::string Config::*,
                              std::vector<std::string> Config::*>;
  std::string name;  ///< the TOML key; the flag is --name with - for _
  FieldClass kind;
  Member member;
  std::string help;
  double low = 0, high = 0;          ///< of numbers, inclusive
  std::vector<std::string> choices;  ///< of strings; none: any
  bool flag = true;                  ///< false: written to config.toml, but no option
  std::int64_t since = 1;            ///< of training fields: the first schema that has it
  std::string absent = {};  ///< as the text of a flag: what its absence means in a checkpoint of an older schema

  std::string option() const;
  bool is_boolean() const { return std::holds_alternative<bool Config::*>(member); }
  bool is_list() const { return std::holds_alternative<std::vector<std::string> Config::*>(member); }
};

/// All fields but `corpus`, `phases` and `init_from`, in the order they are shown.
const std::vector<Field>& fields();
/// Throws, naming the nearest, when there is none.
const Field& find_field(std::string_view name);

/// Sets a field from the text of a flag; a list to this one entry. Throws with the rule and the value.
void set_field(Config& config, const Field& field, std::string_view text);
/// Sets a list.
void set_list(Config& config, const Field& field, std::vector<std::string> entries);
/// The value as TOML: canonical, reads back to the same.
std::string field_text(const Config& config, const Field& field);
/// The phases as TOML, likewise.
std::string phases_text(const Config& config);

void copy_field(const Field& field, const Config& from, Config& to);

std::vector<std::string> preset_names();
/// Overwrites what the preset says. Throws, naming the nearest, for an unknown one.
void apply_preset(Config& config, const std::string& name);
/// No configuration is larger.
inline constexpr std::size_t kMostConfigBytes = std::size_t{64} << 10;
/// Overwrites what the TOML text says; `name` is for messages. Unknown keys are errors, and so is a text that is too
/// large or that could be nested too deeply.
void apply_toml(Config& config, std::string_view text, const std::string& name);

/// Fills in what defaults to another field (lr_decay_steps).
void resolve(Config& config);
/// The rules between fields, and check_paths(). Throws.
void validate(const Config& config);
/// Throws unless every path is UTF-8: TOML can hold no other. CorpusError for that of a corpus.
void check_paths(const Config& config);

/// config.toml: every field with its help. check_paths() first. Throws where the list of sources makes it too large to
/// be read again.
std::string to_toml(const Config& config);
/// The training fields alone, one line each, in the canonical form of `config.schema`: what a checkpoint stores. Schema
/// 1 has no `schema` line; a field is written only in the schemas that have it.
std::string training_toml(const Config& config);
/// Reads what training_toml() wrote, under this schema or an older one. Throws CheckpointError where the schema is
/// newer than this build, Error where the text is not in canonical form.
Config read_training_toml(std::string_view text);

/// The phases that a checkpoint of this step records: those that have begun before it. A phase that is added later
/// therefore changes no byte of the checkpoints up to its start.
std::vector<Phase> phases_before(const Config& config, std::int64_t step);
/// The last phase; the first is what the fields say.
Phase last_phase(const Config& config);
/// Does the schedule come to an end, at the last phase's? constant and inverse_sqrt do not.
bool schedule_ends(const Config& config);

struct Difference {
  std::string name, first, second;
};
/// Training fields in which two configurations differ.
std::vector<Difference> training_differences(const Config& a, const Config& b);

}  // namespace maki
