// The header of a safetensors file: a JSON object with an object for each tensor. It is parsed event by event, because
// a tree of JSON values can need fifty times the memory of its text.
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "train/run/convert/safetensors.h"

namespace maki {
namespace {

using Sax = nlohmann::json_sax<nlohmann::json>;

// An entry of the header, as far as it is read.
struct Entry {
  std::string name;
  std::optional<NumberType> type;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<std::array<std::uint64_t, 2>> offsets;
};

class HeaderReader : public Sax {
 public:
  HeaderReader(const std::string& path, std::uint64_t size) : path_(path), size_(size) {}

  std::vector<StoredTensor> tensors;

  // The reference implementation writes null where there is no metadata.
  bool null() override {
    if (place_ == Place::top && entry_.name == "__metadata__") return true;
    reject("null");
  }
  bool boolean(bool) override { reject("a boolean"); }
  bool number_integer(number_integer_t) override { reject("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { reject("a number that is not a whole one"); }
  bool binary(binary_t&) override { reject("binary data"); }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::shape && place_ != Place::offsets) reject("a number");
    check<CorruptFile>(numbers_.size() < (place_ == Place::shape ? kMaxStoredRank : 2),
                       "{}: {}: {} must have {} numbers; got more", path_, subject(), field_,
                       place_ == Place::shape ? fmt::format("at most {}", kMaxStoredRank) : "2");
    numbers_.push_back(value);
    return true;
  }
  bool string(string_t& text) override {
    if (place_ == Place::metadata) return true;
    if (place_ != Place::entry || field_ != "dtype") reject("a string");
    entry_.type = number_type_named(text);
    check<CorruptFile>(entry_.type.has_value(), "{}: {}: has the unknown dtype {}", path_, subject(),
                       truncate_for_message(text));
    return true;
  }
  bool start_object(std::size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::top;
    } else if (place_ == Place::top) {
      place_ = entry_.name == "__metadata__" ? Place::metadata : Place::entry;
    } else {
      reject("an object");
    }
    return true;
  }
  bool key(string_t& text) override {
    if (place_ == Place::top) entry_ = {.name = text, .type = {}, .shape = {}, .offsets = {}};
    if (place_ == Place::entry) {
      const bool known = text == "dtype" || text == "shape" || text == "data_offsets";
      check<CorruptFile>(known, "{}: {}: must have dtype, shape and data_offsets; got {}", path_, subject(),
                         truncate_for_message(text));
      const bool twice = text == "dtype"   ? entry_.type.has_value()
                         : text == "shape" ? entry_.shape.has_value()
                                           : entry_.offsets.has_value();
      check<CorruptFile>(!twice, "{}: {}: has {} twice", path_, subject(), text);
      field_ = text;
    }
    return true;
  }
  bool end_object() override {
    if (place_ == Place::entry) add_entry();
    place_ = place_ == Place::top ? Place::outside : Place::top;
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ != Place::entry || field_ == "dtype") reject("an array");
    place_ = field_ == "shape" ? Place::shape : Place::offsets;
    numbers_.clear();
    return true;
  }
  bool end_array() override {
    if (place_ == Place::shape) {
      entry_.shape.emplace();
      for (const std::uint64_t n : numbers_) {
        check<CorruptFile>(n < std::uint64_t{1} << 62, "{}: {}: has an axis of {} elements", path_, subject(), n);
        entry_.shape->push_back(static_cast<std::int64_t>(n));
      }
    } else {
      check<CorruptFile>(numbers_.size() == 2, "{}: {}: data_offsets must have 2 numbers; got {}", path_, subject(),
                         numbers_.size());
      entry_.offsets = {numbers_[0], numbers_[1]};
    }
    place_ = Place::entry;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail<CorruptFile>("{}: its header must be JSON in UTF-8; byte {} of it is not", path_, position);
  }

 private:
  enum class Place : std::uint8_t { outside, top, metadata, entry, shape, offsets };

  std::string subject() const {
    return place_ == Place::outside || entry_.name.empty() ? "header" : "tensor " + truncate_for_message(entry_.name);
  }
  [[noreturn]] void reject(const char* what) const {
    fail<CorruptFile>("{}: {}: must not contain {} {}", path_, subject(), what,
                      place_ == Place::entry      ? "as " + field_
                      : place_ == Place::metadata ? "in __metadata__, which maps strings to strings"
                                                  : "here");
  }
  void add_entry() {
    check<CorruptFile>(entry_.type && entry_.shape && entry_.offsets,
                       "{}: {}: must have dtype, shape and data_offsets; one of them is missing", path_, subject());
    const auto [begin, end] = *entry_.offsets;
    check<CorruptFile>(begin <= end && end <= size_,
                       "{}: {}: data_offsets must be ascending and end within the {} bytes of data; got {} and {}",
                       path_, subject(), size_, begin, end);
    check<CorruptFile>(end - begin == bytes_needed(), "{}: {}: must have {} bytes for {} of type {}; got {}", path_,
                       subject(), bytes_needed(), shape_text(*entry_.shape), to_string(*entry_.type), end - begin);
    tensors.push_back({std::move(entry_.name), *entry_.type, std::move(*entry_.shape), begin, end - begin});
  }
  std::uint64_t bytes_needed() const {
    std::uint64_t bits = bits_of(*entry_.type);
    bool fits = true;
    for (const std::int64_t n : *entry_.shape)
      fits = fits && !__builtin_mul_overflow(bits, static_cast<std::uint64_t>(n), &bits);
    check<CorruptFile>(fits, "{}: {}: the shape {} has more elements than a file can hold", path_, subject(),
                       shape_text(*entry_.shape));
    check<CorruptFile>(bits % 8 == 0, "{}: {}: {} of type {} do not fill whole bytes", path_, subject(),
                       shape_text(*entry_.shape), to_string(*entry_.type));
    return bits / 8;
  }

  const std::string& path_;
  std::uint64_t size_;
  Place place_ = Place::outside;
  Entry entry_;
  std::string field_;
  std::vector<std::uint64_t> numbers_;
};

}  // namespace

std::vector<StoredTensor> parse_safetensors_header(std::string_view json, std::uint64_t size, const std::string& path) {
  // The parser would take a zero byte for the end of the text.
  const bool has_zero = json.find('\0') != std::string_view::npos;
  check<CorruptFile>(json.starts_with('{') && !has_zero, "{}: its header must be JSON that begins with a brace", path);
  HeaderReader reader(path, size);
  nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  return std::move(reader.tensors);
}

}  // namespace maki
