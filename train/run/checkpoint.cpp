#include "train/run/checkpoint.h"

#include <algorithm>
#include <bit>
#include <cereal/archives/portable_binary.hpp>
#include <cereal/types/array.hpp>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <sstream>
#include <type_traits>

#include "autograd/core/storage.h"
#include "data/io/error.h"
#include "data/io/hash.h"
#include "data/io/number.h"
#include "train/run/memory_section.h"

namespace maki {
namespace {

constexpr const char* kSourceTokenizerSection = "source_tokenizer";
constexpr const char* kLabelsSection = "labels";
constexpr const char* kNgramCountsSection = "ngram_counts";
// More than any corpus has, and few enough that what is computed from it fits into 64 bits (check_vocabulary()).
constexpr std::int64_t kMaxCharacters = std::int64_t{1} << 50;

// cereal trusts the sizes that it reads, so nothing here contains one: every record has a fixed size, and the number of
// records follows from the length of the section, whose checksum was verified.
struct StateRecord {
  std::int64_t step, vocab_size, characters, train_tokens, val_tokens;
  double best_possible_loss;
  std::array<char, 32> corpus_hash;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(step, vocab_size, characters, train_tokens, val_tokens, best_possible_loss, corpus_hash);
  }
};

constexpr std::size_t kTensorNameBytes = 128;  // of a record, whose size is fixed: several times those of maki's models
struct TensorRecord {
  std::array<char, kTensorNameBytes> name;
  std::array<std::int64_t, Shape::kMaxRank> extents;
  std::int64_t offset;
  std::uint8_t rank, group;

  bool operator==(const TensorRecord&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, extents, offset, rank, group);
  }
};

template <class Record>
std::string encode(std::vector<Record> records) {
  std::ostringstream bytes;
  {
    cereal::PortableBinaryOutputArchive archive(bytes);
    for (Record& record : records) archive(record);
  }
  return bytes.str();
}

template <class Record>
std::vector<Record> decode(const ContainerReader& file, const char* section) {
  static const std::size_t kPreambleBytes = encode<Record>({}).size();
  static const std::size_t kRecordBytes = encode<Record>({Record{}}).size() - kPreambleBytes;
  const std::string bytes = file.read(section);
  check<CorruptFile>(bytes.size() >= kPreambleBytes && (bytes.size() - kPreambleBytes) % kRecordBytes == 0,
                     "{}: section {} must hold a whole number of records; got {} bytes", file.path(), section,
                     bytes.size());
  std::vector<Record> records((bytes.size() - kPreambleBytes) / kRecordBytes);
  try {
    std::istringstream stream(bytes);
    cereal::PortableBinaryInputArchive archive(stream);
    for (Record& record : records) archive(record);
  } catch (const cereal::Exception& error) {
    fail<CorruptFile>("{}: section {} cannot be read: {}", file.path(), section, error.what());
  }
  check<CorruptFile>(encode(records) == bytes, "{}: section {} is not in canonical form", file.path(), section);
  return records;
}

Bytes flat_bytes(const Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>() { return Bytes(std::as_bytes(x.values<T>())); });
}

TensorRecord to_record(const TensorEntry& entry) {
  TensorRecord record{};
  std::ranges::copy(entry.name, record.name.begin());
  std::ranges::copy(entry.shape.extents(), record.extents.begin());
  record.offset = entry.offset;
  record.rank = static_cast<std::uint8_t>(entry.shape.rank());
  record.group = static_cast<std::uint8_t>(entry.group);
  return record;
}

TensorEntry to_entry(const Parameter& p) { return {p.name(), p.shape(), p.group(), p.offset()}; }

void check_length(const ContainerReader& file, const std::string& section, std::int64_t elements, DType dtype) {
  const auto bytes = static_cast<std::uint64_t>(elements * size_of(dtype));
  check<CorruptFile>(file.length(section) == bytes, "{}: section {} must have {} bytes; got {}", file.path(), section,
                     bytes, file.length(section));
}

// Runs an action that reads bytes whose checksum matched. Its errors mean that the file is damaged and become
// CorruptFile, except CheckpointError (a newer version wrote the file) and OutOfMemoryError, which says nothing about
// the file.
template <class Action>
void errors_mean_damage(const ContainerReader& file, const Action& action) {
  try {
    action();
  } catch (const CheckpointError& error) {
    fail<CheckpointError>("{}: {}", file.path(), error.what());
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const Error& error) {
    fail<CorruptFile>("{}: {}", file.path(), error.what());
  }
}

