// The configuration of a run. One table of fields, fields(), is behind the command-line options, their help, TOML
// files, the config.toml of a run directory and the configuration that a checkpoint stores. Precedence: option > file >
// preset > default.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "autograd/recording.h"
#include "nn/transformer_config.h"

namespace maki {

/// A phase of the learning-rate schedule after the first: starts at step `start` with its own warmup and ends at step
/// `end`. The first phase is given by the fields of the configuration.
struct Phase {
  std::int64_t start = 0, end = 0;
  double learning_rate = 0, min_lr = 0;
  std::int64_t warmup_steps = 0;

  bool operator==(const Phase&) const = default;
};

/// The schema of the configuration in a checkpoint. The first training field, or choice of one, that is added after a
/// release raises it by one: see docs/formats.md.
inline constexpr std::int64_t kConfigSchema = 1;

/// The options of a model, with the sizes of the quick start and as vocab_size the limit of a vocabulary that is
/// learned from the text; and what else a run needs.
struct Config : TransformerConfig {
  // Biases: the quick start reaches 1.893 nats with them, 1.908 without (validation, mean of three seeds).
  Config() : TransformerConfig{.n_layer = 4, .n_head = 4, .n_embd = 128, .block_size = 64, .vocab_size = 1024} {}

  // Model.
  std::string model = "gpt", task = "next_token", attention = "softmax";
  std::int64_t memory = 0;
  bool share_vocabulary = false, respect_documents = false;
  double ngram_lr_factor = 30;
  DType dtype = DType::float32;
  Precision precision = Precision::float32;
  std::int64_t lora_rank = 0;
  double lora_alpha = 0;
  std::vector<std::string> lora_targets, freeze;  // patterns of the names of parameters
  // Text.
  std::string tokenizer = "char", normalize = "none", invalid_utf8 = "error";
  double val_fraction = 0.1;
  // Steps.
  std::int64_t batch_size = 12, grad_accum = 1, seed = 1337;
  double label_smoothing = 0, grad_clip = 1;
  std::string optimizer = "adamw";
  double learning_rate = 1e-3, min_lr = 1e-4, beta1 = 0.9, beta2 = 0.99, momentum = 0, weight_decay = 0.1,
         muon_lr = 0.02;
  bool nesterov = false;
  std::string schedule = "cosine";
  std::int64_t warmup_steps = 100, lr_decay_steps = 0;  // 0: max_steps, see fill_dependent_defaults()
  // The run.
  std::vector<std::string> corpus, include, exclude, teacher;
  double teacher_weight = 0.5;
  std::string encoding, json_field, document_separator, out, target;
  bool documents = false;
  std::int64_t max_steps = 2000, threads = 0, eval_interval = 250, eval_batches = -1, checkpoint_interval = 250,
               keep_last = 3, log_interval = 10, patience = 5, sample_interval = 250;
  bool early_stop = true, counting = true, tensorboard = false;
  // Training fields that most runs leave empty. They are not in fields() and are written only if they are set.
  std::vector<Phase> phases;  ///< in ascending order of `start`
  std::string init_from;      ///< hash of the values that the run began with; empty: it drew random ones
  std::string taught_by;      ///< teacher_weight and the hashes of the values of the teachers; empty: there are none
  /// The arithmetic of its steps (docs/decisions/080-equal-bits.md), or several in the order of last use, as in "fused,
  /// amx"; empty: "fused" alone. No difference between training fields: it may change on resume.
  std::string arithmetic;
  /// The names of the fields that a preset left open and nothing has set since, for fill_open_fields().
  std::set<std::string, std::less<>> open;
};

/// Training fields decide what is computed, are stored in the checkpoint and are fixed for the whole run; those of
/// class `model` also decide what the weights mean. Those of class `teachers` are fixed as well, by taught_by, but not
/// stored in the checkpoint, because teachers may move. Run fields may change at every resume.
enum class FieldClass : std::uint8_t { model, training, teachers, run };

/// A field has an effect only if the field `needs` has one of these values, or with `except` none of them.
struct Condition {
  std::string needs;  ///< the name of a field, or kCorpus: then the values are those of corpus_kind()
  std::vector<std::string> values;
  bool except = false;
  /// Whether a value without an effect is refused wherever it comes from; else only one that a user gives.
  bool always = false;

  bool allows(std::string_view value) const;
};
inline constexpr std::string_view kCorpus = "corpus";

/// A member whose values have names, such as one of an enum.
struct NamedMember {
  std::string (*name)(const Config& config);
  /// Throws Error, which begins with the name of the field, if no value has this name.
  void (*set)(Config& config, const std::string& field, std::string_view name);
};

struct Field {
  using Member = std::variant<std::int64_t Config::*, double Config::*, bool Config::*, std::string Config::*,
                              std::vector<std::string> Config::*, NamedMember>;
  /// What a member contains; of a NamedMember, the name of its value.
  using Value = std::variant<std::int64_t, double, bool, std::string, std::vector<std::string>>;
  std::string name;  ///< the TOML key; the option is option()
  FieldClass kind;
  Member member;
  std::string help;
  std::string type;                        ///< what stands for the value in help, such as RATE; empty for a boolean
  double low = 0, high = 0;                ///< the range of a number, inclusive
  std::vector<std::string> choices = {};   ///< the allowed texts; empty: any that can be set
  bool flag = true;                        ///< false: there is no command-line option; the field is only in TOML files
  std::string usual = {};                  ///< what help says instead of the default in Config; empty: nothing
  std::vector<Condition> conditions = {};  ///< all of which must hold for the field to have an effect
  std::optional<std::string> off = {};     ///< the value that asks for nothing, and is accepted without an effect

