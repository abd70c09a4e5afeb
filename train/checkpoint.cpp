#include "train/checkpoint.h"

#include <algorithm>
#include <cereal/archives/portable_binary.hpp>
#include <cereal/types/array.hpp>
#include <cmath>
#include <sstream>

#include "train/error.h"

namespace maki {
namespace {

// cereal trusts the sizes it reads, so nothing it reads here has one: every struct is of fixed size, and how many there
// are follows from the length of the section, which was verified.
struct StateRecord {
  std::int64_t step, vocab_size, characters, train_tokens, val_tokens;
  double best_loss;
  std::array<char, 32> corpus_hash;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(step, vocab_size, characters, train_tokens, val_tokens, best_loss, corpus_hash);
  }
};

struct TensorRecord {
  std::array<char, 128> name;
  std::array<std::int64_t, Shape::kMaxRank> extents;
  std::int64_t offset;
  std::uint8_t rank, group;

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
  static const std::size_t kPreamble = encode<Record>({}).size();
  static const std::size_t kSize = encode<Record>({Record{}}).size() - kPreamble;
  const std::string bytes = file.read(section);
  check<CheckpointError>(bytes.size() >= kPreamble && (bytes.size() - kPreamble) % kSize == 0,
                         "{}: section {} has a size that fits no number of records", file.path(), section);
  std::vector<Record> records((bytes.size() - kPreamble) / kSize);
  try {
    std::istringstream stream(bytes);
    cereal::PortableBinaryInputArchive archive(stream);
    for (Record& record : records) archive(record);
  } catch (const cereal::Exception& error) {
    fail<CheckpointError>("{}: section {} cannot be read: {}", file.path(), section, error.what());
  }
  return records;
}

Bytes flat_bytes(const Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>() { return Bytes(std::as_bytes(x.values<T>())); });
}
std::span<std::byte> writable_bytes(Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>() { return std::span<std::byte>(std::as_writable_bytes(x.values<T>())); });
}

TensorRecord to_record(const Parameter& parameter) {
  TensorRecord record{};
  check<CheckpointError>(parameter.name().size() < record.name.size(), "checkpoint: parameter name {} is too long",
                         parameter.name());
  std::ranges::copy(parameter.name(), record.name.begin());
  std::ranges::copy(parameter.shape().extents(), record.extents.begin());
  record.offset = parameter.offset();
  record.rank = static_cast<std::uint8_t>(parameter.shape().rank());
  record.group = static_cast<std::uint8_t>(parameter.group());
  return record;
}

}  // namespace

void write_checkpoint(FileSystem& fs, const std::string& path, const CheckpointState& state, ParameterStore& store,
                      Optimizer& optimizer) {
  StateRecord record{
      state.step, state.vocab_size, state.characters, state.train_tokens, state.val_tokens, state.best_loss, {}};
  check<CheckpointError>(state.corpus_hash.size() == record.corpus_hash.size(),
                         "checkpoint: a corpus hash has 32 digits; got {}", state.corpus_hash);
  std::ranges::copy(state.corpus_hash, record.corpus_hash.begin());
  std::vector<TensorRecord> tensors;
  for (const auto& parameter : store.parameters()) tensors.push_back(to_record(*parameter));

  const std::string config = training_toml(state.config), encoded_state = encode<StateRecord>({record}),
                    encoded_tensors = encode(tensors);
  std::vector<Section> sections = {{"config", as_bytes(config)},
                                   {"state", as_bytes(encoded_state)},
                                   {"tokenizer", as_bytes(state.tokenizer)},
                                   {"tensors", as_bytes(encoded_tensors)},
                                   {"values", flat_bytes(store.values())}};
  for (const Optimizer::Moment& moment : optimizer.moments())
    sections.push_back({moment.name, flat_bytes(moment.values)});
  write_container(fs, path, sections);
}

CheckpointState read_state(const ContainerReader& file) {
  const std::vector<StateRecord> records = decode<StateRecord>(file, "state");
  check<CheckpointError>(records.size() == 1, "{}: holds {} states; there is one in a checkpoint", file.path(),
                         records.size());
  const StateRecord& record = records[0];
  CheckpointState state{.step = record.step,
                        .vocab_size = record.vocab_size,
                        .characters = record.characters,
                        .train_tokens = record.train_tokens,
                        .val_tokens = record.val_tokens,
                        .corpus_hash = std::string(record.corpus_hash.begin(), record.corpus_hash.end()),
                        .best_loss = record.best_loss,
                        .config = {},
                        .tokenizer = file.read("tokenizer")};
  const bool sane =
      state.step >= 0 && state.vocab_size >= 1 && state.vocab_size <= (1 << 30) && std::isfinite(state.best_loss);
  check<CheckpointError>(sane, "{}: its state is out of range", file.path());
  try {
    apply_toml(state.config, file.read("config"), "its configuration");
    validate(state.config);
  } catch (const CheckpointError&) {
    throw;
  } catch (const Error& error) {
    fail<CheckpointError>("{}: {}", file.path(), error.what());
  }
  return state;
}

std::vector<TensorEntry> read_tensors(const ContainerReader& file) {
  std::vector<TensorEntry> entries;
  for (const TensorRecord& record : decode<TensorRecord>(file, "tensors")) {
    const bool sane = record.rank <= Shape::kMaxRank && record.group < kGroups.size() && record.name.back() == '\0';
    check<CheckpointError>(sane, "{}: its list of tensors is damaged", file.path());
    try {
      entries.push_back({record.name.data(), Shape(std::span(record.extents).first(record.rank)),
                         static_cast<Group>(record.group), record.offset});
    } catch (const Error& error) {
      fail<CheckpointError>("{}: {}", file.path(), error.what());
    }
  }
  return entries;
}

void load_values(const ContainerReader& file, ParameterStore& store) {
  const std::vector<TensorEntry> entries = read_tensors(file);
  check<CheckpointError>(entries.size() == store.parameters().size(), "{}: holds {} tensors where the model has {}",
                         file.path(), entries.size(), store.parameters().size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Parameter& parameter = *store.parameters()[i];
    const TensorEntry& entry = entries[i];
    const bool same = entry.name == parameter.name() && entry.shape == parameter.shape() &&
                      entry.group == parameter.group() && entry.offset == parameter.offset();
    check<CheckpointError>(same, "{}: holds {} {} where the model has {} {}", file.path(), entry.name, entry.shape,
                           parameter.name(), parameter.shape());
  }
  file.read("values", writable_bytes(store.values()));
  store.touch();
}

void load_optimizer(const ContainerReader& file, std::int64_t steps, Optimizer& optimizer) {
  for (Optimizer::Moment& moment : optimizer.moments()) file.read(moment.name, writable_bytes(moment.values));
  optimizer.set_steps(steps);
}

}  // namespace maki
