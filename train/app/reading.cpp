#include "train/app/reading.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <iostream>
#include <system_error>

#include "autograd/core/parallel.h"
#include "data/dataset/masking.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/number.h"
#include "data/io/utf8.h"
#include "data/tokenizer/tokenizer_files.h"
#include "nn/models/encoder.h"
#include "optim/clip.h"
#include "train/app/flags.h"
#include "train/app/run_corpus.h"
#include "train/loop/mean_of_models.h"
#include "train/loop/taught_task.h"
#include "train/run/verified_checkpoint.h"

namespace maki {
namespace {

// What the tokenizer can encode of the pieces of one text. Offsets in messages count from the first piece. Requires:
// the pieces are views of the same string, in ascending order.
std::vector<std::string> encodable_pieces(const Tokenizer& tokenizer, const std::vector<std::string_view>& pieces,
                                          std::string_view name, Unknown policy) {
  for (const std::string_view piece : pieces) {
    const auto bad = invalid_utf8(piece);
    // The offset in the text, not in the piece: both pointers are into the same string.
    check<CorpusError>(!bad, "{}: must be UTF-8; the byte at offset {} is not; convert it, as iconv does", name,
                       piece.data() - pieces[0].data() + static_cast<std::ptrdiff_t>(bad.value_or(0)));
  }
  try {
    const KnownText known = known_text(tokenizer, pieces, policy);
    if (known.unknown > 0) to_stderr("{}: {}\n", name, known.describe());
    return {known.pieces.begin(), known.pieces.end()};
  } catch (const CorpusError& error) {
    fail<CorpusError>("{}: {}", name, error.what());
  }
}

// The pieces of the text around its masks.
std::vector<std::string_view> pieces_around_masks(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (std::size_t at = text.find(kMask); at != std::string_view::npos; at = text.find(kMask)) {
    pieces.push_back(text.substr(0, at));
    text.remove_prefix(at + kMask.size());
  }
  pieces.push_back(text);
  return pieces;
}

}  // namespace

void ReadingOptions::add_run(const Command& command, const std::string& what) {
  command.add_argument("RUN", run, what).require();
}

void ReadingOptions::add_options(const Command& command, const std::string& texts, const std::string& json_help) {
  command.add_option("--unknown", unknown, "error|skip|replace",
                     fmt::format("treatment of characters of {} that are not in the vocabulary [error]", texts));
  add_special_option(command, texts, special);
  add_checkpoint_option(command, checkpoint);
  add_threads_option(command, threads);
  if (!json_help.empty()) command.add_flag("--json", json, json_help);
}

void ReadingOptions::add_with(const Command& command) {
  command.add_list("--with", with, "RUN",
                   "another run on this text, such as one with another seed: the means of their probabilities "
                   "predict better than each of them; may be repeated");
}

LoadedModel ReadingOptions::open() const {
  policy();  // before anything is read
  const WeightNumbers numbers = parse_weights(weights);
  if (threads != 0) set_threads(threads);
  return read_checkpoint(run, checkpoint,
                         [&](const std::string& path) { return LoadedModel(path, std::nullopt, special, numbers); });
}

std::vector<std::string> ReadingOptions::average(LoadedModel& loaded) const {
  if (with.empty()) return {};
  std::vector<std::unique_ptr<LoadedModel>> others;
  for (const std::string& other : with) {
    others.push_back(read_checkpoint(other, checkpoint, [&](const std::string& path) {
      return std::make_unique<LoadedModel>(path, std::nullopt, special, parse_weights(weights));
    }));
  }
  auto mean = std::make_unique<MeanOfModels>(loaded, std::move(others));
  std::vector<std::string> counts = mean->other_counts();
  loaded.model = std::move(mean);
  return counts;
}

std::vector<std::string> inputs_of_run(const std::string& run_or_file) {
  if (!is_directory(run_or_file, throw_as<CheckpointError>)) return {run_or_file};
  const RunDirectory directory(run_or_file);
  return {directory.config_file(), directory.metrics_file(), directory.checkpoints_directory()};
}

void add_weights_option(const Command& command, std::string& weights) {
  command.add_option("--weights", weights, "trained|int8",
                     "numbers in which the weights are read; int8: rounded to 8 bits, so that each token takes less "
                     "time and the loss changes a little [trained]");
}

WeightNumbers parse_weights(const std::string& weights) {
  if (weights == kTrainedWeights) return WeightNumbers::trained;
  check(weights == "int8", "weights: must be trained or int8; got {}", weights);
  return WeightNumbers::int8;
}

void add_checkpoint_option(const Command& command, std::string& checkpoint) {
  command.add_option("--checkpoint", checkpoint, "last|best|STEP",
                     "checkpoint to use: the last, the best, or that of a step [best, else last]");
}

std::string choose_checkpoint(const std::string& run_or_file, const std::string& choice) {
  std::vector<std::string> notes;
  std::string path = find_checkpoint(run_or_file, choice, notes);
  for (const std::string& note : notes) warn(note);
  return path;
}

std::string choose_model(const std::string& run_or_file, const std::string& choice) {
  std::vector<std::string> none;
  if (const ChosenCheckpoint chosen(run_or_file, choice, none); chosen.is_only_one()) return chosen.path();
  return read_checkpoint(run_or_file, choice, [](const std::string& path) {
    const ContainerReader file(path);
    check_values(file, read_checked_state(file).config.dtype);
    return path;
  });
}

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path, std::optional<bool> of_sources) {
  PairTokenizers both;
  if (path.ends_with(".maki") || (is_directory(path, throw_as<CheckpointError>) && RunDirectory(path).exists())) {
    both = read_checkpoint(path, "",
                           [](const std::string& file) { return load_tokenizers(read_state(ContainerReader(file))); });
  } else {
    both.source = both.target = read_tokenizer(path);
  }
  const bool one = both.source == both.target;
  const bool sources = of_sources.value_or(false);
  check(!sources || !one, "source: chooses the vocabulary of the sources, and {} has only one; omit it", path);
  if (!sources && !one)
    say(fmt::format("note: {} has two vocabularies, and this is that of the targets{}", path,
                    of_sources ? "; --source is that of the sources" : ""));
  return sources ? both.source : both.target;
}

