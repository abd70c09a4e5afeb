#include "data/text/encoding.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "data/io/error.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

unsigned char byte_at(std::string_view bytes, std::size_t i) { return static_cast<unsigned char>(bytes[i]); }

constexpr std::size_t kMaxSampleBytes = 1 << 20;  // enough to recognise an encoding; a whole number of UTF-32 units

// At most 1 MiB. Cut after the last line end in it, if there is one, which does not split a character in any encoding
// whose line ends are one byte.
std::string_view sample_of(std::string_view bytes) {
  if (bytes.size() <= kMaxSampleBytes) return bytes;
  const std::size_t line_end = bytes.substr(0, kMaxSampleBytes).rfind('\n');
  return bytes.substr(0, line_end == std::string_view::npos ? kMaxSampleBytes : line_end + 1);
}

// Decodes bytes to UTF-8; nullopt if some are invalid in the encoding.
std::optional<std::string> decode_strictly(std::string_view bytes, const std::string& encoding) {
  try {
    Decoder decoder(encoding, "", InvalidUtf8::error);
    std::string text;
    decoder.push(bytes, text);
    return text;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<std::string> byte_order_mark(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("\xFF\xFE\0\0"sv) || bytes.starts_with("\0\0\xFE\xFF"sv)) return "UTF-32";
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) return "UTF-16";
  return std::nullopt;
}

// The share of units of `width` bytes that are printable ASCII, a line end, a tab or in the Unicode blocks of Japanese
// punctuation and kana. In the wrong byte order, hardly any unit is. 0 if a unit is zero, which no text contains.
double plausible_share(std::string_view bytes, std::size_t width, bool big_endian) {
  std::size_t plausible = 0;
  const std::size_t units = bytes.size() / width;
  for (std::size_t unit = 0; unit < units; ++unit) {
    std::uint32_t c = 0;
    for (std::size_t i = 0; i < width; ++i)
      c = c << 8 | byte_at(bytes, unit * width + (big_endian ? i : width - 1 - i));
    if (c == 0) return 0;
    const bool ascii = (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\r' || c == '\t';
    if (ascii || (c >= 0x3001 && c <= 0x30FF)) ++plausible;
  }
  return units == 0 ? 0 : static_cast<double>(plausible) / static_cast<double>(units);
}

// One byte order must have a share of at least 0.3 and the other one of at most 0.1: text has more than the one, and in
// the wrong order less than the other.
std::optional<std::string> wide_encoding(std::string_view bytes) {
  constexpr std::size_t kMinUnits = 4;  // fewer may look like text in one byte order by chance
  for (const std::size_t width : {std::size_t{4}, std::size_t{2}}) {
    if (bytes.size() % width != 0 || bytes.size() < kMinUnits * width) continue;
    const double little = plausible_share(bytes, width, false), big = plausible_share(bytes, width, true);
    if (std::max(little, big) < 0.3 || std::min(little, big) > 0.1) continue;
    const std::string name = width == 4 ? "UTF-32" : "UTF-16";
    return name + (big > little ? "BE" : "LE");
  }
  return std::nullopt;
}

bool has_iso_2022_jp_escape(std::string_view bytes) {
  return bytes.find("\x1B$B") != std::string_view::npos || bytes.find("\x1B$@") != std::string_view::npos;
}

// The share of full-width kana among the characters that are not ASCII: about half in Japanese text, almost 0 in other
// text that is decoded as Japanese by mistake.
double kana_share(std::string_view text) {
  std::size_t kana = 0, others = 0;
  while (!text.empty()) {
    const char32_t c = next_code_point(text);
    if (c < 0x80) continue;
    ++(c >= 0x3041 && c <= 0x30FE ? kana : others);
  }
  return kana + others == 0 ? 0 : static_cast<double>(kana) / static_cast<double>(kana + others);
}

std::optional<std::string> japanese_encoding(std::string_view bytes) {
  std::optional<std::string> found;
  double best = 0.1;
  for (const char* const encoding : {"EUC-JP", "SHIFT_JIS", "CP932"}) {
    const auto text = decode_strictly(bytes, encoding);
    const double share = text ? kana_share(*text) : 0;
    if (share <= best) continue;
    best = share;
    found = encoding;
  }
  return found;
}

// The punctuation that word processors write in Windows-1252: …, ‘ ’ “ ”, •, – and —.
bool is_typographic(unsigned char c) { return c == 0x85 || (c >= 0x91 && c <= 0x97); }

// Recognises text in the Latin alphabet: at most a third of the bytes are above 127, most of those are letters next to
// an ASCII letter, or punctuation between characters that are ASCII or punctuation as well, and none is 0 or one of the
// five that Windows-1252 does not have.
std::optional<std::string> latin_encoding(std::string_view bytes) {
  const auto at = [&](std::size_t i) {
    return i < bytes.size() ? byte_at(bytes, i) : static_cast<unsigned char>('\n');
  };
  const auto ascii_letter = [&](std::size_t i) {
    return (at(i) >= 'a' && at(i) <= 'z') || (at(i) >= 'A' && at(i) <= 'Z');
  };
  const auto joins = [&](std::size_t i) { return at(i) < 0x80 || is_typographic(at(i)); };
  std::size_t high = 0, plausible = 0;
  bool c1 = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const unsigned char c = byte_at(bytes, i);
    if (c == 0 || c == 0x81 || c == 0x8D || c == 0x8F || c == 0x90 || c == 0x9D) return std::nullopt;
    if (c < 0x80) continue;
    ++high;
    c1 = c1 || c < 0xA0;
    const bool letter = c >= 0xC0 && c != 0xD7 && c != 0xF7 && c != 0xFF;
    const std::size_t before = i == 0 ? bytes.size() : i - 1;  // beyond the end stands a line end
    if (letter ? ascii_letter(before) || ascii_letter(i + 1) : is_typographic(c) && joins(before) && joins(i + 1))
      ++plausible;
  }
  if (high * 3 > bytes.size() || plausible * 2 <= high) return std::nullopt;
  return c1 ? "WINDOWS-1252" : "ISO-8859-1";
}

