#include "train/run/convert/token_formats.h"

#include <algorithm>
#include <array>
#include <limits>

#include "autograd/core/check.h"
#include "autograd/core/table.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/run/convert/prepare.h"

namespace maki {
namespace {

// maki's own file, or a directory for another program: files of ids, perhaps after a header of 256 32-bit numbers.
struct TokenFormat {
  const char* name;
  bool is_directory, header;
  std::int64_t most_ids;  // the largest vocabulary
};
// The largest vocabularies whose ids fit.
constexpr std::int64_t kMaxUint16Ids = std::int64_t{1} << 16, kMaxInt32Ids = std::int64_t{1} << 31;
constexpr TokenFormat kTokenFormatRows[] = {
    {"maki", false, false, kMaxInt32Ids}, {"nanogpt", true, false, kMaxUint16Ids}, {"llm.c", true, true, kMaxInt32Ids}};
constexpr Table kTokenFormats("format", kTokenFormatRows);

constexpr std::string_view kForeignFiles[] = {"train.bin", "val.bin", kOwnTokenizerFile};

using LlmcHeader = std::array<std::int32_t, 256>;

class ForeignWriter final : public TokenWriter {
 public:
  ForeignWriter(FileSystem& fs, const TokenFormat& format, const OutputPath& out, const Tokenizer& tokenizer)
      : format_(format),
        width_(tokenizer.vocab_size() <= kMaxUint16Ids ? 2 : 4),
        directory_(fs, out),
        train_(fs, directory_.path() + "/train.bin", header_bytes()),
        val_(fs, directory_.path() + "/val.bin", header_bytes()) {
    directory_.fill(
        [&] { write_output(fs, directory_.path() + "/" + kOwnTokenizerFile, {text_bytes(tokenizer.save())}); });
  }

  void append(TokenSpan ids) override {
    std::int64_t& tokens = validation_ ? val_tokens_ : train_tokens_;
    tokens += static_cast<std::int64_t>(ids.size());
    check(!format_.header || tokens <= std::numeric_limits<std::int32_t>::max(),
          "format: a file of llm.c has at most 2147483647 tokens; the {} text has {} or more; prepare it in several "
          "parts",
          validation_ ? "validation" : "training", tokens);
    directory_.fill([&] { append_tokens(validation_ ? val_ : train_, ids, width_); });
  }
  void begin_validation() override { validation_ = true; }
  void commit(const TokenFileFacts&) override {
    directory_.fill([&] {
      commit(train_, train_tokens_);
      commit(val_, val_tokens_);
    });
    directory_.commit();
  }

 private:
  std::size_t header_bytes() const { return format_.header ? sizeof(LlmcHeader) : 0; }
  void commit(AtomicFile& file, std::int64_t tokens) {
    if (!format_.header) return file.commit({});
    // dev/data/data_common.py: magic number, version, number of tokens.
    LlmcHeader header{width_ == 2 ? 20240520 : 20240801, width_ == 2 ? 1 : 7, static_cast<std::int32_t>(tokens)};
    file.commit(std::as_bytes(std::span(header)));
  }

  const TokenFormat& format_;
  std::uint32_t width_;
  OutputDirectory directory_;
  AtomicFile train_, val_;
  std::int64_t train_tokens_ = 0, val_tokens_ = 0;
  bool validation_ = false;
};

}  // namespace

std::vector<std::string> token_formats() { return kTokenFormats.names(); }

void require_token_place(const std::string& format, const OutputPath& out) {
  if (!kTokenFormats.row(format).is_directory) {
    require_file_place(out, Streams::refused);
  } else {
    // OutputDirectory would find this out only after hours of encoding a large text.
    const std::string place = require_directory_place(out).path;
    for (const std::string& name : file_names(place)) {
      check(std::ranges::find(kForeignFiles, name) != std::end(kForeignFiles),
            "{}: contains {}, which this command does not write; choose another name", out.path, name);
    }
  }
}

void require_ids_fit(const std::string& format, std::int64_t vocab_size) {
  const std::int64_t most = kTokenFormats.row(format).most_ids;
  check(vocab_size <= most,
        "format: {} stores ids below {}; the vocabulary has {} tokens; use a smaller one, or another `format`", format,
        most, vocab_size);
}

std::unique_ptr<TokenWriter> make_token_writer(FileSystem& fs, const std::string& format, const OutputPath& out,
                                               const Tokenizer& tokenizer, std::vector<std::string>& files) {
  const TokenFormat& row = kTokenFormats.row(format);
  if (!row.is_directory) {
    files.push_back(out.path);
    return std::make_unique<TokenFileWriter>(fs, out, tokenizer);
  }
  require_ids_fit(format, tokenizer.vocab_size());
  for (const std::string_view name : kForeignFiles) files.push_back(fmt::format("{}/{}", out.path, name));
  return std::make_unique<ForeignWriter>(fs, row, out, tokenizer);
}

}  // namespace maki
