#include "train/checkpoint.h"

#include <algorithm>
#include <cereal/archives/portable_binary.hpp>
#include <cereal/types/array.hpp>
#include <cmath>
#include <sstream>

#include "autograd/core/storage.h"
#include "train/error.h"

namespace maki {
namespace {

constexpr std::int64_t kMostSteps = 1'000'000'000;  // as max_steps

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

constexpr std::size_t kNameSize = 128;
struct TensorRecord {
  std::array<char, kNameSize> name;
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
  static const std::size_t kPreamble = encode<Record>({}).size();
  static const std::size_t kSize = encode<Record>({Record{}}).size() - kPreamble;
  const std::string bytes = file.read(section);
  check<LostFile>(bytes.size() >= kPreamble && (bytes.size() - kPreamble) % kSize == 0,
                  "{}: section {} has a size that fits no number of records", file.path(), section);
  std::vector<Record> records((bytes.size() - kPreamble) / kSize);
  try {
    std::istringstream stream(bytes);
    cereal::PortableBinaryInputArchive archive(stream);
    for (Record& record : records) archive(record);
  } catch (const cereal::Exception& error) {
    fail<LostFile>("{}: section {} cannot be read: {}", file.path(), section, error.what());
  }
  check<LostFile>(encode(records) == bytes, "{}: section {} is not in the form it was written in", file.path(),
                  section);
  return records;
}

Bytes flat_bytes(const Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>() { return Bytes(std::as_bytes(x.values<T>())); });
}
std::span<std::byte> writable_bytes(Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>() { return std::span<std::byte>(std::as_writable_bytes(x.values<T>())); });
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
  check<LostFile>(file.length(section) == bytes, "{}: section {} has {} bytes where {} are needed", file.path(),
                  section, file.length(section), bytes);
}

bool is_hash(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// What stands between tensors is zero, as it was born: nothing can hide there, and the next save is canonical.
void check_padding(const ContainerReader& file, const std::string& section, const Tensor& flat) {
  constexpr std::size_t kAlignment = 64;
  const Bytes bytes = flat_bytes(flat);
  const auto size = static_cast<std::size_t>(size_of(flat.dtype()));
  for (const TensorEntry& entry : read_tensors(file)) {
    const std::size_t begin = static_cast<std::size_t>(entry.offset + entry.shape.numel()) * size;
    if (begin >= bytes.size()) continue;  // frozen tensors have no moments
    const Bytes gap =
        bytes.subspan(begin).first(std::min((kAlignment - begin % kAlignment) % kAlignment, bytes.size() - begin));
    const bool zero = std::ranges::all_of(gap, [](std::byte b) { return b == std::byte{0}; });
    check<LostFile>(zero, "{}: section {}: what follows {} must be zero", file.path(), section, entry.name);
  }
}

}  // namespace

