// What a model directory says about its special tokens: it is kept by maki import, used by maki generate, and written
// by maki export.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/tokenizer/pre_tokenizer.h"
#include "tests/cli/json_lines.h"
#include "tests/cli/require_refused.h"
#include "tests/train/read_gguf.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

// A trained model in a Hugging Face directory: 256 bytes, 4 merges, and the added tokens <|im_start|> (260), <|im_end|>
// (261) and <|endoftext|> (262).
class Directory {
 public:
  Directory() {
    const std::string run = folder / "run", corpus = folder.write("corpus.txt", small_text());
    require_ok(run_maki(Arguments{"train",        corpus, "--out",        run,         "--max-steps",  "1",
                                  "--n-layer",    "1",    "--n-head",     "2",         "--n-embd",     "16",
                                  "--block-size", "16",   "--batch-size", "2",         "--tokenizer",  "bpe",
                                  "--vocab-size", "263",  "--activation", "gelu_tanh", "--no-counting"}));
    require_ok(run_maki({"export", run, "--format", "hf", "--out", path}));
    std::filesystem::remove(path + "/maki-tokenizer");
    std::filesystem::remove(path + "/tokenizer_config.json");
    std::filesystem::remove(path + "/special_tokens_map.json");
    std::filesystem::remove(path + "/generation_config.json");
    // The last two merges become added tokens.
    edit("tokenizer.json", [](json& j) {
      json& model = j["model"];
      for (const char* const name : {"<|im_start|>", "<|im_end|>"}) {
        const int id = name == std::string("<|im_start|>") ? 260 : 261;
        const json before = model["vocab"];
        for (const auto& [token, value] : before.items()) {
          if (value == id) model["vocab"].erase(token);
        }
        j["added_tokens"].push_back({{"id", id}, {"content", name}, {"special", true}});
      }
      json merges = json::array();
      for (std::size_t i = 0; i < 4; ++i) merges.push_back(model["merges"][i]);
      model["merges"] = merges;
    });
  }

  template <class Change>
  void edit(const std::string& name, const Change& change) {
    const std::string file = path + "/" + name;
    json j = std::filesystem::exists(file) ? json::parse(read_bytes(file)) : json::object();
    change(j);
    write_bytes(file, j.dump());
  }
  void set(const std::string& name, const std::string& key, const json& value) {
    edit(name, [&](json& j) { j[key] = value; });
  }
  // Imports the directory and returns the path of the run.
  std::string imported() {
    const std::string run = folder / ("imported-" + std::to_string(++runs_));
    require_ok(run_maki({"import", path, "--out", run}));
    return run;
  }

  TemporaryFolder folder;
  const std::string path = folder / "hf";

 private:
  int runs_ = 0;
};

// Why a text ends whose tokens are all `id`.
std::string end_of(const std::string& run, int id) {
  const std::string bias = std::to_string(id) + "=1000";
  const Finished ended =
      require_ok(run_maki({"generate", run, "--prompt", "a", "--logit-bias", bias, "--max-tokens", "3", "--json"}));
  return json_lines(ended.out).at(0).at("stop");
}

json exported(const std::string& run, const std::string& file) {
  const TemporaryFolder folder;
  require_ok(run_maki({"export", run, "--format", "hf", "--out", folder / "hf"}));
  return json::parse(read_bytes(folder / ("hf/" + file)));
}

ReadGguf gguf_of(const std::string& run, const TemporaryFolder& folder) {
  require_ok(run_maki({"export", run, "--format", "gguf", "--out", folder / "m.gguf"}));
  return ReadGguf(folder / "m.gguf");
}

}  // namespace

