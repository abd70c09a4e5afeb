// The verbs that draw: attention weights of trained models, and positions.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "data/io/utf8.h"
#include "tests/cli/require_refused.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

std::string trained(const TemporaryFolder& folder, const std::string& name, const Arguments& more,
                    const std::string& text = small_text()) {
  const std::string corpus = folder.write(name + ".txt", text), run = folder / name;
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "3"} + kSmall + more));
  return run;
}

json drawn(const Arguments& arguments) {
  return json::parse(require_ok(run_maki(Arguments{"attend"} + arguments + Arguments{"--json"})).out);
}

// Requires [layer][head][query][key] weights that sum to 1 for each query, with none at later keys if causal.
void require_weights(const json& facts, std::size_t layers, std::size_t heads) {
  const json& weights = facts.at("weights");
  REQUIRE(facts.at("layers").size() == layers);
  REQUIRE(facts.at("heads").size() == heads);
  REQUIRE(weights.size() == layers);
  for (const json& layer : weights) {
    REQUIRE(layer.size() == heads);
    for (const json& head : layer) {
      REQUIRE(head.size() == facts.at("queries").size());
      for (std::size_t t = 0; t < head.size(); ++t) {
        REQUIRE(head[t].size() == facts.at("keys").size());
        double sum = 0;
        for (std::size_t s = 0; s < head[t].size(); ++s) {
          const double weight = head[t][s].get<double>();
          sum += weight;
          if (facts.at("causal").get<bool>() && s > t) REQUIRE(weight == 0);
        }
        REQUIRE(std::abs(sum - 1) < 1e-5);
      }
    }
  }
}

// Letters are translated into their words.
std::string letter_pairs() {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += i % 2 == 0 ? "a b\tone two\n" : "b a a\ttwo one one\n";
  return lines;
}

}  // namespace

TEST_CASE("attend: every model of one text gives weights that sum to 1, although it was trained with dropout") {
  const TemporaryFolder folder;
  const std::vector<Arguments> models = {{},
                                         {"--positions", "rotary", "--norm-order", "post"},
                                         {"--dtype", "float64", "--positions", "none"},
                                         {"--model", "linear", "--attention", "elu"},
                                         {"--model", "linear", "--attention", "random:8"},
                                         {"--model", "linear", "--attention", "nystrom:8"},
                                         {"--model", "linear", "--attention", "softmax"},
                                         {"--model", "encoder"}};
  for (std::size_t i = 0; i < models.size(); ++i) {
    const std::string run = trained(folder, "run" + std::to_string(i), models[i]);
    const json facts = drawn({run, "--prompt", "the tree"});
    require_weights(facts, 2, 2);
    REQUIRE(facts.at("kind") == "self");
    REQUIRE(facts.at("causal") == (i + 1 < models.size()));
    REQUIRE(facts.at("queries") == json({"t", "h", "e", " ", "t", "r", "e", "e"}));
    REQUIRE(facts.at("keys") == facts.at("queries"));
  }
}

TEST_CASE("attend: a model that fills masks reads them as one token, other models as text") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "run", {"--model", "encoder"});
  const json facts = drawn({run, "--prompt", "t[MASK]e t[MASK]"});
  require_weights(facts, 2, 2);
  REQUIRE(facts.at("keys") == json({"t", "[MASK]", "e", " ", "t", "[MASK]"}));
  REQUIRE(facts.at("weights") != drawn({run, "--prompt", "tee te"}).at("weights"));
  const std::string csv = require_ok(run_maki({"attend", run, "--prompt", "t[MASK]e t[MASK]", "--csv"})).out;
  REQUIRE(std::ranges::count(csv, '\n') == 1 + 2 * 2 * 6 * 6);  // later keys as well
  REQUIRE_THAT(csv, ContainsSubstring("\n1,1,0,5,t,[MASK],"));
  const std::string gpt = trained(folder, "gpt", {});
  require_refused(run_maki({"attend", gpt, "--prompt", "t[MASK]e"}), 3, {"prompt", "lacks these characters"});
}