// Whether more than half of the bytes above 127 are part of well-formed UTF-8 characters of at least so many bytes.
bool is_damaged_utf8(std::string_view bytes, std::size_t least) {
  std::size_t high = 0, good = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = well_formed_size(bytes.substr(at));
    if (size != 1) high += std::max<std::size_t>(size, 1);
    if (size >= least) good += size;
    at += std::max<std::size_t>(size, 1);
  }
  return good * 2 > high;
}

}  // namespace

std::optional<std::string> detect_encoding(std::string_view bytes, bool is_beginning) {
  if (auto named = byte_order_mark(bytes); named && is_beginning) return named;
  const std::string_view uncut = bytes.substr(0, kMaxSampleBytes);
  bytes = sample_of(bytes);
  const bool utf8 = !invalid_utf8(bytes);
  const bool nul = bytes.find('\0') != std::string_view::npos;
  if (nul || !utf8) {
    if (auto wide = wide_encoding(uncut)) return wide;
  }
  if (utf8) {
    if (has_iso_2022_jp_escape(bytes) && decode_strictly(bytes, "ISO-2022-JP")) return "ISO-2022-JP";
    return std::nullopt;
  }
  // Characters of two bytes are no sign of UTF-8 yet: some kana of other encodings look like them.
  if (nul || is_damaged_utf8(bytes, 3)) return std::nullopt;
  if (auto japanese = japanese_encoding(bytes)) return japanese;
  return is_damaged_utf8(bytes, 2) ? std::nullopt : latin_encoding(bytes);
}

std::size_t unit_bytes(const std::string& encoding) {
  const iconv_t encoder = iconv_open(encoding.c_str(), "UTF-8");
  if (encoder == reinterpret_cast<iconv_t>(-1)) return 1;  // NOLINT(performance-no-int-to-ptr): as iconv_open() says it
  std::size_t unit = 0;
  for (int i = 0; i < 2; ++i) {  // before the first letter, a byte-order mark or the like may be written
    std::array<char, 64> buffer;
    char letter = 'A';
    char *from = &letter, *to = buffer.data();
    std::size_t left = 1, room = buffer.size();
    iconv(encoder, &from, &left, &to, &room);
    unit = buffer.size() - room;
  }
  iconv_close(encoder);
  return std::max<std::size_t>(unit, 1);
}