TEST_CASE("generation stops at the tokens that the model directory names, and an export names them again") {
  Directory directory;
  directory.set("config.json", "eos_token_id", 261);
  directory.set("config.json", "bos_token_id", 262);
  directory.set("config.json", "pad_token_id", 260);
  const std::string one = directory.imported();
  REQUIRE(end_of(one, 261) == "end of text");
  REQUIRE(end_of(one, 262) == "length");
  const json config = exported(one, "config.json");
  REQUIRE(config.at("eos_token_id") == 261);
  REQUIRE(config.at("bos_token_id") == 262);
  REQUIRE(config.at("pad_token_id") == 260);
  const json tokenizer = exported(one, "tokenizer_config.json");
  REQUIRE(tokenizer.at("eos_token") == "<|im_end|>");
  REQUIRE(tokenizer.at("bos_token") == "<|endoftext|>");
  REQUIRE(tokenizer.at("pad_token") == "<|im_start|>");

  // generation_config.json takes precedence, and may list several.
  directory.set("generation_config.json", "eos_token_id", {261, 262, 50256});
  const std::string several = directory.imported();
  for (const int id : {261, 262}) REQUIRE(end_of(several, id) == "end of text");
  REQUIRE(end_of(several, 260) == "length");
  REQUIRE(exported(several, "generation_config.json").at("eos_token_id") == json{261, 262});
  const auto tokenizer_of = [](const std::string& run) {
    return json::parse(require_ok(run_maki({"tokenizer", "inspect", run, "--json"})).out);
  };
  REQUIRE(tokenizer_of(several).at("ends") == json{261, 262});
  REQUIRE(tokenizer_of(several).at("end_of_text") == 261);
  REQUIRE_FALSE(tokenizer_of(one).contains("ends"));
  // Trained further, a model keeps what it came with.
  const std::string tuned = directory.folder / "tuned";
  require_ok(
      run_maki({"train", directory.folder / "corpus.txt", "--init-from", several, "--out", tuned, "--max-steps", "1"}));
  REQUIRE(end_of(tuned, 261) == "end of text");
  REQUIRE(exported(tuned, "config.json").at("eos_token_id") == json{261, 262});
}

TEST_CASE("without ids in the directory the name of a special token decides") {
  Directory directory;
  directory.set("config.json", "eos_token_id", nullptr);
  REQUIRE(end_of(directory.imported(), 262) == "end of text");
  directory.set("config.json", "eos_token_id", -1);
  REQUIRE(end_of(directory.imported(), 262) == "end of text");
  for (const json& wrong : {json("end"), json(2147483648U), json(18446744073709551615U)}) {
    directory.set("config.json", "eos_token_id", wrong);
    require_refused(run_maki({"import", directory.path, "--out", directory.folder / "x"}), 4,
                    {"eos_token_id must be an id or a list of ids; got " + wrong.dump()});
  }
}

TEST_CASE("chat template and special tokens map go out as they came in") {
  Directory directory;
  const std::string text = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}";
  directory.set("tokenizer_config.json", "chat_template", text);
  directory.set("special_tokens_map.json", "sep_token", "<|im_start|>");
  const std::string run = directory.imported();
  REQUIRE(exported(run, "tokenizer_config.json").at("chat_template") == text);
  REQUIRE(exported(run, "special_tokens_map.json").at("sep_token") == "<|im_start|>");
  const ReadGguf file = gguf_of(run, directory.folder);
  REQUIRE(file.values.at("tokenizer.chat_template") == text);
}

TEST_CASE("a run that maki trained exports its end token as the end, the beginning and the filling") {
  const TemporaryFolder folder;
  Directory directory;
  const std::string run = directory.folder / "run";
  const json tokenizer = exported(run, "tokenizer_config.json"), config = exported(run, "config.json");
  for (const char* const role : {"eos_token", "bos_token", "pad_token"}) {
    INFO(role);
    REQUIRE(tokenizer.at(role) == "<|endoftext|>");
    REQUIRE(config.at(std::string(role) + "_id") == 262);
  }
}