void write_checkpoint(FileSystem& fs, const std::string& path, const CheckpointState& state, ParameterStore& store,
                      Optimizer& optimizer) {
  StateRecord record{
      state.step, state.vocab_size, state.characters, state.train_tokens, state.val_tokens, state.best_loss, {}};
  check<CheckpointError>(is_hash(state.corpus_hash),
                         "checkpoint: a corpus hash has 32 hexadecimal digits, lower case; got {}", state.corpus_hash);
  std::ranges::copy(state.corpus_hash, record.corpus_hash.begin());
  std::vector<TensorRecord> tensors;
  for (const auto& parameter : store.parameters()) {
    check<CheckpointError>(is_name(parameter->name(), kNameSize),
                           "checkpoint: a tensor's name must be printable ASCII of at most {} bytes; got {}",
                           kNameSize - 1, parameter->name());
    tensors.push_back(to_record(to_entry(*parameter)));
  }

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
  check<LostFile>(records.size() == 1, "{}: holds {} states; there is one in a checkpoint", file.path(),
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
  const bool sane = state.step >= 0 && state.step <= kMostSteps && state.vocab_size >= 1 && state.characters >= 0 &&
                    state.train_tokens >= 0 && state.val_tokens >= 0 && std::isfinite(state.best_loss);
  check<LostFile>(sane, "{}: its state is out of range", file.path());
  check<LostFile>(is_hash(state.corpus_hash), "{}: the hash of its corpus is no hash", file.path());
  check<LostFile>(file.length("config") <= kMostConfigBytes, "{}: its configuration has {} bytes; at most {} are read",
                  file.path(), file.length("config"), kMostConfigBytes);
  try {
    const std::string config = file.read("config");
    apply_toml(state.config, config, "its configuration");
    validate(state.config);
    check(phases_before(state.config, state.step) == state.config.phases,
          "its configuration has a phase that begins after its step {}", state.step);
    check(training_toml(state.config) == config, "its configuration is not in the form it was written in");
    const std::int64_t ids = load_tokenizer(state.tokenizer)->vocab_size();
    check(ids == state.vocab_size, "its tokenizer has {} ids where its model has {}", ids, state.vocab_size);
  } catch (const CheckpointError&) {
    throw;
  } catch (const OutOfMemory&) {
    throw;  // says nothing about the file
  } catch (const Error& error) {
    fail<LostFile>("{}: {}", file.path(), error.what());
  }
  return state;
}

std::vector<TensorEntry> read_tensors(const ContainerReader& file) {
  std::vector<TensorEntry> entries;
  for (const TensorRecord& record : decode<TensorRecord>(file, "tensors")) {
    const std::string name(record.name.begin(), std::ranges::find(record.name, '\0'));
    const bool sane = record.rank <= Shape::kMaxRank && record.group < kGroups.size() && is_name(name, kNameSize) &&
                      record.offset >= 0 && record.offset < (std::int64_t{1} << 58);
    check<LostFile>(sane, "{}: its list of tensors is damaged", file.path());
    try {
      entries.push_back(
          {name, Shape(std::span(record.extents).first(record.rank)), static_cast<Group>(record.group), record.offset});
    } catch (const Error& error) {
      fail<LostFile>("{}: {}", file.path(), error.what());
    }
    check<LostFile>(to_record(entries.back()) == record, "{}: tensor {}: what is unused must be zero", file.path(),
                    name);
  }
  return entries;
}

void check_tensors(const ContainerReader& file, const ParameterStore& store) {
  const std::vector<TensorEntry> entries = read_tensors(file);
  check<LostFile>(entries.size() == store.parameters().size(), "{}: holds {} tensors where the model has {}",
                  file.path(), entries.size(), store.parameters().size());
  const auto told = [](const TensorEntry& e) {
    return fmt::format("{} {} ({}, from element {})", e.name, e.shape, to_string(e.group), e.offset);
  };
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const TensorEntry wanted = to_entry(*store.parameters()[i]);
    check<LostFile>(entries[i] == wanted, "{}: holds {} where the model has {}", file.path(), told(entries[i]),
                    told(wanted));
  }
  check_length(file, "values", store.range(Group::frozen).end, store.dtype());
}

void check_moments(const ContainerReader& file, const ParameterStore& store, const OptimizerOptions& options) {
  for (const std::string& name : moment_names(options))
    check_length(file, name, store.trainable().size(), store.dtype());
}

void load_values(const ContainerReader& file, ParameterStore& store) {
  check_tensors(file, store);
  file.read("values", writable_bytes(store.values()));
  check_padding(file, "values", store.values());
  store.touch();
}

void load_optimizer(const ContainerReader& file, std::int64_t steps, Optimizer& optimizer) {
  for (Optimizer::Moment& moment : optimizer.moments()) {
    file.read(moment.name, writable_bytes(moment.values));
    check_padding(file, moment.name, moment.values);
  }
  optimizer.set_steps(steps);
}

}  // namespace maki
