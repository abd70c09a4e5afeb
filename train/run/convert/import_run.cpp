#include "train/run/convert/import_run.h"

#include <algorithm>
#include <iterator>

#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/hash.h"
#include "data/tokenizer/tokenizer_config.h"
#include "data/tokenizer/tokenizer_files.h"
#include "nn/carried_states.h"
#include "train/run/checkpoint.h"
#include "train/run/config/configured_optimizer.h"
#include "train/run/config/configured_tokenizer.h"
#include "train/run/config/models.h"
#include "train/run/run_directory.h"
#include "train/run/values_by_name.h"

namespace maki {
namespace {

// A vocabulary is padded to a multiple of 64 or 128, rarely of more. A larger difference means another tokenizer.
constexpr std::int64_t kMaxPaddingRows = 1023;

std::unique_ptr<Tokenizer> tokenizer_beside(const std::string& path) {
  const bool directory = is_directory(path, throw_as<CheckpointError>);
  const std::string own = fmt::format("{}{}{}", path, directory ? '/' : '.', kOwnTokenizerFile);
  bool any = file_exists(own);
  for (const char* const name : {"tokenizer.json", "vocab.json"}) {
    any = any || (directory && file_exists(path + "/" + name));
  }
  check<CorpusError>(any,
                     "{}: has no tokenizer (tokenizer.json, vocab.json with merges.txt, or {}); name one with "
                     "`tokenizer` FILE, or use `tokenizer` byte if the ids are bytes",
                     path, directory ? kOwnTokenizerFile : own);
  return read_tokenizer(directory ? path : own);
}

// A token that the model has learned is not padding. One beyond the model is not checked: see adopt_use().
void require_used(const ForeignModel& model, const Tokenizer& tokenizer) {
  const auto require = [&](std::int32_t id, const char* does) {
    check<CorpusError>(id < tokenizer.vocab_size() || id >= model.vocab_size,
                       "tokenizer: must have the tokens that {} names; it has {} and lacks token {}, which {}; use the "
                       "whole tokenizer of the model, with its added tokens, or remove the id from config.json and "
                       "generation_config.json",
                       model.path, tokenizer.vocab_size(), id, does);
  };
  for (const std::int32_t id : model.use.ends) require(id, "ends texts");
  if (model.use.begin) require(*model.use.begin, "begins texts");
  if (model.use.pad) require(*model.use.pad, "fills batches");
}

// What the model says of its tokens takes precedence over what lies beside its tokenizer. Configurations also name ids
// that the vocabulary lacks, because those of the original model are the defaults of transformers.
void adopt_use(const TokenUse& model, Tokenizer& tokenizer) {
  const TokenUse without = complete_use(tokenizer);
  TokenUse use = tokenizer.use();
  const auto exists = [&](std::int32_t id) { return id < tokenizer.vocab_size(); };
  std::vector<std::int32_t> ends;
  std::ranges::copy_if(model.ends, std::back_inserter(ends), exists);
  if (!ends.empty()) use.ends = std::move(ends);
  if (model.begin && exists(*model.begin)) use.begin = model.begin;
  if (model.pad && exists(*model.pad)) use.pad = model.pad;
  // An export of maki names what follows from the vocabulary alone.
  const bool adds_nothing =
      tokenizer.use() == TokenUse() && use.ends == without.ends && use.begin == without.begin && use.pad == without.pad;
  if (!adds_nothing) tokenizer.set_use(use);
}

// If a number that is read needs it: those of float32 keep their values.
bool is_float64(const ForeignModel& model) {
  return std::ranges::any_of(model.names, [&](const NamePair& name) {
    const StoredTensor* const tensor = find_stored(model.stored, name.stored, model.rules);
    return tensor != nullptr && tensor->type == NumberType::f64;
  });
}

// The training fields of a run that has not begun. SGD without momentum has no moments, which nobody would need.
Config of_untrained_run(Config config) {
  config.optimizer = "sgd";
  config.momentum = 0;
  config.nesterov = false;
  config.max_steps = 0;
  config.lr_decay_steps = 1;
  config.warmup_steps = 0;
  config.phases.clear();
  config.teacher.clear();
  config.taught_by.clear();
  return config;
}

Config imported_config(const ForeignModel& model, const Tokenizer& tokenizer) {
  Config config = model.config;
  describe_tokenizer(tokenizer, config);
  config.dtype = is_float64(model) ? DType::float64 : DType::float32;
  return of_untrained_run(config);
}

// Writes config.toml and the checkpoint of step 0.
void write_run(const CheckpointState& state, const Model& model, ParameterStore& store, const OutputPath& out,
               FileSystem& fs) {
  const Config& config = state.config;
  const CarriedStates nothing_yet(model, config.grad_accum, config.batch_size);
  OutputDirectory directory(fs, out);
  const RunDirectory run(directory.path(), fs);
  directory.fill([&] {
    run.create();
    const std::string echo = to_toml(config);
    replace_file_atomically(fs, run.config_file(), {text_bytes(echo)});
    write_checkpoint(fs, run.checkpoint_file(0), state, store, *make_optimizer(config, store), nothing_yet);
    run.set_last(0);
  });
  directory.commit();
}

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_for(const ForeignModel& model, const Tokenizer* given) {
  std::unique_ptr<Tokenizer> tokenizer =
      given == nullptr ? tokenizer_beside(model.path) : load_tokenizer(given->save());
  const std::int64_t ids = tokenizer->vocab_size();
  check<CorpusError>(ids <= model.vocab_size && model.vocab_size - ids <= kMaxPaddingRows,
                     "tokenizer: must have as many ids as {}, which has {} (at most {} of them padding); got {}",
                     model.path, model.vocab_size, kMaxPaddingRows, ids);
  require_used(model, *tokenizer);
  adopt_use(model.use, *tokenizer);
  return tokenizer;
}

Imported import_run(const ForeignModel& model, const Tokenizer& tokenizer, const OutputPath& out) {
  Imported imported{.config = imported_config(model, tokenizer), .vocab_size = tokenizer.vocab_size()};
  Config& config = imported.config;
  config.out = out.path;
  validate(config);
  require_directory_place(out);
  ParameterStore store(config.dtype);
  const std::unique_ptr<Model> network = make_model(config, {imported.vocab_size}, Scope(store));
  imported.padding = check_weights(model.stored, model.names, model.rules, store);
  check<CheckpointError>(imported.padding <= kMaxPaddingRows,
                         "{}: at most {} rows of its token embedding may be padding; it has {} rows more than the "
                         "tokenizer has ids",
                         model.path, kMaxPaddingRows, imported.padding);
  store.seal_uninitialized();
  dispatch(store.dtype(), [&]<class T>() { std::ranges::fill(store.values().values<T>(), T{0}); });  // the padding
  load_weights(model.stored, model.names, model.rules, store);
  imported.parameters = store.numel();
  config.init_from = hash_of_values(store);

  write_run({.vocab_size = imported.vocab_size,
             .corpus_hash = hash128_hex(""),
             .config = config,
             .tokenizer = tokenizer.save()},
            *network, store, out, posix_file_system());
  return imported;
}

std::string write_model_run(const CheckpointState& loaded, const Model& model, ParameterStore& store,
                            const OutputPath& out, FileSystem& fs) {
  CheckpointState state = loaded;  // with the facts of its text
  state.step = 0;
  state.config = of_untrained_run(loaded.config);
  state.config.out = out.path;
  state.config.corpus.clear();
  state.config.init_from = hash_of_values(store);
  validate(state.config);
  write_run(state, model, store, out, fs);
  return RunDirectory(out.path).checkpoint_file(0);
}

}  // namespace maki