TEST_CASE("a GGUF file names the pre-tokenizer, the types and the uses of tokens") {
  Directory directory;
  directory.set("config.json", "eos_token_id", {0, 261, 262});
  directory.set("config.json", "bos_token_id", 262);
  directory.set("config.json", "pad_token_id", 0);
  json templates = json::array();
  for (const char* const name : {"default", "rag", "tool_use"})
    templates.push_back({{"name", name}, {"template", std::string("of ") + name}});
  directory.set("tokenizer_config.json", "chat_template", templates);
  directory.edit("tokenizer.json", [](json& j) { j["added_tokens"][1]["special"] = false; });
  const std::string run = directory.imported();
  const ReadGguf file = gguf_of(run, directory.folder);
  REQUIRE(file.values.at("tokenizer.ggml.pre") == "gpt-2");
  REQUIRE(file.values.at("tokenizer.ggml.eos_token_id") == "0");
  REQUIRE(file.values.at("tokenizer.ggml.eot_token_id") == "261");
  REQUIRE(file.values.at("tokenizer.ggml.eom_token_id") == "262");
  REQUIRE(file.values.at("tokenizer.ggml.bos_token_id") == "262");
  REQUIRE(file.values.at("tokenizer.ggml.padding_token_id") == "0");
  REQUIRE(file.values.at("tokenizer.chat_template") == "of default");
  REQUIRE(file.values.at("tokenizer.chat_template.rag") == "of rag");
  REQUIRE(file.values.at("tokenizer.chat_template.tool_use") == "of tool_use");
  REQUIRE(file.values.at("tokenizer.chat_templates") == "rag\ntool_use\n");
  REQUIRE_THAT(file.values.at("tokenizer.ggml.token_type"), Catch::Matchers::EndsWith("\n1\n4\n3\n3\n"));
  REQUIRE_FALSE(file.values.contains("tokenizer.ggml.suppress_tokens"));
}

TEST_CASE("a GGUF file has llama.cpp's name of every rule, or is refused") {
  const auto split = [](const char* numbers) {
    return json::parse(
        std::string(
            R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d))") +
        R"(|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|)" + numbers +
        R"(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},)" +
        R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})");
  };
  const json cl100k = split(R"(\\p{N}{1,3})"), qwen2 = split(R"(\\p{N})");
  json o200k = cl100k;
  o200k["pretokenizers"][0]["pattern"]["Regex"] = maki::PreTokenizer::expression_of_rule("o200k");
  Directory directory;
  const json gpt2 = json::parse(read_bytes(directory.path + "/tokenizer.json")).at("pre_tokenizer");
  std::string said;
  const auto exported_as = [&](const json& rule, bool whole) {
    directory.edit("tokenizer.json", [&](json& j) {
      j["pre_tokenizer"] = rule;
      j["model"]["ignore_merges"] = whole;
    });
    const TemporaryFolder folder;
    const std::string out = folder / "m.gguf";
    const Finished finished = run_maki({"export", directory.imported(), "--format", "gguf", "--out", out});
    said = finished.err;
    if (finished.exit_code == 0) return ReadGguf(out).values.at("tokenizer.ggml.pre");
    require_refused(finished, 2, {"llama.cpp has no name for a tokenizer with the rule", "ignore_merges"});
    return std::string("refused");
  };
  REQUIRE(exported_as(gpt2, false) == "gpt-2");
  REQUIRE(exported_as(gpt2, true) == "refused");
  REQUIRE(exported_as(cl100k, true) == "llama-bpe");
  REQUIRE(exported_as(cl100k, false) == "dbrx");
  REQUIRE(exported_as(qwen2, false) == "qwen2");
  REQUIRE(said.empty());
  REQUIRE(exported_as(qwen2, true) == "refused");
  REQUIRE(exported_as(o200k, false) == "gpt-4o");
  REQUIRE_THAT(said, ContainsSubstring("knows no combining marks") && ContainsSubstring("--format hf keeps the rule"));
}

