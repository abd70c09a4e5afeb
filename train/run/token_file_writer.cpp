#include "train/run/token_file_writer.h"

#include <algorithm>
#include <utility>

namespace maki {
namespace {

template <class Id>
void append_ids(std::span<const std::int32_t> ids, std::string& bytes) {
  std::vector<Id> numbers(ids.size());
  std::ranges::transform(ids, numbers.begin(), [](std::int32_t id) { return static_cast<Id>(id); });
  bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Id));
}

}  // namespace

void append_tokens(AtomicFile& file, TokenSpan ids, std::uint32_t width) {
  constexpr std::size_t kPartTokens = 1 << 16;  // at a time: few calls, 256 KiB of memory
  for (std::size_t at = 0; at < ids.size(); at += kPartTokens) {
    const std::vector<std::int32_t> numbers = ids.ids(at, kPartTokens);
    std::string bytes;
    if (width == 1) {
      append_ids<std::uint8_t>(numbers, bytes);
    } else if (width == 2) {
      append_ids<std::uint16_t>(numbers, bytes);
    } else {
      append_ids<std::int32_t>(numbers, bytes);
    }
    file.append(text_bytes(bytes));
  }
}

TokenFileWriter::TokenFileWriter(FileSystem& fs, const OutputPath& out, const Tokenizer& tokenizer)
    : file_(fs, out, TokenFileLayout::kHeaderBytes),
      vocab_size_(tokenizer.vocab_size()),
      tokenizer_hash_(tokenizer.hash()) {
  const std::string saved = tokenizer.save();
  layout_.tokenizer_bytes = saved.size();
  layout_.width = token_width(vocab_size_);
  file_.append(text_bytes(saved));
  pad();
}

void TokenFileWriter::pad() { file_.append(text_bytes(std::string(token_file_padding(file_.size()), '\0'))); }

void TokenFileWriter::add_join(Part& part, std::int64_t at) {
  if (at > 0 && (part.joins.empty() || part.joins.back() < at)) part.joins.push_back(at);
}

void TokenFileWriter::append(TokenSpan ids) {
  Part& part = *part_;
  const auto size = static_cast<std::int64_t>(ids.size());
  if (size > 0 && std::exchange(part.begins_piece, false)) add_join(part, part.tokens);
  for (const std::int64_t join : ids.joins()) {
    if (join < size) add_join(part, part.tokens + join);
    if (join == size) part.begins_piece = true;
  }
  append_tokens(file_, ids, layout_.width);
  part.tokens += size;
}

void TokenFileWriter::begin_validation() {
  pad();
  part_ = &val_;
}

void TokenFileWriter::commit(const TokenFileFacts& facts) {
  if (part_ == &train_) begin_validation();
  pad();
  for (const Part* const part : {&train_, &val_}) file_.append(std::as_bytes(std::span(part->joins)));
  TokenFileFacts all = facts;
  all.vocab_size = vocab_size_;
  all.tokenizer_hash = tokenizer_hash_;
  all.train_tokens = train_.tokens;
  all.val_tokens = val_.tokens;
  all.train_joins = std::ssize(train_.joins);
  all.val_joins = std::ssize(val_.joins);
  layout_.data_hash = file_.hash();
  file_.commit(text_bytes(token_file_header(all, layout_)));
}

}  // namespace maki