Config read_config(const ContainerReader& file) {
  check<CorruptFile>(file.length("config") <= kMaxConfigBytes,
                     "{}: its configuration must have at most {} bytes; got {}", file.path(), kMaxConfigBytes,
                     file.length("config"));
  const std::string text = file.read("config");
  Config config;
  errors_mean_damage(file, [&] {
    config = read_training_toml(text);
    validate(config);
  });
  return config;
}

}  // namespace

void write_checkpoint(FileSystem& fs, const std::string& path, const CheckpointState& state,
                      const ParameterStore& store, const Optimizer& optimizer, const CarriedStates& carried) {
  StateRecord record{
      state.step, state.vocab_size, state.characters, state.train_tokens, state.val_tokens, state.best_possible_loss,
      {}};
  check<CheckpointError>(is_hash(state.corpus_hash),
                         "checkpoint: corpus_hash must be 32 lower-case hexadecimal digits; got {}", state.corpus_hash);
  std::ranges::copy(state.corpus_hash, record.corpus_hash.begin());
  const std::string config = training_toml(state.config), encoded_state = encode<StateRecord>({record}),
                    tensors = encode_tensors(store);
  std::vector<ContainerSection> sections = {
      {"config", text_bytes(config)}, {"state", text_bytes(encoded_state)}, {"tokenizer", text_bytes(state.tokenizer)}};
  if (!state.source_tokenizer.empty())
    sections.push_back({kSourceTokenizerSection, text_bytes(state.source_tokenizer)});
  if (!state.labels.empty()) sections.push_back({kLabelsSection, text_bytes(state.labels)});
  if (!state.ngram_counts.empty()) sections.push_back({kNgramCountsSection, text_bytes(state.ngram_counts)});
  sections.push_back({"tensors", text_bytes(tensors)});
  std::ranges::move(number_sections(store, &optimizer), std::back_inserter(sections));
  const Tensor memory = carried.any() ? carried.values() : Tensor();
  if (memory) sections.push_back({kMemorySection, flat_bytes(memory)});
  write_container(fs, path, sections);
}

std::string encode_tensors(const ParameterStore& store) {
  std::vector<TensorRecord> tensors;
  for (const auto& parameter : store.parameters()) {
    check<CheckpointError>(is_name(parameter->name(), kTensorNameBytes),
                           "checkpoint: a tensor's name must be printable ASCII of at most {} bytes; got {}",
                           kTensorNameBytes - 1, parameter->name());
    tensors.push_back(to_record(to_entry(*parameter)));
  }
  return encode(tensors);
}

std::vector<ContainerSection> number_sections(const ParameterStore& store, const Optimizer* optimizer) {
  std::vector<ContainerSection> sections = {{"values", flat_bytes(store.values())}};
  if (optimizer == nullptr) return sections;
  for (const Moment& moment : optimizer->moments()) sections.push_back({moment.name, flat_bytes(moment.values)});
  return sections;
}

CheckpointState read_state(const ContainerReader& file) {
  check<CheckpointError>(
      !file.has("store"),
      "{}: holds parameters that a program saved with save_parameters(), and is not a checkpoint of a "
      "run; load it in that program with load_parameters()",
      file.path());
  // The configuration comes first, because another schema may change the form of every other section.
  CheckpointState state;
  state.config = read_config(file);
  const std::vector<StateRecord> records = decode<StateRecord>(file, "state");
  check<CorruptFile>(records.size() == 1, "{}: section state must contain one record; got {}", file.path(),
                     records.size());
  const StateRecord& record = records[0];
  state.step = record.step;
  state.vocab_size = record.vocab_size;
  state.characters = record.characters;
  state.train_tokens = record.train_tokens;
  state.val_tokens = record.val_tokens;
  state.corpus_hash.assign(record.corpus_hash.begin(), record.corpus_hash.end());
  state.best_possible_loss = record.best_possible_loss;
  state.tokenizer = file.read("tokenizer");
  if (has_source_vocabulary(state.config)) state.source_tokenizer = file.read(kSourceTokenizerSection);
  if (task_rule(state.config).labels) state.labels = file.read(kLabelsSection);
  if (state.config.ngram_prior > 0) state.ngram_counts = file.read(kNgramCountsSection);
  const bool sane = state.step >= 0 && state.step <= static_cast<std::int64_t>(kMaxCount) && state.vocab_size >= 1 &&
                    state.characters >= 0 && state.train_tokens >= 0 && state.val_tokens >= 0 &&
                    std::isfinite(state.best_possible_loss) && state.best_possible_loss >= 0 &&
                    state.characters <= kMaxCharacters && state.train_tokens <= 4 * kMaxCharacters &&
                    state.val_tokens <= 4 * kMaxCharacters;
  check<CorruptFile>(sane, "{}: a number in section state is out of range", file.path());
  check<CorruptFile>(is_hash(state.corpus_hash), "{}: its corpus hash must be 32 lower-case hexadecimal digits; got {}",
                     file.path(), state.corpus_hash);
  check<CorruptFile>(phases_before(state.config, state.step) == state.config.phases,
                     "{}: every phase of its configuration must start before its step {}", file.path(), state.step);
  errors_mean_damage(file, [&] { state.tokenizers = check_vocabulary(state); });
  return state;
}

