#include "train/app/event_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "data/io/file.h"

namespace maki {
namespace {

// The wire format of protocol buffers: a field is its number and wire type, then its content.
// https://protobuf.dev/programming-guides/encoding
class Message {
 public:
  Message& integer(int field, std::uint64_t value) { return tag(field, 0).varint(value); }
  Message& number(int field, double value) { return tag(field, 1).raw(value); }
  Message& number(int field, float value) { return tag(field, 5).raw(value); }
  Message& text(int field, std::string_view value) {
    tag(field, 2).varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  Message& numbers(int field, const std::vector<double>& values) {
    Message packed;
    for (const double value : values) packed.raw(value);
    return message(field, packed);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Message& tag(int field, int wire_type) { return varint(static_cast<std::uint64_t>(field << 3 | wire_type)); }
  Message& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  template <class T>
  Message& raw(T value) {
    static_assert(std::endian::native == std::endian::little);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  std::string bytes_;
};

// CRC-32C of the bytes, rotated and shifted as TFRecord files have it, so that a CRC of data that contains a CRC is not
// a special case (tensorflow/core/lib/hash/crc32c.h).
std::uint32_t masked_crc(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    constexpr std::uint32_t kCastagnoli = 0x82F63B78;  // the polynomial, reflected
    std::array<std::uint32_t, 256> all{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      all[i] = i;
      for (int bit = 0; bit < 8; ++bit) all[i] = all[i] >> 1 ^ ((all[i] & 1) != 0 ? kCastagnoli : 0);
    }
    return all;
  }();
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xFF] ^ crc >> 8;
  return std::rotr(~crc, 15) + 0xA282EAD8;
}

template <class T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// A record of a TFRecord file: length, its CRC, the data, their CRC.
std::string record(const std::string& data) {
  const std::string length = bytes_of(std::uint64_t{data.size()});
  return length + bytes_of(masked_crc(length)) + data + bytes_of(masked_crc(data));
}

// A Summary.Value: tag = 1, metadata = 9 with plugin_data = 1 and its plugin_name = 1. What it holds is added: a number
// (simple_value = 2), a histogram (histo = 5) or a text (tensor = 8). A Summary is a list of them (value = 1).
Message value_named(const std::string& tag, const char* plugin) {
  Message value;
  value.text(1, tag).message(9, Message().message(1, Message().text(1, plugin)));
  return value;
}

void add_scalar(Message& summary, const std::string& tag, double value) {
  summary.message(1, value_named(tag, "scalars").number(2, static_cast<float>(value)));
}

void add_text(Message& summary, const std::string& tag, const std::string& text) {
  constexpr int kDtString = 7;  // of TensorProto: dtype = 1, tensor_shape = 2, string_val = 8
  const Message shape = Message().message(2, Message().integer(1, 1));
  summary.message(1,
                  value_named(tag, "text").message(8, Message().integer(1, kDtString).message(2, shape).text(8, text)));
}

// HistogramProto: min = 1, max = 2, num = 3, sum = 4, sum_squares = 5, bucket_limit = 6, bucket = 7. Thirty buckets of
// equal width between the lowest and the highest value; nothing if one of them is not finite.
template <class T>
void add_histogram(Message& summary, const std::string& tag, const T* values, std::int64_t n) {
  constexpr std::int64_t kBuckets = 30;
  const auto [lowest, highest] = std::minmax_element(values, values + n);
  const double low = *lowest, width = (*highest - low) / kBuckets;
  if (n == 0 || !std::isfinite(width)) return;
  std::vector<double> limits, counts(kBuckets);
  for (std::int64_t i = 1; i <= kBuckets; ++i) limits.push_back(low + static_cast<double>(i) * width);
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = values[i];
    const auto bucket = width > 0 ? static_cast<std::int64_t>((x - low) / width) : 0;
    ++counts[static_cast<std::size_t>(std::clamp<std::int64_t>(bucket, 0, kBuckets - 1))];
    sum += x;
    squares += x * x;
  }
  Message histogram;
  histogram.number(1, low).number(2, double{*highest}).number(3, static_cast<double>(n)).number(4, sum);
  summary.message(
      1, Message().text(1, tag).message(5, histogram.number(5, squares).numbers(6, limits).numbers(7, counts)));
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

constexpr std::string_view kEventFiles = "events.out.tfevents.";  // how TensorBoard knows them

}  // namespace

void remove_event_files(const std::string& directory) {
  for (const std::string& name : file_names(directory)) {
    if (name.starts_with(kEventFiles)) posix_file_system().unlink(fmt::format("{}/{}", directory, name));
  }
}

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7 with its status = 1. The first two
// records of a file are the version of the format, and that a session starts after `first_step_`, which drops what
// earlier files of the directory have of later steps.
void EventFile::write_summary(std::int64_t step, const std::string& summary) {
  if (!file_) {
    const std::string path = fmt::format("{}/{}{}.{}.{}", directory_, kEventFiles,
                                         static_cast<std::int64_t>(wall_time()), host_name(), getpid());
    file_.emplace(posix_file_system(), path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
    constexpr std::uint64_t kStart = 1;
    const Message start =
        Message().integer(2, static_cast<std::uint64_t>(first_step_ + 1)).message(7, Message().integer(1, kStart));
    for (const Message& first : {Message().text(3, "brain.Event:2"), start})
      file_->write_all(text_bytes(record(Message().number(1, wall_time()).bytes() + first.bytes())));
  }
  const Message event = Message().number(1, wall_time()).integer(2, static_cast<std::uint64_t>(step)).text(5, summary);
  file_->write_all(text_bytes(record(event.bytes())));
}

void EventFile::on_start(std::int64_t step, const RunHistory&) { first_step_ = step; }

void EventFile::on_counting(const CountingReport& report) {
  if (report.step < first_step_) return;  // an earlier session has written it
  Message summary;
  add_scalar(summary, "loss/counting alone", report.val_loss);
  write_summary(report.step, summary.bytes());
}

void EventFile::on_log(const StepReport& report, double tokens_per_second, double /*elapsed_seconds*/) {
  Message summary;
  add_scalar(summary, "loss/training, step by step", report.loss);
  add_scalar(summary, "learning_rate", report.learning_rate);
  add_scalar(summary, "grad_norm", report.grad_norm);
  add_scalar(summary, "tokens_per_second", tokens_per_second);
  write_summary(report.step, summary.bytes());
}

void EventFile::on_eval(const EvalReport& report, bool /*best*/) {
  Message summary;
  add_scalar(summary, "loss/training", report.train_loss);
  if (report.val_loss) add_scalar(summary, "loss/validation", report.point().loss);  // comparable with the others
  if (report.val_accuracy) add_scalar(summary, "accuracy/validation", *report.val_accuracy);
  for (const auto& parameter : store_.parameters()) {
    dispatch(store_.dtype(), [&]<class T>() {
      add_histogram(summary, parameter->name(), parameter->value().data<T>(), parameter->shape().numel());
    });
  }
  write_summary(report.step, summary.bytes());
}

void EventFile::on_sample(std::int64_t step, const std::string& text) {
  Message summary;
  add_text(summary, "sample", text);
  write_summary(step, summary.bytes());
}

void EventFile::on_sync() {
  if (file_) file_->sync();
}

}  // namespace maki