TEST_CASE(
    "special tokens in prompts and texts are tokens with --special, and a text that contains them is told of it") {
  Directory directory;
  const std::string run = directory.imported(),
                    corpus = directory.folder.write("chat.txt", "<|im_start|>the cat<|im_end|>\n" + small_text());
  const auto tokens = [&](const Arguments& more) {
    const Finished shown = require_ok(run_maki(Arguments{"attend", run, "--prompt", "<|im_start|>a", "--json"} + more));
    return json::parse(shown.out).at("queries").size();
  };
  REQUIRE(tokens({}) > 5);
  REQUIRE(tokens({"--special"}) == 2);
  for (const char* const verb : {"generate", "eval"}) {
    INFO(verb);
    const std::string text = verb == std::string("eval") ? corpus : "";
    Arguments arguments = {verb, run};
    if (!text.empty()) arguments.push_back(text);
    require_ok(run_maki(arguments + Arguments{"--special"}));
  }
  const auto trained = [&](const std::string& out, const Arguments& more) {
    return require_ok(run_maki(
        Arguments{"train", corpus, "--init-from", run, "--out", directory.folder / out, "--max-steps", "1"} + more));
  };
  REQUIRE_THAT(trained("spelled", {}).err,
               ContainsSubstring("<|im_start|> (1 time), <|im_end|> (1 time)") && ContainsSubstring("--special"));
  REQUIRE_THAT(trained("read", {"--special"}).err, !ContainsSubstring("<|im_start|> (1 time)"));
  // The new run reads them as tokens from now on.
  const Finished ids = require_ok(run_maki({"tokenizer", "encode", directory.folder / "read", corpus}));
  REQUIRE(ids.out.starts_with("260 "));
  require_refused(run_maki({"train", "--resume", directory.folder / "read", "--special", "--max-steps", "2"}), 2,
                  {"special"});
  require_refused(run_maki({"train", corpus, "--special", "--out", directory.folder / "x", "--max-steps", "1"}), 2,
                  {"special: needs a tokenizer"});
  const std::string characters = directory.folder / "characters";
  require_ok(run_maki({"train", directory.folder / "corpus.txt", "--out", characters, "--max-steps", "1"}));
  require_refused(run_maki({"generate", characters, "--special"}), 3,
                  {"special: needs a vocabulary with special tokens"});
}

TEST_CASE("tokens that were prepared with --special fit the model whose tokenizer made them, and are its text") {
  Directory directory;
  const TemporaryFolder& folder = directory.folder;
  const std::string run = directory.imported(), tokens = folder / "t", whole = folder / "whole",
                    corpus = folder.write("chat.txt", "<|im_start|>the cat<|im_end|>\n" + small_text());
  const Arguments prepare = {"prepare", corpus, "--tokenizer-file", run, "--out"}, one = {"--max-steps", "1"};
  const std::string note = "<|im_start|> (1 time), <|im_end|> (1 time), read as ordinary characters; --special";
  REQUIRE_THAT(require_ok(run_maki(prepare + Arguments{tokens})).err, ContainsSubstring(note));
  const Finished special = require_ok(run_maki(prepare + Arguments{tokens, "--special", "--force"}));
  REQUIRE_THAT(special.err, !ContainsSubstring("<|im_start|>"));
  require_ok(run_maki(prepare + Arguments{whole, "--special", "--val-fraction", "0"}));
  const auto loss = [&](const Arguments& text) {
    return json::parse(require_ok(run_maki(Arguments{"eval", run, "--json"} + text)).out).at("val_loss");
  };
  REQUIRE(loss({whole}) == loss({corpus, "--special"}));
  // A run on the tokens is one on the text, and no continuation of one that has read it otherwise.
  const std::string of_tokens = folder / "of-tokens", of_text = folder / "of-text", spelled = folder / "spelled";
  const Arguments from = {"--init-from", run, "--out"};
  require_ok(run_maki(Arguments{"train", tokens} + from + Arguments{of_tokens} + one));
  require_ok(run_maki(Arguments{"train", corpus, "--special"} + from + Arguments{of_text} + one));
  REQUIRE(read_bytes(checkpoint(of_tokens, 1)) == read_bytes(checkpoint(of_text, 1)));
  require_ok(run_maki({"train", "--resume", of_tokens, corpus, "--max-steps", "2"}));
  require_ok(run_maki(Arguments{"train", corpus} + from + Arguments{spelled} + one));
  require_refused(run_maki({"train", "--resume", spelled, tokens, "--max-steps", "2"}), 3,
                  {tokens, "reads special tokens in another way", "without --special"});
  // Models that have read it otherwise predict the same tokens.
  require_ok(run_maki({"eval", run, corpus, "--with", of_text}));
  require_ok(
      run_maki(Arguments{"train", corpus, "--tokenizer-file", run, "--teacher", of_text, "--out", folder / "taught"} +
               one + kSmall));
}