std::vector<std::string> teacher_checkpoints(const std::vector<std::string>& runs) {
  std::vector<std::string> paths;
  for (const std::string& run : runs)
    paths.push_back(is_run(run) ? reading_teacher([&] { return choose_model(run, ""); }) : run);
  return absolute_sources(paths);
}

void require_ability(const LoadedModel& loaded, bool has_it, const char* cannot, const char* advice) {
  check(has_it, "{}: is a model of kind {} for the task {}, which {}; {}", loaded.path, loaded.model->kind(),
        task_rule(loaded.state.config).name, cannot, advice);
}

void require_finite(const LoadedModel& loaded, const Tensor& numbers, const char* what) {
  check<CheckpointError>(std::isfinite(global_norm(numbers)),
                         "{}: the {} of this model are not finite; the model has diverged", loaded.path, what);
}

std::string encodable_text(const Tokenizer& tokenizer, std::string_view text, std::string_view name, Unknown policy) {
  return encodable_pieces(tokenizer, {text}, name, policy).front();
}

bool next_line(std::istream& input, std::string& line) {
  errno = 0;
  const bool found = static_cast<bool>(std::getline(input, line));
  const std::error_code reason(errno, std::generic_category());
  // While std::cin is synchronized with stdin, only that knows whether an error ended it.
  const bool readable = !input.bad() && (&input != &std::cin || std::ferror(stdin) == 0);
  check<CorpusError>(readable, "standard input: cannot be read: {}", reason.message());
  if (found && line.ends_with('\r')) line.pop_back();
  return found;
}