  std::string option() const;  ///< "--" and the name, with - for _
  Value value(const Config& config) const;
  bool is_training() const { return kind == FieldClass::model || kind == FieldClass::training; }
  bool is_boolean() const { return std::holds_alternative<bool Config::*>(member); }
  bool is_text() const {
    return std::holds_alternative<std::string Config::*>(member) || std::holds_alternative<NamedMember>(member);
  }
  bool is_list() const { return std::holds_alternative<std::vector<std::string> Config::*>(member); }
};

/// All fields except `corpus`, `phases`, `init_from`, `taught_by` and `arithmetic`, in the order in which they are
/// shown and written. Thread safety: may be called from any thread.
const std::vector<Field>& fields();
/// The names of all fields of class `model`.
std::vector<std::string> model_field_names();
/// The field of this name. Throws Error, which suggests the nearest name, if there is none.
const Field& find_field(std::string_view name);

/// Sets a field, which is then not open, from the text of its option; a list becomes this one entry, or empty if the
/// text is. Throws Error if the value is not allowed, with a message that has the rule and the value; the field then
/// keeps the value that it had before.
void set_field(Config& config, const Field& field, std::string_view text);
/// Requires: field.is_list().
void set_list(Config& config, const Field& field, std::vector<std::string> entries);
/// The value of a field as canonical TOML, which is parsed back to the same value.
std::string field_text(const Config& config, const Field& field);
/// The value of a field as the text of its option.
std::string option_text(const Config& config, const Field& field);
/// The phases of a configuration as canonical TOML, which is parsed back to the same phases.
std::string phases_text(const Config& config);

/// The field of `to` is then not open. Requires: that of `from` is not.
void copy_field(const Field& field, const Config& from, Config& to);

std::vector<std::string> preset_names();
/// Overwrites the fields that the preset sets, and calls leave_open(). Throws Error, which suggests the nearest name,
/// if there is no such preset.
void apply_preset(Config& config, const std::string& name);
/// The size limit of a configuration in TOML, which has a few KiB. apply_toml() refuses larger ones, and to_toml()
/// writes none.
inline constexpr std::size_t kMaxConfigBytes = std::size_t{64} << 10;
/// Overwrites the fields that the TOML text sets, and returns its keys; `name` is the name of the text in messages.
/// Throws Error, naming the line, unless the text is valid TOML with known keys and allowed values (some fields may
/// then be overwritten), and Error if it has more than kMaxConfigBytes bytes or 2,048 dots, with which its tables might
/// be nested too deeply for the parser.
std::vector<std::string> apply_toml(Config& config, std::string_view text, const std::string& name);

/// Leaves those fields open whose default depends on the model: task, norm_order, positions, attention, memory; or on
/// the optimizer: momentum.
void leave_open(Config& config);
/// Sets those of these fields that are still open. Throws Error for an unknown model or optimizer.
void fill_open_fields(Config& config);
/// Sets the fields whose default is the value of another field: lr_decay_steps = max_steps if it is 0. Throws Error if
/// both are 0.
void fill_dependent_defaults(Config& config);
/// Throws Error unless the values of the fields are consistent with each other, and whatever check_paths() throws. (The
/// range of each single value was checked when it was set.) Requires: no field is open (fill_open_fields()).
void validate(const Config& config);
/// Throws unless all paths, patterns and the encoding are valid UTF-8, because TOML cannot represent other text:
/// CorpusError for the path of a corpus, Error for the others.
void check_paths(const Config& config);

/// The content of config.toml: every field, with its help as a comment. Throws what check_paths() throws, and Error if
/// the list of sources makes the text too large to be read again.
std::string to_toml(const Config& config);
/// The configuration that a checkpoint stores, in its canonical form: kConfigSchema and the training fields, one line
/// each.
std::string training_toml(const Config& config);
/// Parses what training_toml() wrote; run fields and the corpus have their defaults. Throws CheckpointError for another
/// schema, and Error if the text is not in canonical form.
Config read_training_toml(std::string_view text);

/// The phases that a checkpoint of this step records: those that start before it. Adding a phase therefore changes no
/// byte of the checkpoints up to its start.
std::vector<Phase> phases_before(const Config& config, std::int64_t step);
/// The last phase of the schedule, which is the first one, given by the fields, if `phases` is empty.
Phase last_phase(const Config& config);
/// The first step whose weights have learned something, so that its checkpoint may be the best of the run: 0 if the run
/// begins with the weights of another one or on a count of n-grams, 1 if it begins with random weights.
std::int64_t first_learned_step(const Config& config);
/// In place of a run, the name of a teacher that counts what follows in many contexts of the text.
inline constexpr std::string_view kCountingTeacher = "@counts";
/// Whether a name in `teacher` is the path of another run.
bool is_run(const std::string& teacher);
/// The number of steps of a teacher that the run trains itself, "@own:2000"; nullopt for other teachers.
/// Throws Error for any other name that begins with @.
std::optional<std::int64_t> own_teacher_steps(const std::string& teacher);
/// Whether one of the teachers is of that kind.
bool has_own_teachers(const Config& config);
bool has_counting_teacher(const Config& config);
/// Whether the learning rate stops changing at the end of the last phase: see LrDecay::ends.
bool schedule_ends(const Config& config);

struct FieldDifference {
  std::string name, first, second;
};
/// The training fields in which two configurations differ, with both values as TOML (init_from and taught_by without
/// quotes).
std::vector<FieldDifference> training_differences(const Config& a, const Config& b);

}  // namespace maki