Decoder::Decoder(const std::string& encoding, std::string name, InvalidUtf8 invalid)
    : encoding_(encoding),
      name_(std::move(name)),
      policy_(invalid),
      unit_(unit_bytes(encoding)),
      iconv_(iconv_open("UTF-8", encoding.c_str())) {
  check(iconv_ != reinterpret_cast<iconv_t>(-1),  // NOLINT(performance-no-int-to-ptr): what iconv_open() returns
        "encoding: must be one that iconv knows, such as SHIFT_JIS or UTF-16 (iconv -l lists them); got {}", encoding);
}

Decoder::~Decoder() { iconv_close(iconv_); }

// Handles invalid bytes at this offset: throws or replaces them.
void Decoder::invalid(std::size_t at, std::size_t size, std::string& text) {
  check<CorpusError>(policy_ == InvalidUtf8::replace,
                     "{}: is not text in {}: byte {} is invalid; choose another `encoding`, or replace such bytes with "
                     "`invalid_utf8` replace",
                     name_, encoding_, at);
  text += kReplacementCharacter;
  replaced_ += size;
}

// Appends what the bytes from offset_ on were decoded to. UCS-4 can contain numbers beyond U+10FFFF, for which iconv of
// glibc writes five or six bytes, or four that are not well-formed.
void Decoder::append(std::string_view decoded, std::string& text) {
  while (const auto bad = invalid_utf8(decoded)) {
    const std::string_view good = decoded.substr(0, *bad);
    text += good;
    invalid(offset_ + unit_ * static_cast<std::size_t>(count_code_points(good)), unit_, text);
    decoded.remove_prefix(*bad + 1);
    while (!decoded.empty() && is_continuation(decoded[0])) decoded.remove_prefix(1);
  }
  text += decoded;
}

void Decoder::push(std::string_view bytes, std::string& text) {
  constexpr std::size_t kBlockBytes = 1 << 16;  // per call of iconv; its result has room on the stack
  std::array<char, 2 * kBlockBytes> buffer;
  while (!bytes.empty()) {
    const std::size_t taken = std::min(bytes.size(), kBlockBytes);
    pending_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    char* from = pending_.data();
    std::size_t left = pending_.size();
    while (left > 0) {
      char* to = buffer.data();
      std::size_t room = buffer.size();
      const std::size_t before = left;
      const bool stopped = iconv(iconv_, &from, &left, &to, &room) == static_cast<std::size_t>(-1);
      const int error = stopped ? errno : 0;
      append({buffer.data(), buffer.size() - room}, text);
      offset_ += before - left;
      if (error == EINVAL) break;  // an incomplete character, continued by the next bytes
      if (error == EILSEQ) {
        // Nothing is left to skip where glibc has passed the invalid byte already, as it does in ISO-2022-CN-EXT.
        const std::size_t skipped = std::min(unit_, left);
        invalid(offset_, std::max<std::size_t>(skipped, 1), text);
        from += skipped;
        left -= skipped;
        offset_ += skipped;
      }
    }
    pending_.erase(0, pending_.size() - left);
  }
}

void Decoder::finish(std::string& text) {
  // For encodings with combining marks (CP1258), iconv holds back the last letter until it knows what follows.
  std::array<char, 64> buffer;
  char* to = buffer.data();
  std::size_t room = buffer.size();
  iconv(iconv_, nullptr, nullptr, &to, &room);
  append({buffer.data(), buffer.size() - room}, text);
  while (!pending_.empty()) {
    const std::size_t size = std::min(unit_, pending_.size());
    invalid(offset_, size, text);
    offset_ += size;
    pending_.erase(0, size);
  }
}

}  // namespace maki