TEST_CASE("attend: one layer and one head are those of all, in every form") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "run", {});
  const json all = drawn({run, "--prompt", "the"}),
             one = drawn({run, "--prompt", "the", "--layer", "1", "--head", "0"});
  require_weights(one, 1, 1);
  REQUIRE(one.at("layers") == json::array({1}));
  REQUIRE(one.at("heads") == json::array({0}));
  REQUIRE(one.at("weights")[0][0] == all.at("weights")[1][0]);
  REQUIRE(all.at("weights")[0][0] != all.at("weights")[0][1]);
  REQUIRE(all.at("weights")[0][0] != all.at("weights")[1][0]);

  const Arguments some = {"attend", run, "--prompt", "the", "--layer", "1", "--head", "0"};
  std::istringstream csv(require_ok(run_maki(some + Arguments{"--csv"})).out);
  std::string line, last;
  int lines = 0;
  for (; std::getline(csv, line); ++lines) last = line;
  REQUIRE(lines == 1 + 6);  // the pairs that are seen
  REQUIRE(last.starts_with("1,0,2,2,e,e,"));
  REQUIRE(std::abs(std::stod(last.substr(12)) - all.at("weights")[1][0][2][2].get<double>()) < 1e-7);

  const std::string text = require_ok(run_maki(some)).out;
  REQUIRE(text == require_ok(run_maki(some + Arguments{"--text"})).out);
  REQUIRE_THAT(text, ContainsSubstring("layer 1, head 0\n  t h e\nt ██\n") && !ContainsSubstring("layer 0"));

  const std::string file = folder / "weights.svg";
  const Finished finished = require_ok(run_maki(some + Arguments{"--out", file}));
  REQUIRE(finished.out.empty());
  REQUIRE_THAT(finished.err, ContainsSubstring(file));
  const std::string svg = read_text(file);
  REQUIRE(svg.starts_with("<?xml"));
  REQUIRE(svg.ends_with("</svg>\n"));
  REQUIRE_THAT(svg, ContainsSubstring("<desc") && ContainsSubstring("layer 1, head 0") &&
                        ContainsSubstring("no token attends to later ones"));
}

TEST_CASE("attend: Japanese labels are aligned, and control characters escaped") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "run", {}, small_japanese_text() + "\n\t<&\n");
  const json facts = drawn({run, "--prompt", "\t<&\n"});
  REQUIRE(facts.at("keys") == json({"\t", "<", "&", "\n"}));
  const Arguments one = {"--layer", "0", "--head", "0"};
  const std::string prompt = "\t<" + small_japanese_text().substr(0, 3);
  const std::string text = require_ok(run_maki(Arguments{"attend", run, "--prompt", prompt} + one)).out;
  REQUIRE_THAT(text, ContainsSubstring("\n\\t ██\n < "));
  std::istringstream lines(text);
  std::string line;
  for (int i = 0; std::getline(lines, line); ++i) {
    if (i != 1) REQUIRE(maki::display_width(line) <= 80);  // the second is the path
  }
  const std::string file = folder / "weights.svg";
  require_ok(run_maki(Arguments{"attend", run, "--prompt", prompt, "--out", file} + one));
  REQUIRE_THAT(read_text(file), ContainsSubstring(">\\t</text>") && ContainsSubstring(">&lt;</text>"));
}

TEST_CASE("drawings have Japanese words if that is asked for, and numbers have none") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "run", {}), file = folder / "weights.svg";
  const Arguments attend = {"attend", run, "--prompt", "the", "--lang", "ja"};
  REQUIRE_THAT(require_ok(run_maki(attend)).out, ContainsSubstring("注意の重み\n") &&
                                                     ContainsSubstring("\n層 0、ヘッド 1\n") &&
                                                     ContainsSubstring("未満"));
  require_ok(run_maki(attend + Arguments{"--out", file}));
  REQUIRE_THAT(read_text(file), ContainsSubstring("lang=\"ja\"") && ContainsSubstring(">キー：") &&
                                    !ContainsSubstring("head") && !ContainsSubstring(" step "));
  const std::string positions = require_ok(run_maki({"positions", "--lang", "ja"})).out;
  REQUIRE_THAT(positions, ContainsSubstring("底 10000、幅 128") && !ContainsSubstring("column"));
  require_refused(run_maki(attend + Arguments{"--json"}), 2, {"lang: ", "--json"});
  require_refused(run_maki({"positions", "--csv", "--lang", "en"}), 2, {"lang: ", "--csv"});
  require_refused(run_maki({"positions", "--lang", "jp"}), 2, {"lang: must be one of en, ja; got jp"});
}

