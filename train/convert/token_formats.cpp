#include "train/convert/token_formats.h"

#include <array>
#include <fmt/ranges.h>
#include <limits>

#include "autograd/core/check.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/convert/prepare.h"

namespace maki {
namespace {

// A format of another program: files of ids, perhaps after a header of 256 32-bit numbers.
struct ForeignFormat {
  const char* name;
  bool header;
  std::int64_t most_ids;  // the largest vocabulary
};
constexpr std::int64_t kMost16 = std::int64_t{1} << 16, kMost32 = std::int64_t{1} << 31;
constexpr ForeignFormat kForeignFormats[] = {{"nanogpt", false, kMost16}, {"llm.c", true, kMost32}};

using LlmcHeader = std::array<std::int32_t, 256>;

class ForeignWriter final : public TokenWriter {
 public:
  ForeignWriter(FileSystem& fs, const ForeignFormat& format, const std::string& out, const Tokenizer& tokenizer)
      : fs_(fs),
        format_(format),
        width_(tokenizer.vocab_size() <= kMost16 ? 2 : 4),
        tokenizer_(fs, out + "/" + kOwnTokenizerFile, 0),
        train_(fs, out + "/train.bin", header_bytes()),
        val_(fs, out + "/val.bin", header_bytes()) {
    const std::string saved = tokenizer.save();
    tokenizer_.append(std::as_bytes(std::span(saved)));
  }

  void append(TokenSpan ids) override { append_tokens(validation_ ? val_ : train_, ids, width_); }
  void begin_validation() override { validation_ = true; }
  void commit(const TokenFileFacts& facts) override {
    check_count("training", facts.train_tokens);
    check_count("validation", facts.val_tokens);
    tokenizer_.finish({});
    finish(train_, facts.train_tokens);
    finish(val_, facts.val_tokens);
    try {
      tokenizer_.replace();
      train_.replace();
      val_.replace();
    } catch (const CheckpointError& error) {
      fail<CheckpointError>("{}{}", error.what(), remove_replaced());
    }
  }

 private:
  std::size_t header_bytes() const { return format_.header ? sizeof(LlmcHeader) : 0; }
  void check_count(const char* part, std::int64_t tokens) const {
    check(!format_.header || tokens <= std::numeric_limits<std::int32_t>::max(),
          "format: a file of llm.c has at most 2147483647 tokens; the {} text has {}; prepare it in several parts",
          part, tokens);
  }
  void finish(AtomicFile& file, std::int64_t tokens) {
    if (!format_.header) return file.finish({});
    // dev/data/data_common.py: magic number, version, number of tokens.
    LlmcHeader header{width_ == 2 ? 20240520 : 20240801, width_ == 2 ? 1 : 7, static_cast<std::int32_t>(tokens)};
    file.finish(std::as_bytes(std::span(header)));
  }
  // One new file beside an older one would be taken for its other part. Returns what the message of the error adds.
  std::string remove_replaced() {
    std::string removed;
    for (const AtomicFile* const file : {&tokenizer_, &train_, &val_}) {
      if (!file->replaced()) continue;
      const bool gone = fs_.unlink(file->path()) == 0;
      removed += fmt::format("; {} {}", file->path(), gone ? "was removed" : "could not be removed");
    }
    return removed;
  }

  FileSystem& fs_;
  const ForeignFormat& format_;
  std::uint32_t width_;
  AtomicFile tokenizer_, train_, val_;
  bool validation_ = false;
};

}  // namespace

std::vector<std::string> token_formats() {
  std::vector<std::string> names = {"maki"};
  for (const ForeignFormat& format : kForeignFormats) names.emplace_back(format.name);
  return names;
}

std::unique_ptr<TokenWriter> make_token_writer(FileSystem& fs, const std::string& format, const std::string& out,
                                               const Tokenizer& tokenizer, std::vector<std::string>& files) {
  if (format == "maki") {
    files.push_back(out);
    return std::make_unique<TokenFileWriter>(fs, out, tokenizer);
  }
  for (const ForeignFormat& foreign : kForeignFormats) {
    if (format != foreign.name) continue;
    check(tokenizer.vocab_size() <= foreign.most_ids,
          "format: {} stores ids below {}; the vocabulary has {} tokens; use a smaller one, or another --format",
          format, foreign.most_ids, tokenizer.vocab_size());
    std::vector<std::string> made;
    make_directories(fs, out, made);
    for (const char* const name : {"train.bin", "val.bin", kOwnTokenizerFile}) files.push_back(out + "/" + name);
    return std::make_unique<ForeignWriter>(fs, foreign, out, tokenizer);
  }
  fail("format: must be one of {}; got {}", fmt::join(token_formats(), ", "), format);
}

}  // namespace maki
