// A checkpoint: a container (train/run/container.h) with these sections, in this order:
//
//   config     the training fields, as TOML
//   state      step, identity of the corpus, counts (cereal)
//   tokenizer  the tokenizer in its saved form
//   source_tokenizer  the same for what the model reads, if that has a vocabulary of its own
//   labels     the labels of a classifier, one per line
//   ngram_counts  the n-grams that a model with a prior was trained with (data/ngram/ngram_trie.h)
//   tensors    name, shape, group and offset of every parameter (cereal)
//   values     all parameters as one flat array
//   exp_avg …  the optimizer's moments, one flat array each
//   memory     what the model carries from one step to the next, if it carries anything (train/run/memory_section.h)
//
// Its bytes are a function of the corpus, the training fields and the step; they do not depend on evaluations,
// interruptions, threads or time. docs/formats.md describes every byte.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "data/dataset/pairs.h"
#include "nn/carried_states.h"
#include "optim/optimizer.h"
#include "train/run/config/tasks.h"
#include "train/run/container.h"

namespace maki {

/// Everything in a checkpoint except the tensors.
struct CheckpointState {
  std::int64_t step = 0;        ///< finished optimizer steps
  std::int64_t vocab_size = 0;  ///< ids of the tokenizer and special ids of the task
  std::int64_t characters = 0;  ///< of the corpus, in code points
  /// Of each part, without special ids: those of sources and targets together, or of the texts of a classifier alone.
  std::int64_t train_tokens = 0, val_tokens = 0;
  std::string corpus_hash;            ///< 32 hexadecimal digits, lower case
  double best_possible_loss = 0;      ///< entropy of a built-in corpus in nats per token; 0: unknown
  Config config;                      ///< only its training fields are stored
  std::string tokenizer;              ///< Tokenizer::save() of the tokenizer of what the model writes
  std::string source_tokenizer = {};  ///< of what it reads; empty unless has_source_vocabulary(config)
  std::string labels = {};            ///< save_labels() of a classifier's labels; empty unless the task has labels
  std::string ngram_counts = {};      ///< NgramTrie::save(); empty unless config.ngram_prior > 0
  PairTokenizers tokenizers = {};     ///< what load_tokenizers() returns, once read_state() has loaded them
};
/// The tokenizers in a state. Those of a shared vocabulary, or of a task without a source, are one object. Throws what
/// load_tokenizer() throws, unless state.tokenizers has them already.
PairTokenizers load_tokenizers(const CheckpointState& state);
/// The sizes of the vocabularies of the model in a state, and the number of its classes.
VocabSizes vocab_sizes(const CheckpointState& state);
/// The tokens that each row of a batch has read until then, if a row of a step continues that of the step before it.
inline std::int64_t tokens_per_row(const CheckpointState& state) { return state.step * state.config.block_size; }
/// Loads the tokenizers. Throws Error unless they are those that its task needs, the target's with as many ids as its
/// model, a classifier has its labels, n-gram counts are of that vocabulary and order and, in a task on plain text, a
/// text of that many characters can have that many tokens. (The counts of pairs and of labelled texts are compared with
/// the data when a run is resumed.)
PairTokenizers check_vocabulary(const CheckpointState& state);

/// Writes the state after a finished step, through replace_file_atomically(). Equal states give equal bytes. Throws
/// CheckpointError if the file cannot be written, if corpus_hash is not a hash, or if a parameter's name is not
/// is_name(name, 128). Requires: the moments' names differ from each other and from those of the other sections.
void write_checkpoint(FileSystem& fs, const std::string& path, const CheckpointState& state,
                      const ParameterStore& store, const Optimizer& optimizer, const CarriedStates& carried = {});

/// Reads and validates the sections that belong to a CheckpointState, and no others (see the functions below). Throws
/// CorruptFile if they are damaged, if they contradict each other (configuration, tokenizer, vocabulary), or if
/// write_checkpoint() would have written them differently; and CheckpointError if the file cannot be read or its
/// configuration has another schema.
CheckpointState read_state(const ContainerReader& file);

struct TensorEntry {
  std::string name;
  Shape shape;
  ParamGroup group;
  std::int64_t offset;  ///< of its first element in section `values`, in elements

  bool operator==(const TensorEntry&) const = default;
};
/// The list in section `tensors`. Throws CorruptFile if it is damaged.
std::vector<TensorEntry> read_tensors(const ContainerReader& file);

/// Throws CorruptFile, naming the first difference, unless the tensors of the file are those of the store: the same
/// names, shapes, groups and offsets, in a section `values` of the right length for the store's type. Requires:
/// assign_offsets() was called on the store. It need not be sealed, so that a checkpoint can be rejected before memory
/// is allocated for its model.
void check_tensors(const ContainerReader& file, const ParameterStore& store);
/// Throws CorruptFile unless every moment that this optimizer keeps has a section of the right length. The optimizer's
/// store need not be sealed.
void check_moments(const ContainerReader& file, const Optimizer& optimizer);
/// Throws CorruptFile unless the sections of the file are exactly those of a checkpoint with this configuration,
/// optimizer and states, in their order.
void check_sections(const ContainerReader& file, const Config& config, const Optimizer& optimizer,
                    const CarriedLayout& carried = {});
/// Reads the whole file once. Throws CorruptFile unless all checksums match, all values, moments and what the model
/// carries are finite, moments that cannot be negative are not, and the padding between tensors is zero.
void check_numbers(const ContainerReader& file, const Optimizer& optimizer, const CarriedLayout& carried = {});
/// Throws CorruptFile unless all values are finite, the padding between tensors is zero, and the checksum of their
/// section matches. Reads them in pieces of 1 MiB.
void check_values(const ContainerReader& file, DType dtype);
/// Loads the values into a store. Throws what check_tensors() throws, and CorruptFile if the values are damaged; in
/// that case the store contains some of them and must not be used. Requires: the store is sealed.
void load_values(const ContainerReader& file, ParameterStore& store);
/// Seals a store with the values of the file, for a model that is not trained: where the system can map files, they are
/// not copied, and the file must not be shortened or overwritten while the store exists (it may be replaced or
/// deleted). Throws what load_values() throws. Requires: assign_offsets() was called, and the store is not sealed.
void seal_with_stored_values(const ContainerReader& file, ParameterStore& store);
/// Loads the moments and sets the optimizer's number of steps. Throws CorruptFile if a moment is missing or damaged;
/// the optimizer must then not be used.
void load_optimizer(const ContainerReader& file, std::int64_t steps, Optimizer& optimizer);

/// The section `tensors` for a store. Throws CheckpointError, naming the first parameter whose name does not fit.
std::string encode_tensors(const ParameterStore& store);
/// The sections of the numbers: `values`, and a section per moment if there is an optimizer. They refer to the memory
/// of store and optimizer.
std::vector<ContainerSection> number_sections(const ParameterStore& store, const Optimizer* optimizer);

}  // namespace maki
