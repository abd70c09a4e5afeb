#include "data/tokenizer/nanogpt_meta.h"

#include <fmt/format.h>
#include <utility>
#include <vector>

#include "data/io/error.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

// A whole number, a string or a dictionary; `mark` is the place from which a dictionary gets several items.
struct Value {
  enum class Kind : std::uint8_t { mark, number, string, dictionary } kind;
  std::uint32_t size = 0;  // of a string
  std::size_t number = 0;  // of a string, its offset in the pickle; of a dictionary, its index
};
struct Item {
  Value key, value;
};

// Builds dictionaries of strings and numbers as a pickle of protocol 2 to 5 says. (The instructions have letters as
// names; Python's Lib/pickletools.py describes each.)
class PickleReader {
 public:
  explicit PickleReader(std::string_view pickle) : pickle_(pickle) {}

  Value read() {
    for (;;) {
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') return pop();
      step(code);
    }
  }
  const std::vector<Item>& items(const Value& dictionary) const {
    require(dictionary.kind == Value::Kind::dictionary, "a value is no dictionary");
    return dictionaries_[dictionary.number];
  }
  std::string_view text(const Value& string) const {
    require(string.kind == Value::Kind::string, "a value is no string");
    return pickle_.substr(string.number, string.size);
  }

 private:
  static void require(bool good, const char* what) {
    check<CorpusError>(good, "is not a vocabulary of nanoGPT: {}; name the tokenizer with `tokenizer_file`", what);
  }
  std::string_view take(std::size_t size) {
    require(size <= pickle_.size() - at_, "it ends too early");
    return pickle_.substr(std::exchange(at_, at_ + size), size);
  }
  // A number of this many bytes, the lowest first.
  std::size_t take_number(std::size_t size) {
    std::size_t number = 0;
    const std::string_view taken = take(size);
    for (std::size_t i = size; i-- > 0;) number = number << 8 | static_cast<unsigned char>(taken[i]);
    return number;
  }
  void push_number(std::size_t size) { stack_.push_back({Value::Kind::number, 0, take_number(size)}); }
  void push_string(std::size_t bytes_of_size) {
    const std::size_t size = take_number(bytes_of_size), begin = at_;
    take(size);
    stack_.push_back({Value::Kind::string, static_cast<std::uint32_t>(size), begin});
  }
  void push_dictionary() {
    constexpr std::size_t kMaxDictionaries = 16;  // nanoGPT's have three
    require(dictionaries_.size() < kMaxDictionaries, "it has too many tables");
    stack_.push_back({Value::Kind::dictionary, 0, dictionaries_.size()});
    dictionaries_.emplace_back();
  }
  Value pop() {
    require(!stack_.empty(), "a value is missing");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }
  void remember() {
    require(!stack_.empty(), "a value is missing");
    remembered_.push_back(stack_.back());
  }
  void recall(std::size_t at) {
    require(at < remembered_.size(), "it refers to a value that it does not have");
    stack_.push_back(remembered_[at]);
  }
  // Moves pairs of key and value, from stack_[begin] on, into the dictionary below them (and below the mark).
  void set_items(std::size_t begin, std::size_t marks) {
    const std::size_t below = begin - marks;
    require(begin >= marks + 1 && begin <= stack_.size() && (stack_.size() - begin) % 2 == 0, "an item is incomplete");
    require(stack_[below - 1].kind == Value::Kind::dictionary, "a value is no dictionary");
    auto& items = dictionaries_[stack_[below - 1].number];
    for (std::size_t i = begin; i < stack_.size(); i += 2) items.push_back({stack_[i], stack_[i + 1]});
    stack_.resize(below);
  }
  void set_marked_items() {
    std::size_t begin = stack_.size();
    while (begin > 0 && stack_[begin - 1].kind != Value::Kind::mark) --begin;
    require(begin > 0, "a mark is missing");
    set_items(begin, 1);
  }
  // Executes an instruction that pushes a new value; returns false for any other.
  bool push(unsigned char code) {
    constexpr unsigned char kShortString = 0x8C;  // SHORT_BINUNICODE
    if (code == '(') return stack_.push_back({Value::Kind::mark}), true;
    if (code == '}') return push_dictionary(), true;
    if (code == 'K') return push_number(1), true;
    if (code == 'M') return push_number(2), true;
    if (code == 'J') return push_number(4), true;
    if (code == 'X') return push_string(4), true;
    if (code == kShortString) return push_string(1), true;
    return false;
  }
  void step(unsigned char code) {
    constexpr unsigned char kProtocol = 0x80, kFrame = 0x95, kMemoize = 0x94;  // PROTO, FRAME, MEMOIZE
    if (push(code)) return;
    if (code == kProtocol || code == kFrame) {
      take(code == kProtocol ? 1 : 8);
    } else if (code == kMemoize) {
      remember();
    } else if (code == 'q' || code == 'r') {
      put(take_number(code == 'q' ? 1 : 4));
    } else if (code == 'h' || code == 'j') {
      recall(take_number(code == 'h' ? 1 : 4));
    } else if (code == 'u') {
      set_marked_items();
    } else {
      require(code == 's', "it does more than to build tables");
      require(stack_.size() >= 2, "an item is incomplete");
      set_items(stack_.size() - 2, 0);
    }
  }
  // Pickles number what they remember in order.
  void put(std::size_t at) {
    require(at == remembered_.size(), "its numbers of values are not in order");
    remember();
  }