TEST_CASE("what lies beside a tokenizer is never replaced by what is made with it") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), tokenizer = folder / "hf/tokenizer.json";
  require_ok(run_maki({"tokenizer", "train", corpus, "--out", tokenizer, "--vocab-size", "300"}));
  for (const std::string name :
       {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
        "additional_chat_templates/rag.jinja", "vocab.json", "merges.txt"}) {
    const std::string out = folder.write("hf/" + name, "{}");
    require_refused(run_maki({"prepare", corpus, "--tokenizer-file", tokenizer, "--out", out, "--force"}), 2,
                    {out, "is read by this command"});
    REQUIRE(read_bytes(out) == "{}");
  }
}

TEST_CASE("lines are encoded without the carriage returns of Windows") {
  const TemporaryFolder folder;
  const std::string tokenizer = folder.write("maki-tokenizer", "maki byte tokenizer 1\n");
  RunOptions options;
  options.input = "ab\r\n\r\nc\rd\ne\r";
  const Finished ids = require_ok(run_maki({"tokenizer", "encode", tokenizer, "--lines"}, options));
  REQUIRE(ids.out == "97 98\n\n99 13 100\n101\n");
}

TEST_CASE("a Hugging Face directory in the place of a run or a text names maki import") {
  Directory directory;
  for (const Arguments& verb :
       {Arguments{"inspect"}, Arguments{"train", "--out", directory.folder / "new"},
        Arguments{"eval", directory.folder / "run"}, Arguments{"prepare", "--out", directory.folder / "tokens"}})
    require_refused(run_maki(verb + Arguments{directory.path}), 2, {"is a model of Hugging Face", "maki import"});
  require_refused(run_maki({"generate", directory.path}), 2,
                  {"is a model of Hugging Face", "maki import " + directory.path});
  require_refused(run_maki({"train", directory.folder / "corpus.txt", "--init-from", directory.path}), 2,
                  {"maki import"});
}

TEST_CASE("pointers of Git LFS are named by every reader") {
  const TemporaryFolder folder;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') + "\nsize 12345\n";
  Directory directory;
  const std::string hf = directory.path, run = directory.folder / "run";
  const auto refused = [&](const Arguments& arguments, int code) {
    INFO(arguments[0]);
    require_refused(run_maki(arguments), code, {"is a pointer that Git LFS left", "git lfs pull"});
  };
  const std::string text = folder.write("text.txt", pointer), tokens = folder.write("tokens.bin", pointer);
  const std::string vocabulary = folder.write("tokenizer.json", pointer), ranks = folder.write("a.tiktoken", pointer);
  refused({"train", text, "--out", folder / "r"}, 3);
  refused({"tokenizer", "inspect", vocabulary}, 3);
  refused({"tokenizer", "inspect", ranks}, 3);
  refused({"train", tokens, "--tokenizer-file", hf, "--out", folder / "r"}, 3);
  refused({"import", folder.write("model.bin", pointer), "--tokenizer", "byte", "--out", folder / "r"}, 4);
  refused({"generate", folder.write("step-00000001.maki", pointer)}, 4);
  refused({"generate", run, "--prompt-file", text}, 3);
  for (const char* const name : {"model.safetensors", "tokenizer.json", "config.json"}) {
    const std::string before = read_bytes(hf + "/" + name);
    write_bytes(hf + "/" + name, pointer);
    refused({"import", hf, "--out", folder / "r"}, std::string(name) == "tokenizer.json" ? 3 : 4);
    write_bytes(hf + "/" + name, before);
  }
}

TEST_CASE("files that are no checkpoints are named by maki inspect") {
  const TemporaryFolder folder;
  require_refused(run_maki({"inspect", folder.write("train.bin", "abcd")}), 3, {"train.bin", "nanoGPT or llm.c"});
}