MaskedText encode_masked(const Tokenizer& tokenizer, std::string_view text, std::string_view name, Unknown policy) {
  std::vector<std::string_view> pieces = pieces_around_masks(text);
  const bool spaced_words = tokenizer_kind(tokenizer.kind()).spaced_words;
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
    if (spaced_words && pieces[i].ends_with(' ')) pieces[i].remove_suffix(1);
  }
  MaskedText masked;
  const std::vector<std::string> known = encodable_pieces(tokenizer, pieces, name, policy);
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i > 0) {
      masked.masks.push_back(static_cast<std::int32_t>(masked.ids.size()));
      masked.ids.push_back(static_cast<std::int32_t>(tokenizer.vocab_size()));
    }
    const std::vector<std::int32_t> ids = tokenizer.encode(known[i]);
    masked.ids.insert(masked.ids.end(), ids.begin(), ids.end());
  }
  return masked;
}

void require_positions(const LoadedModel& loaded, std::string_view name, std::ptrdiff_t tokens, std::ptrdiff_t adds) {
  const Config& config = loaded.state.config;
  check<CorpusError>(config.positions != Positions::learned || tokens + adds <= config.block_size,
                     "{}: may have at most {} tokens, because the model has learned positions; it has {}; shorten it",
                     name, config.block_size - adds, tokens);
}

std::vector<std::vector<Candidate>> fill_masks(const LoadedModel& loaded, const MaskedText& text, std::int64_t top) {
  const Tensor logits = loaded.model->as_encoder()->logits_at(tensor(text.masks, {std::ssize(text.masks)}),
                                                              tensor(text.ids, {1, std::ssize(text.ids)}));
  require_finite(loaded, logits, "logits");
  std::vector<std::vector<Candidate>> candidates;
  for (std::int64_t i = 0; i < std::ssize(text.masks); ++i)
    candidates.push_back(best_candidates(logits, i, loaded.tokenizer->vocab_size(), top));
  return candidates;
}

std::vector<std::int32_t> encode_line(const Tokenizer& tokenizer, const std::string& text, std::string_view name,
                                      Unknown policy) {
  return text.empty() ? std::vector<std::int32_t>()
                      : tokenizer.encode_line(encodable_text(tokenizer, text, name, policy));
}

std::vector<std::int32_t> encode_text(const LoadedModel& loaded, const std::string& text, std::string_view name,
                                      Unknown policy) {
  const Tokenizer& tokenizer = *loaded.tokenizer;
  if (task_rule(loaded.state.config).fills_masks && text.find(kMask) != std::string::npos)
    return encode_masked(tokenizer, text, name, policy).ids;
  if (loaded.model->as_encoder() != nullptr) return encode_line(tokenizer, text, name, policy);
  return tokenizer.encode(encodable_text(tokenizer, text, name, policy));
}

void AdaptingOptions::add(const Command& command, const std::string& help) {
  command.add_flag("--adapt", adapt, help);
  command.add_number("--adapt-lr", options.learning_rate, 0, 1, "RATE", "learning rate while reading");
  command.add_number("--adapt-window", options.window, 0, kMaxCount,
                     "number of tokens that are predicted and then learned at once; 0: half of the context");
  command.add_number("--adapt-decay", options.decay, 0, kMaxAdaptDecay, "FRACTION",
                     "fraction by which the weights return to the trained ones after each window");
}

void check_adapting(const Command& verb, const char* name, bool adapt, const std::vector<std::string>& more) {
  std::vector<std::string> options = {"--adapt-lr", "--adapt-window", "--adapt-decay"};
  options.insert(options.end(), more.begin(), more.end());
  const std::vector<std::string> given = verb.given_among(options);
  check(adapt || given.empty(), "{}: {} applies only with --adapt; add it", name, given.empty() ? "" : given.back());
  check(!adapt || verb.given_among({"--weights"}).empty(),
        "{}: --adapt changes the weights, which --weights only reads; omit one of them", name);
}

}  // namespace maki