  std::string_view pickle_;
  std::size_t at_ = 0;
  std::vector<Value> stack_, remembered_;
  std::vector<std::vector<Item>> dictionaries_;
};

const std::vector<Item>& table(const PickleReader& reader, const Value& tables, std::string_view name) {
  for (const Item& item : reader.items(tables)) {
    if (item.key.kind == Value::Kind::string && reader.text(item.key) == name) return reader.items(item.value);
  }
  fail<CorpusError>("is not a vocabulary of nanoGPT: it has no table {}; name the tokenizer with `tokenizer_file`",
                    name);
}

// The characters of a table, by id. `flipped`: the ids are the values instead of the keys.
std::vector<std::string_view> characters_of(const PickleReader& reader, const std::vector<Item>& items, bool flipped) {
  std::vector<std::string_view> characters(items.size());
  for (const Item& item : items) {
    const Value &id = flipped ? item.value : item.key, &string = flipped ? item.key : item.value;
    const std::string_view text = reader.text(string);
    const bool good = id.kind == Value::Kind::number && string.kind == Value::Kind::string &&
                      id.number < items.size() && !text.empty() && well_formed_size(text) == text.size() &&
                      characters[id.number].empty();
    check<CorpusError>(good,
                       "is not a vocabulary of nanoGPT: its {} entries must be characters with ids from 0 on; name the "
                       "tokenizer with `tokenizer_file`",
                       items.size());
    characters[id.number] = text;
  }
  return characters;
}

}  // namespace

std::unique_ptr<Tokenizer> read_nanogpt_meta(std::string_view pickle) {
  constexpr std::size_t kMaxBytes = std::size_t{512} << 10;  // some 30,000 characters, more than vocabularies have
  check<CorpusError>(pickle.size() <= kMaxBytes,
                     "may have at most {} bytes; it has {}; name the tokenizer with `tokenizer_file`", kMaxBytes,
                     pickle.size());
  PickleReader reader(pickle);
  const Value tables = reader.read();
  const auto characters = characters_of(reader, table(reader, tables, "itos"), /*flipped=*/false);
  check<CorpusError>(
      !characters.empty() && characters == characters_of(reader, table(reader, tables, "stoi"), /*flipped=*/true),
      "is not a vocabulary of nanoGPT: its tables itos and stoi must be each other's inverse; name the tokenizer with "
      "`tokenizer_file`");
  std::string all;
  for (const std::string_view character : characters) all += character;
  auto tokenizer = make_tokenizer("char", all);
  for (std::size_t id = 0; id < characters.size(); ++id) {
    check<CorpusError>(tokenizer->vocab_size() == std::ssize(characters) &&
                           tokenizer->bytes(static_cast<std::int32_t>(id)) == characters[id],
                       "its characters must be in ascending order, as nanoGPT sorts them; the one with id {} is not",
                       id);
  }
  return tokenizer;
}

}  // namespace maki