TEST_CASE("attend: a model that translates shows three kinds, of its own translation or of a given one") {
  const TemporaryFolder folder;
  const std::string run = folder / "pairs", corpus = folder.write("pairs.tsv", letter_pairs());
  require_ok(
      run_maki({"train",        corpus, "--model",     "seq2seq", "--tokenizer",     "word", "--out",        run,
                "--n-layer",    "2",    "--n-head",    "2",       "--n-embd",        "16",   "--block-size", "12",
                "--batch-size", "4",    "--max-steps", "60",      "--learning-rate", "0.01", "--dropout",    "0.1"}));
  const Arguments given = {run, "--prompt", "a b", "--target", "one two"};
  const json cross = drawn(given), encoder = drawn({run, "--prompt", "a b", "--kind", "encoder"}),
             decoder = drawn(given + Arguments{"--kind", "decoder"});
  for (const json* facts : {&cross, &encoder, &decoder}) require_weights(*facts, 2, 2);
  REQUIRE(cross.at("kind") == "cross");
  REQUIRE(cross.at("queries").size() == 3);
  REQUIRE(cross.at("queries")[2] == "<end>");
  REQUIRE(cross.at("keys").size() == 3);
  REQUIRE(encoder.at("queries") == cross.at("keys"));
  REQUIRE(encoder.at("keys") == cross.at("keys"));
  REQUIRE_FALSE(encoder.at("causal").get<bool>());
  REQUIRE(decoder.at("queries")[0] == "<start>");
  REQUIRE(decoder.at("queries")[2] == cross.at("queries")[1]);
  REQUIRE(decoder.at("causal").get<bool>());

  const std::string written = require_ok(run_maki({"generate", run, "--prompt", "a b"})).out;
  const Finished own = require_ok(run_maki({"attend", run, "--prompt", "a b", "--json"}));
  REQUIRE(written.size() > 1);
  REQUIRE(own.err == "translation: " + written);
  REQUIRE(json::parse(own.out) == drawn({run, "--prompt", "a b", "--target", written.substr(0, written.size() - 1)}));
  REQUIRE(drawn({run, "--prompt", "a b", "--target", ""}).at("queries") == json({"<end>"}));
  // Of a translation that does not end, 64 tokens are drawn.
  std::string lines, target = "one";
  for (int i = 1; i < 79; ++i) target += " one";
  for (int i = 0; i < 20; ++i) lines += "a b\t" + target + "\n";
  const std::string endless = folder / "endless";
  require_ok(run_maki({"train",           folder.write("endless.tsv", lines),
                       "--model",         "seq2seq",
                       "--tokenizer",     "word",
                       "--out",           endless,
                       "--n-layer",       "1",
                       "--n-head",        "2",
                       "--n-embd",        "16",
                       "--block-size",    "80",
                       "--batch-size",    "4",
                       "--max-steps",     "20",
                       "--learning-rate", "0.01",
                       "--warmup-steps",  "0",
                       "--dropout",       "0"}));
  const Finished cut = require_ok(run_maki({"attend", endless, "--prompt", "a b", "--json"}));
  REQUIRE(cut.err == "translation: " + target.substr(0, 64 * 4 - 1) + "\n");
  REQUIRE(json::parse(cut.out).at("queries").size() == 65);
  require_refused(run_maki({"attend", run, "--prompt", "a b", "--kind", "crss"}), 2,
                  {"kind: must be", "crss", "cross"});
  // The encoder does not depend on a translation: none is given or searched for.
  REQUIRE(require_ok(run_maki({"attend", run, "--prompt", "a b", "--kind", "encoder", "--json"})).err.empty());
  require_refused(run_maki(Arguments{"attend"} + given + Arguments{"--kind", "encoder"}), 2,
                  {"--target has no effect", "--kind"});
}

