// What the verbs that read a trained model have in common: the options that choose it, and texts for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/unknown_characters.h"
#include "train/app/command.h"
#include "train/app/progress.h"
#include "train/loop/best_candidates.h"
#include "train/loop/online_learner.h"
#include "train/run/loaded_model.h"
#include "train/run/run_directory.h"

namespace maki {

/// The files of a run directory, or the .maki file, as inputs of a command (OutputPath). Other files in the directory
/// may be outputs.
std::vector<std::string> inputs_of_run(const std::string& run_or_file);

/// The value of --weights if it is not given.
inline constexpr const char* kTrainedWeights = "trained";
/// Adds --weights, for verbs that only read a model.
void add_weights_option(const Command& command, std::string& weights);
/// Throws Error unless the text is "trained" or "int8".
WeightNumbers parse_weights(const std::string& weights);

/// The model that the command line names, and how it reads.
struct ReadingOptions {
  std::string run, checkpoint, unknown = "error", weights = kTrainedWeights;
  std::vector<std::string> with;
  std::int64_t threads = 0;
  bool special = false, json = false;

  /// Adds RUN, which `what` describes.
  void add_run(const Command& command, const std::string& what);
  /// Adds --unknown, --special, --checkpoint and --threads, and --json unless its help is empty. `texts` is what the
  /// help calls the texts that the model reads.
  void add_options(const Command& command, const std::string& texts, const std::string& json_help = "");

  /// Adds --with, for verbs that call average().
  void add_with(const Command& command);

  /// The policy for characters that the vocabulary lacks. Throws Error for an unknown one.
  Unknown policy() const { return parse_unknown_policy(unknown); }
  /// Sets the number of threads and loads the model of the chosen checkpoint. Throws Error for an unknown policy or
  /// form of weights, and what choose_checkpoint() and LoadedModel throw.
  LoadedModel open() const;
  /// Loads the models of --with, if there are any, and makes `loaded` predict with the means of their probabilities and
  /// its own. Returns MeanOfModels::other_counts(). Throws as open() and MeanOfModels do.
  std::vector<std::string> average(LoadedModel& loaded) const;
  std::vector<std::string> inputs() const { return inputs_of_run(run); }
};

/// Adds --checkpoint, for verbs that use the best checkpoint of a run unless another one is chosen; empty: not given.
void add_checkpoint_option(const Command& command, std::string& checkpoint);
/// The path of a checkpoint, by find_checkpoint() of train/run/run_directory.h, whose notes about missing or damaged
/// checkpoints are printed to stderr. A .maki file is returned as it is. In a run directory it is `choice` ("best",
/// "last" or a step); if that is empty, the best, else the last, else the newest. Throws Error if there is none,
/// CheckpointError if it cannot be read.
std::string choose_checkpoint(const std::string& run_or_file, const std::string& choice);
/// What `read` makes of the path of a ChosenCheckpoint. Before another one takes the place of one that `read` finds to
/// be damaged, stderr says so. Throws as ChosenCheckpoint::read() does.
template <class Read>
auto read_checkpoint(const std::string& run_or_file, const std::string& choice, const Read& read,
                     Preferred preferred = Preferred::best) {
  std::vector<std::string> notes;
  std::size_t said = 0;
  return ChosenCheckpoint(run_or_file, choice, notes, preferred).read([&](const std::string& path) {
    for (said = std::min(said, notes.size()); said < notes.size(); ++said) warn(notes[said]);
    return read(path);
  });
}
/// The path of the checkpoint that read_checkpoint() chooses so that a model can be loaded from it: where others may
/// take its place, its values are read as well, for what loads them long after something was told of it.
std::string choose_model(const std::string& run_or_file, const std::string& choice);

/// The tokenizer of a run directory (of its best checkpoint, else the last) or of a .maki file; else that of
/// read_tokenizer(). Of a model that translates with two vocabularies it is that of the targets, which is said on
/// stderr, or with `of_sources`, which only some verbs can set, that of the sources. Throws CheckpointError or Error
/// for a checkpoint that cannot be read or found, Error if there is only one vocabulary and `of_sources` is set, and
/// what read_tokenizer() throws.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path, std::optional<bool> of_sources = {});

/// The absolute paths of the checkpoints of these runs, chosen as if no choice was made; "@own:N" remains. Throws what
/// choose_checkpoint() and own_teacher_steps() throw.
std::vector<std::string> teacher_checkpoints(const std::vector<std::string>& runs);

/// Throws Error, with the advice what to do, unless the model can do what the verb is for. `cannot`: "fills no masks".
void require_ability(const LoadedModel& loaded, bool has_it, const char* cannot, const char* advice);
/// Throws CheckpointError unless all numbers that the model gave are finite; `what` are these, such as "logits".
void require_finite(const LoadedModel& loaded, const Tensor& numbers, const char* what);

/// The text without the characters that the vocabulary lacks, or with a replacement for them; stderr tells how many
/// there were. `name` is what messages call the text, such as "prompt". Throws CorpusError, whose message begins with
/// the name, if the text is not UTF-8 (with the offset of the first invalid byte) or known_text() rejects it.
std::string encodable_text(const Tokenizer& tokenizer, std::string_view text, std::string_view name, Unknown policy);

/// Reads the next line of standard input or of a text, without its end (a newline, or a carriage return and a newline).
/// False after the last one. Throws CorpusError if standard input cannot be read; the beginning of a line is then lost.
bool next_line(std::istream& input, std::string& line);

struct MaskedText {
  std::vector<std::int32_t> ids;    ///< of the text; the id of a mask is the first after those of the tokenizer
  std::vector<std::int32_t> masks;  ///< the indices of the masks
};
/// The ids of a text in which [MASK] (kMask in data/dataset/masking.h) stands for one token. What is around the masks
/// is reduced to what the tokenizer can encode, as by encodable_text(). A text without [MASK] has no masks. For a
/// tokenizer whose words begin with the space before them, a space before [MASK] is part of what is masked.
MaskedText encode_masked(const Tokenizer& tokenizer, std::string_view text, std::string_view name, Unknown policy);
/// Throws CorpusError, whose message begins with the name, if the model has learned positions and not so many: for the
/// tokens of a text, and those that it `adds`.
void require_positions(const LoadedModel& loaded, std::string_view name, std::ptrdiff_t tokens,
                       std::ptrdiff_t adds = 0);
/// For each mask of a text the `top` most probable tokens. Throws CheckpointError if a logit is not finite. Requires:
/// the model is an encoder.
std::vector<std::vector<Candidate>> fill_masks(const LoadedModel& loaded, const MaskedText& text, std::int64_t top);

/// The ids of a text that stands alone, such as a sentence to translate; none of an empty text. Throws what
/// encodable_text() throws.
std::vector<std::int32_t> encode_line(const Tokenizer& tokenizer, const std::string& text, std::string_view name,
                                      Unknown policy);
/// The ids of a text for a model that reads one text: with masks, if it fills them; alone, if it sees both sides of
/// each token. Throws what encodable_text() throws.
std::vector<std::int32_t> encode_text(const LoadedModel& loaded, const std::string& text, std::string_view name,
                                      Unknown policy);

/// --adapt and the options that need it, of verbs whose model learns while it reads.
struct AdaptingOptions {
  bool adapt = false;
  AdaptOptions options;

  /// `help` is that of --adapt.
  void add(const Command& command, const std::string& help);
};
/// After parsing: throws Error if one of the options that need --adapt, or one of `more`, was given without it, and if
/// --weights was given with it.
void check_adapting(const Command& verb, const char* name, bool adapt, const std::vector<std::string>& more = {});

}  // namespace maki
