// What lies beside a vocabulary: tokenizer_config.json, special_tokens_map.json, added_tokens.json,
// chat_template.jinja.
#include "data/tokenizer/tokenizer_config.h"

#include <nlohmann/json.hpp>

#include "data/tokenizer/tokenizer_files.h"
#include "tests/data/require_refused.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;
using nlohmann::json;

namespace {

constexpr const char* kTokens[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};

// The 256 bytes, and three special tokens from 256 on.
json chat_vocabulary() {
  json document = json::parse(tokenizer_json(*make_tokenizer("byte", "")));
  for (int i = 0; i < 3; ++i) document["added_tokens"].push_back({{"id", 256 + i}, {"content", kTokens[i]}});
  return document;
}

// vocab.json and merges.txt of the 256 bytes and <|endoftext|>, as a slow tokenizer has them.
void write_slow_vocabulary(const TemporaryFolder& folder) {
  json vocabulary = json::parse(tokenizer_json(*make_tokenizer("byte", ""))).at("model").at("vocab");
  vocabulary["<|endoftext|>"] = 256;
  folder.write("vocab.json", vocabulary.dump());
  folder.write("merges.txt", "#version: 0.2\n");
}

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("roles and chat templates beside a tokenizer are read, saved and written again") {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", chat_vocabulary().dump());
  json listed;  // the added tokens once more, as Hugging Face's programs write them
  for (int i = 0; i < 3; ++i) listed[std::to_string(256 + i)] = {{"content", kTokens[i]}, {"special", true}};
  const json config = {{"eos_token", "<|im_end|>"},
                       {"add_prefix_space", false},
                       {"added_tokens_decoder", listed},
                       {"pad_token", {{"content", "<|endoftext|>"}, {"lstrip", false}}},
                       {"additional_special_tokens", {"<|im_start|>", "<|im_end|>"}},
                       {"chat_template", "{{ 'é\n' }}"}};
  folder.write("tokenizer_config.json", config.dump());
  folder.write("special_tokens_map.json", json{{"bos_token", "<|endoftext|>"}, {"eos_token", "<|im_start|>"}}.dump());
  folder.write("added_tokens.json", json{{kTokens[0], 256}, {kTokens[2], 258}}.dump());
  const auto read = read_tokenizer(folder.path());
  REQUIRE(read->vocab_size() == 259);
  const auto tokenizer = load_tokenizer(read->save());
  REQUIRE(tokenizer->save() == read->save());
  REQUIRE(tokenizer->ends() == Ids{258});
  REQUIRE(tokenizer->end_of_text() == 258);
  REQUIRE(tokenizer->use().roles ==
          std::map<std::string, std::int32_t>{{"bos_token", 256}, {"eos_token", 258}, {"pad_token", 256}});
  const json written = json::parse(tokenizer_config_json(*tokenizer, 16));
  REQUIRE(written.at("model_max_length") == 16);
  REQUIRE(written.at("eos_token") == "<|im_end|>");
  REQUIRE(written.at("bos_token") == "<|endoftext|>");
  REQUIRE(written.at("pad_token") == "<|endoftext|>");
  for (const char* const name : {"additional_special_tokens", "chat_template"}) {
    INFO(name);
    REQUIRE(written.at(name) == config.at(name));
  }
  REQUIRE_FALSE(written.contains("unk_token"));
  REQUIRE(json::parse(special_tokens_map_json(*tokenizer)).at("eos_token") == "<|im_end|>");
  // The use of tokens is no part of what they stand for.
  const auto plain = read_tokenizer_json(chat_vocabulary().dump());
  REQUIRE(plain->encodes_like(*tokenizer));
  REQUIRE(plain->hash() != tokenizer->hash());
}

TEST_CASE("a role of an ordinary token is written, and read, by the name that the vocabulary has for it") {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", chat_vocabulary().dump());
  for (const char* const name : {"Ċ", "\n"}) {
    folder.write("tokenizer_config.json", json{{"eos_token", name}, {"pad_token", "zz"}}.dump());
    require_refused([&] { read_tokenizer(folder.path()); }, {"zz", "tokenizer_config.json"});
    folder.write("tokenizer_config.json", json{{"eos_token", name}}.dump());
    const auto tokenizer = read_tokenizer(folder / "tokenizer.json");
    REQUIRE(tokenizer->ends() == Ids{'\n'});
    REQUIRE(json::parse(tokenizer_config_json(*tokenizer, 16)).at("eos_token") == "Ċ");
    REQUIRE(json::parse(special_tokens_map_json(*tokenizer)).at("eos_token") == "Ċ");
  }
}

TEST_CASE("other special tokens are those of both files, in their order, each once") {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", chat_vocabulary().dump());
  const json config = {{"eos_token", "<|im_end|>"},
                       {"additional_special_tokens", {"<|im_end|>", "Ċ", "<|endoftext|>", "Ċ"}}};
  folder.write("tokenizer_config.json", config.dump());
  folder.write("special_tokens_map.json",
               json{{"additional_special_tokens", {"<|endoftext|>", "<|im_start|>"}}}.dump());
  const auto tokenizer = read_tokenizer(folder.path());
  REQUIRE(tokenizer->use().additional == Ids{258, '\n', 256, 257});
  REQUIRE(tokenizer->ends() == Ids{258});
}

TEST_CASE("several chat templates, and one in a file of its own") {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", chat_vocabulary().dump());
  const json list = {{{"name", "default"}, {"template", "old"}}, {{"name", "tool_use"}, {"template", "t"}}};
  folder.write("tokenizer_config.json", json{{"chat_template", list}}.dump());
  folder.write("chat_template.jinja", "new");
  const auto tokenizer = read_tokenizer(folder / "tokenizer.json");
  REQUIRE(tokenizer->use().chat_templates == std::map<std::string, std::string>{{"default", "new"}, {"tool_use", "t"}});
  REQUIRE(json::parse(tokenizer_config_json(*tokenizer, 16)).at("chat_template").size() == 2);
  folder.write("additional_chat_templates/rag.jinja", "r");
  folder.write("additional_chat_templates/tool_use.jinja", "newer");
  folder.write("additional_chat_templates/notes.txt", "no template");
  REQUIRE(read_tokenizer(folder.path())->use().chat_templates ==
          std::map<std::string, std::string>{{"default", "new"}, {"rag", "r"}, {"tool_use", "newer"}});
}

TEST_CASE("a vocabulary without files beside it ends, begins and fills with the token that ends a text") {
  const auto bpe = make_tokenizer("bpe", "the cat the cat");
  const std::int32_t end = bpe->end_of_text().value();
  const TokenUse use = complete_use(*bpe);
  REQUIRE(use.ends == Ids{end});
  REQUIRE(use.begin == end);
  REQUIRE(use.pad == end);
  REQUIRE(json::parse(tokenizer_config_json(*bpe, 8)).at("pad_token") == "<|endoftext|>");
  REQUIRE(complete_use(*make_tokenizer("byte", "")) == TokenUse());
}

TEST_CASE("added tokens of slow tokenizers are read from either file that lists them") {
  const json flags = {{"content", "<|sep|>"}, {"special", false}, {"lstrip", false}};
  const TemporaryFolder added, decoder;
  for (const TemporaryFolder* const folder : {&added, &decoder}) write_slow_vocabulary(*folder);
  added.write("added_tokens.json", json{{"<|pad|>", 257}, {"<|sep|>", 258}}.dump());
  added.write("special_tokens_map.json", json{{"pad_token", "<|pad|>"}}.dump());
  decoder.write("tokenizer_config.json",
                json{{"pad_token", "<|pad|>"},
                     {"added_tokens_decoder", {{"257", {{"content", "<|pad|>"}, {"special", true}}}, {"258", flags}}}}
                    .dump());
  for (const TemporaryFolder* const folder : {&added, &decoder}) {
    for (const std::string& path : {folder->path(), *folder / "vocab.json"}) {
      const auto tokenizer = read_tokenizer(path);
      INFO(path);
      REQUIRE(tokenizer->vocab_size() == 259);
      REQUIRE(tokenizer->end_of_text() == 256);
      REQUIRE(tokenizer->encode("x<|sep|>y") == Ids{'x', 258, 'y'});  // not special: found in every text
      REQUIRE(tokenizer->encode("<|pad|>").size() == 7);
      REQUIRE(tokenizer->encode_with_specials("<|pad|><|endoftext|>") == Ids{257, 256});
    }
  }
}

TEST_CASE("a token that two others make up, but no merge, is special by its form or by a file beside the vocabulary") {
  const TemporaryFolder folder;
  write_slow_vocabulary(folder);
  json vocabulary = json::parse(read_bytes(folder / "vocab.json"));
  for (const char* const name : {"[MASK]", "<終>", "NO", "madeupword"}) vocabulary[name] = vocabulary.size();
  folder.write("vocab.json", vocabulary.dump());
  require_refused([&] { read_tokenizer(folder.path()); }, {"merges.txt", "does not make NO;"});
  for (const auto& [name, text] : {std::pair{"special_tokens_map.json", json{{"pad_token", "NO"}}},
                                   {"tokenizer_config.json", json{{"additional_special_tokens", json::array({"NO"})}}},
                                   {"added_tokens.json", json{{"NO", 259}}}}) {
    INFO(name);
    folder.write(name, text.dump());
    const auto tokenizer = read_tokenizer(folder.path());
    REQUIRE(tokenizer->encode_with_specials("NO<終>[MASK]madeupword") == Ids{259, 258, 257, 260});
    std::filesystem::remove(folder / name);
  }
}

TEST_CASE("files beside a vocabulary that cannot be honoured are refused by name") {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", chat_vocabulary().dump());
  const auto refused = [&](const char* name, const std::string& text, const std::vector<std::string>& words) {
    folder.write(name, text);
    require_refused([&] { read_tokenizer(folder.path()); }, words);
    std::filesystem::remove(folder / name);
  };
  refused("tokenizer_config.json", R"({"pad_token": "[PAD]"})", {"tokenizer_config.json", "[PAD]", "vocabulary"});
  refused("tokenizer_config.json", "[1]", {"tokenizer_config.json", "JSON object"});
  refused("special_tokens_map.json", "{", {"special_tokens_map.json", "not valid JSON"});
  refused("tokenizer_config.json", std::string(100, '[') + std::string(100, ']'), {"nested"});
  refused("tokenizer_config.json", R"({"chat_template": [1]})", {"chat_template", "name"});
  refused("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "<a>"}}})",
          {"added_tokens_decoder", "x"});
  refused("added_tokens.json", R"({"<a>": 300})", {"missing", "259"});
  refused("tokenizer_config.json", R"({"add_prefix_space": true})", {"tokenizer_config.json", "add_prefix_space"});
  for (const char* const name : {"chat_template.jinja", "additional_chat_templates/rag.jinja"})
    refused(name, std::string(300 << 10, 'a'), {"chat templates", "262144"});
}

TEST_CASE("a repeated id is named, and a missing one") {
  const auto message = [](int id, int as) {
    json document = chat_vocabulary();
    for (auto& [name, value] : document["model"]["vocab"].items()) {
      if (value == id) value = as;
    }
    return error_message<CorpusError>([&] { read_tokenizer_json(document.dump()); });
  };
  REQUIRE_THAT(message(6, 5), ContainsSubstring("id 5 is repeated"));
  REQUIRE_THAT(message(1, 0), ContainsSubstring("id 0 is repeated"));
  REQUIRE_THAT(message(0, 255), ContainsSubstring("id 0 is missing"));
  REQUIRE_THAT(message(7, 258), ContainsSubstring("id 7 is missing"));
}

TEST_CASE("a saved use of tokens is accepted in its canonical form alone") {
  const auto plain = make_tokenizer("byte", "");
  const auto saved = [&](const std::string& use) { return "maki used tokenizer 1\n" + use + "\n" + plain->save(); };
  REQUIRE(load_tokenizer(saved(R"({"ends":[10,0],"begin":1})"))->ends() == Ids{10, 0});
  REQUIRE(load_tokenizer(saved(R"({"ends":[10]})"))->end_of_text() == 10);
  for (const char* const bad : {"{}", "", "[]", "{\"ends\":[256]}", "{\"ends\":[-1]}", "{\"ends\": [1]}",
                                "{\"ends\":[1.0]}", "{\"begin\":1,\"ends\":[1]}", "{\"ends\":[[[1]]]}", "{\"other\":1}",
                                "{\"roles\":{\"x\":1}}", "{\"pad\":null}", "{\"chat_templates\":{\"a\":1}}"}) {
    INFO(bad);
    REQUIRE_THROWS_AS(load_tokenizer(saved(bad)), CorpusError);
  }
  REQUIRE_THROWS_AS(load_tokenizer("maki used tokenizer 1\n" + saved(R"({"ends":[1]})")), CorpusError);
  REQUIRE_THROWS_AS(load_tokenizer("maki normalized tokenizer 1\nnfc\n" + saved(R"({"ends":[1]})")), CorpusError);
}