TEST_CASE("attend: what it cannot draw is refused with a sentence") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "run", {});
  const auto refused = [&](const Arguments& more, int code, const std::vector<std::string>& words) {
    require_refused(run_maki(Arguments{"attend", run} + more), code, words);
  };
  refused({"--prompt", ""}, 2, {"prompt: must not be empty"});
  refused({"--prompt", "the", "--layer", "2"}, 2, {"layer: must be", "2"});
  refused({"--prompt", "the", "--head", "-1"}, 2, {"head: must be", "-1"});
  refused({"--prompt", "the", "--kind", "cross"}, 2, {"--kind and --target are for models that", "gpt"});
  refused({"--prompt", "the", "--target", "x"}, 2, {"--kind and --target are for models that", "gpt"});
  refused({"--prompt", "the", "--csv", "--json"}, 2, {"use only one of them"});
  refused({"--prompt", "猫"}, 3, {"猫"});
  refused({"--prompt", "\xff"}, 3, {"prompt: must be UTF-8"});
  refused({"--prompt", small_text().substr(0, 17)}, 3, {"prompt: may have at most 16 tokens", "it has 17; shorten it"});
  refused({"--prompt", "the", "--out", folder / "run.txt/such.svg"}, 4, {"run.txt is not a directory"});
  const std::string long_run = trained(folder, "long", {"--positions", "none"});
  require_refused(run_maki({"attend", long_run, "--prompt", small_text().substr(0, 513)}), 2,
                  {"at most 512 tokens", "it has 513"});
}

TEST_CASE("positions: four forms of the same numbers") {
  const Arguments size = {"positions", "--base", "100", "--width", "4", "--length", "3"};
  const json facts = json::parse(require_ok(run_maki(size + Arguments{"--json"})).out);
  REQUIRE(facts.at("base") == 100);
  REQUIRE(facts.at("encoding").size() == 3);
  REQUIRE(facts.at("encoding")[0] == json({0.0, 1.0, 0.0, 1.0}));
  REQUIRE(facts.at("encoding")[2][2] == std::sin(0.2));
  REQUIRE(facts.at("dot_products").size() == 3);
  REQUIRE(facts.at("dot_products")[1][1] == facts.at("dot_products")[2][2]);
  REQUIRE(facts.at("dot_products")[0][1] == facts.at("dot_products")[1][0]);
  REQUIRE(facts.at("wavelengths").size() == 2);

  std::istringstream csv(require_ok(run_maki(size + Arguments{"--csv"})).out);
  std::vector<std::string> lines;
  for (std::string line; std::getline(csv, line);) lines.push_back(line);
  REQUIRE(lines.size() == 1 + 12 + 9 + 2);
  REQUIRE(lines[0] == "quantity,row,column,value");
  REQUIRE(lines[1 + 1 * 4 + 2] == fmt::format("encoding,1,2,{}", std::sin(0.1)));
  REQUIRE(lines[1 + 12 + 2 * 3 + 1] == fmt::format("dot_product,2,1,{}", facts.at("dot_products")[2][1].get<double>()));
  REQUIRE(lines.back().starts_with("wavelength,0,1,62.83"));
  REQUIRE_THAT(require_ok(run_maki(size)).out, ContainsSubstring("base 100, width 4, 3 positions"));

  const TemporaryFolder folder;
  const std::string file = folder / "positions.svg";
  REQUIRE(require_ok(run_maki(size + Arguments{"--out", file})).out.empty());
  REQUIRE_THAT(read_text(file), ContainsSubstring("dot products") && ContainsSubstring("wavelength"));
  require_refused(run_maki({"positions", "--base", "1"}), 2, {"must be above 1; got 1"});
  require_refused(run_maki({"positions", "--length", "1025"}), 2, {"length: must be", "1025"});
  require_refused(run_maki({"positions", "--text", "--out", file}), 2, {"use only one of them"});
  require_refused(run_maki({"positions", "--out", folder / "p.png"}), 2, {"out: must end with .svg", "p.png"});
}