std::vector<TensorEntry> read_tensors(const ContainerReader& file) {
  std::vector<TensorEntry> entries;
  for (const TensorRecord& record : decode<TensorRecord>(file, "tensors")) {
    const std::string name(record.name.begin(), std::ranges::find(record.name, '\0'));
    const bool sane = record.rank <= Shape::kMaxRank && record.group < kParamGroups.size() &&
                      is_name(name, kTensorNameBytes) && record.offset >= 0 && record.offset < (std::int64_t{1} << 58);
    check<CorruptFile>(sane, "{}: its list of tensors is damaged", file.path());
    try {
      entries.push_back({name, Shape(std::span(record.extents).first(record.rank)),
                         static_cast<ParamGroup>(record.group), record.offset});
    } catch (const Error& error) {
      fail<CorruptFile>("{}: {}", file.path(), error.what());
    }
    check<CorruptFile>(to_record(entries.back()) == record, "{}: tensor {}: unused bytes of its record must be zero",
                       file.path(), name);
  }
  return entries;
}

void check_tensors(const ContainerReader& file, const ParameterStore& store) {
  const std::vector<TensorEntry> entries = read_tensors(file);
  check<CorruptFile>(entries.size() == store.parameters().size(), "{}: has {} tensors where the model has {}",
                     file.path(), entries.size(), store.parameters().size());
  const auto describe = [](const TensorEntry& e) {
    return fmt::format("{} {} ({}, offset {})", e.name, e.shape, to_string(e.group), e.offset);
  };
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const TensorEntry wanted = to_entry(*store.parameters()[i]);
    check<CorruptFile>(entries[i] == wanted, "{}: has {} where the model has {}", file.path(), describe(entries[i]),
                       describe(wanted));
  }
  check_length(file, "values", store.range(ParamGroup::frozen).end, store.dtype());
}

void check_moments(const ContainerReader& file, const Optimizer& optimizer) {
  for (const MomentLayout& moment : optimizer.moment_layouts())
    check_length(file, moment.name, moment.length, optimizer.store().dtype());
}

void check_sections(const ContainerReader& file, const Config& config, const Optimizer& optimizer,
                    const CarriedLayout& carried) {
  std::vector<std::string> wanted = {"config", "state", "tokenizer"};
  if (has_source_vocabulary(config)) wanted.emplace_back(kSourceTokenizerSection);
  if (task_rule(config).labels) wanted.emplace_back(kLabelsSection);
  if (config.ngram_prior > 0) wanted.emplace_back(kNgramCountsSection);
  wanted.insert(wanted.end(), {"tensors", "values"});
  for (const MomentLayout& moment : optimizer.moment_layouts()) wanted.push_back(moment.name);
  if (carried.any()) wanted.emplace_back(kMemorySection);
  const auto& there = file.entries();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    check<CorruptFile>(i < there.size(), "{}: has no section {}", file.path(), wanted[i]);
    check<CorruptFile>(there[i].name == wanted[i], "{}: has section {} where section {} is expected", file.path(),
                       there[i].name, wanted[i]);
  }
  check<CorruptFile>(there.size() == wanted.size(), "{}: has an unknown section {}", file.path(),
                     there[std::min(wanted.size(), there.size() - 1)].name);
}

}  // namespace maki
