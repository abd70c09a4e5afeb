// Encoders on the command line: training, resuming, `fill`, `embed`, classification, and what they refuse.
#include "nn/models/encoder.h"

#include <cmath>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tests/catch.h"
#include "tests/cli/json_lines.h"
#include "tests/cli/require_refused.h"
#include "tests/cli/small_run.h"
#include "train/run/loaded_model.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

const Arguments kEncoder = kSmall + Arguments{"--model", "encoder"};

struct TrainedEncoder {
  explicit TrainedEncoder(const Arguments& more = {}) {
    trained = require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "60"} + kEncoder + more));
  }
  TemporaryFolder folder;
  std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  Finished trained;
};

std::vector<json> embedded(const std::string& run, const Arguments& texts) {
  return json_lines(require_ok(run_maki(Arguments{"embed", run, "--json"} + texts)).out);
}

// Lines of "word word label", where the label is the first word.
std::string labelled_lines() {
  std::string text;
  for (int i = 0; i < 90; ++i)
    text += fmt::format("{} reel {}\t{}\n", i % 3 == 0 ? "maki" : "tape", i % 7, i % 3 == 0 ? "film" : "ribbon");
  return text;
}

}  // namespace

TEST_CASE("a resumed run of a masked language model has the bytes of an uninterrupted one") {
  const TrainedEncoder straight;
  const std::string run = straight.folder / "cut";
  require_ok(
      run_maki(Arguments{"train", straight.corpus, "--out", run, "--max-steps", "29", "--threads", "1"} + kEncoder));
  require_ok(run_maki({"train", "--resume", run, "--max-steps", "60", "--threads", "3"}));
  const std::string bytes = read_text(checkpoint(run, 60));
  REQUIRE(bytes.size() > 10000);
  REQUIRE(bytes == read_text(checkpoint(straight.run, 60)));
}

TEST_CASE("eval reports loss, perplexity and accuracy at the masked tokens") {
  const TrainedEncoder trained;
  const json facts = json::parse(require_ok(run_maki({"eval", trained.run, "--json"})).out);
  const double loss = facts.at("val_loss"), accuracy = facts.at("accuracy");
  REQUIRE(facts.at("part") == "validation");
  REQUIRE(facts.at("perplexity").get<double>() == Approx(std::exp(loss)));
  REQUIRE(accuracy == facts.at("correct").get<double>() / facts.at("targets").get<double>());
  REQUIRE(accuracy > 0.05);
  REQUIRE_THAT(trained.trained.err, ContainsSubstring("to fill masks: maki fill " + trained.run));
  REQUIRE_THAT(require_ok(run_maki({"eval", trained.run})).out, ContainsSubstring("masked tokens)"));
  const std::string other = trained.folder.write("other.txt", "the maki Z reel");
  const json skipped =
      json::parse(require_ok(run_maki({"eval", trained.run, other, "--unknown", "skip", "--json"})).out);
  REQUIRE(skipped.at("unknown_characters") == 1);
  REQUIRE(skipped.at("targets") == 2);  // 15 % of the 13 tokens before the last
}

TEST_CASE("an encoder passes the gradient check and the benchmark, and does not generate") {
  for (const char* const task : {"masked", "classify"}) {
    INFO(task);
    require_ok(run_maki({"gradcheck", "--model", "encoder", "--task", task, "--n-layer", "1", "--n-embd", "16"}));
  }
  require_ok(run_maki({"bench", "--model", "encoder", "--n-layer", "1", "--n-embd", "32", "--steps", "3"}));
  require_refused(run_maki({"bench", "generate", "--model", "encoder"}), 2, {"does not generate"});
  const TrainedEncoder trained;
  const Finished finished = run_maki({"generate", trained.run, "--prompt", "the"});
  require_refused(finished, 2, {"encoder", "does not generate"});
  REQUIRE(finished.out.empty());
  REQUIRE(std::ranges::count(finished.err, '\n') == 1);
}

TEST_CASE("fill shows the probabilities of the model in descending order") {
  const TrainedEncoder trained;
  const json facts = json::parse(
      require_ok(run_maki({"fill", trained.run, "--text", "the m[MASK]ki re[MASK]l", "--top", "4", "--json"})).out);
  const maki::LoadedModel loaded(facts.at("checkpoint").get<std::string>());
  const std::int64_t vocab = loaded.tokenizer->vocab_size();
  std::vector<std::int32_t> ids = loaded.tokenizer->encode("the maki reel");
  const std::vector<std::size_t> positions = {5, 11};
  for (const std::size_t at : positions) ids[at] = static_cast<std::int32_t>(vocab);
  const maki::Tensor logits = loaded.model->as_encoder()->logits(maki::tensor(ids, {1, std::ssize(ids)}));
  std::string filled = "the maki reel";
  REQUIRE(facts.at("masks").size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const json& mask = facts.at("masks")[i];
    REQUIRE(mask.at("position") == positions[i]);
    const json& candidates = mask.at("candidates");
    REQUIRE(candidates.size() == 4);
    const float* const row = logits.data<float>() + positions[i] * static_cast<std::size_t>(vocab + 1);
    double sum = 0, previous = 1;
    for (std::int64_t v = 0; v < vocab; ++v) sum += std::exp(static_cast<double>(row[v]));
    for (const json& c : candidates) {
      const auto id = c.at("id").get<std::int32_t>();
      REQUIRE(c.at("token") == loaded.tokenizer->bytes(id));
      REQUIRE(c.at("probability").get<double>() == Approx(std::exp(static_cast<double>(row[id])) / sum).epsilon(1e-4));
      REQUIRE(c.at("probability").get<double>() <= previous);
      previous = c.at("probability");
    }
    REQUIRE(candidates[0].at("id") == std::max_element(row, row + vocab) - row);
    filled[positions[i]] = candidates[0].at("token").get<std::string>()[0];
  }
  REQUIRE(facts.at("filled") == filled);
  const std::string text = require_ok(run_maki({"fill", trained.run, "--text", "the m[MASK]ki re[MASK]l"})).out;
  REQUIRE(text.starts_with(filled + "\n[MASK] 1\n"));
  REQUIRE(std::ranges::count(text, '\n') == 1 + 2 + 2 * 5);
}

TEST_CASE("the candidates of fill, all together, have probability 1") {
  const TrainedEncoder trained;
  const json facts =
      json::parse(require_ok(run_maki({"fill", trained.run, "--text", "[MASK]", "--top", "1000", "--json"})).out);
  double sum = 0;
  for (const json& c : facts.at("masks")[0].at("candidates")) sum += c.at("probability").get<double>();
  REQUIRE(sum == Approx(1).epsilon(1e-12));
}

TEST_CASE("a word that is filled in brings the space before it along") {
  for (const Arguments& tokens : {Arguments{"--tokenizer", "word"}, {"--tokenizer", "bpe", "--vocab-size", "300"}}) {
    const TrainedEncoder trained(tokens);
    const auto filled = [&](const std::string& text) {
      return json::parse(require_ok(run_maki({"fill", trained.run, "--text", text, "--top", "1", "--json"})).out);
    };
    const json facts = filled("the [MASK] unrolls slowly");
    REQUIRE(facts.at("masks")[0].at("position") == filled("the[MASK] unrolls slowly").at("masks")[0].at("position"));
    REQUIRE(facts.at("masks")[0].at("candidates").size() == 1);
  }
}

TEST_CASE("fill refuses what it cannot do in one sentence") {
  const TrainedEncoder trained;
  const auto refused = [&](const Arguments& more, int code, const std::vector<std::string>& words) {
    const Finished finished = run_maki(Arguments{"fill", trained.run} + more);
    require_refused(finished, code, words);
    REQUIRE(finished.out.empty());
  };
  refused({"--text", "the reel"}, 2, {"text: must contain [MASK]", "the reel"});
  refused({"--text", ""}, 2, {"text: must not be empty"});
  refused({"--text", "the [MASK] Z"}, 3, {"vocabulary", "Z"});
  refused({"--text", "the \xff[MASK]"}, 3, {"UTF-8", "offset 4"});
  refused({"--text", "[MASK]" + std::string(16, 'e')}, 3, {"text: may have at most 16 tokens", "it has 17"});
  refused({"--text", "[MASK]", "--top", "0"}, 2, {"top: must be between 1"});
  refused({}, 2, {"--text"});
  const std::string gpt = trained.folder / "gpt";
  require_ok(run_maki(Arguments{"train", trained.corpus, "--out", gpt, "--max-steps", "2"} + kSmall));
  require_refused(run_maki({"fill", gpt, "--text", "[MASK]"}), 2, {"gpt", "fills no masks"});
  require_refused(run_maki({"embed", gpt, "the"}), 2, {"gpt", "no contextual vectors"});
}

TEST_CASE("a token has different vectors in different contexts, which embed writes and compares") {
  const TrainedEncoder trained;
  const std::vector<json> lines = embedded(trained.run, {"the maki", "a maki", "--word", "maki"});
  REQUIRE(lines.size() == 8 + 6 + 1);
  const json& compared = lines.back();
  REQUIRE(compared.at("tokens") == "maki");
  REQUIRE(compared.at("first") == json{{"text", 0}, {"position", 4}});
  REQUIRE(compared.at("second") == json{{"text", 1}, {"position", 2}});
  REQUIRE(lines[4].at("token") == "m");
  REQUIRE(lines[4].at("vector").size() == 16);
  REQUIRE(lines[10].at("token") == "m");
  REQUIRE(lines[10].at("vector") != lines[4].at("vector"));
  double product = 0, first = 0, second = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    double a = 0, b = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      a += lines[4 + k].at("vector")[i].get<double>();
      b += lines[10 + k].at("vector")[i].get<double>();
    }
    product += a * b;
    first += a * a;
    second += b * b;
  }
  REQUIRE(compared.at("cosine").get<double>() == Approx(product / std::sqrt(first * second)).epsilon(1e-4));
  const std::string text = require_ok(run_maki({"embed", trained.run, "the maki", "a maki", "--word", "maki"})).out;
  REQUIRE_THAT(text, ContainsSubstring("\"maki\"  text 1 token 5, text 2 token 3\n"));
  REQUIRE(std::ranges::count(text, '\n') == 1);
}

TEST_CASE("embed writes the vectors of all texts to a NumPy file") {
  const TrainedEncoder trained;
  const std::string file = trained.folder / "vectors.npy";
  const Finished written = require_ok(run_maki({"embed", trained.run, "the maki", "a", "--npy", file}));
  REQUIRE_THAT(written.err, ContainsSubstring(file + ": 9 vectors of 16 numbers, in the order of the texts\n"));
  REQUIRE_THAT(written.out, ContainsSubstring("  \"a\"  text 1 token 6, text 2 token 1\n"));
  const std::vector<json> lines = embedded(trained.run, {"the maki", "a"});
  const std::string bytes = read_text(file);
  REQUIRE(bytes.size() == 128 + 9 * 16 * 4);
  REQUIRE_THAT(bytes.substr(0, 128), ContainsSubstring("'shape': (9, 16)"));
  for (std::size_t i = 0; i < 9; ++i) {
    for (std::size_t k = 0; k < 16; ++k) {
      float value = 0;
      std::memcpy(&value, bytes.data() + 128 + (16 * i + k) * 4, 4);
      REQUIRE(value == lines[i].at("vector")[k].get<float>());
    }
  }
}

TEST_CASE("embed refuses what it cannot do in one sentence") {
  const TrainedEncoder trained;
  const auto refused = [&](const Arguments& more, int code, const std::vector<std::string>& words) {
    const Finished finished = run_maki(Arguments{"embed", trained.run} + more);
    require_refused(finished, code, words);
    REQUIRE(finished.out.empty());
  };
  refused({}, 2, {"TEXT"});
  refused({"the", ""}, 2, {"at least one token"});
  refused({"the", "Z"}, 3, {"vocabulary", "Z"});
  refused({"the", "\xff"}, 3, {"text 2", "UTF-8"});
  refused({"the", std::string(17, 'e')}, 3, {"text 2: may have at most 16 tokens", "it has 17"});
  refused({"the", "--word", "maki"}, 2, {"word: must occur at least twice", "maki"});
  refused({"the", "--json", "--npy", trained.folder / "x.npy"}, 2, {"--json and --npy"});
  refused({"the", "--npy", trained.run + "/config.toml/x.npy"}, 4, {"config.toml is not a directory"});
}

TEST_CASE("a classifier learns labels, which its checkpoint and eval report") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("lines.tsv", labelled_lines()), run = folder / "run", cut = folder / "cut";
  const Arguments classify = kEncoder + Arguments{"--task", "classify"};
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "60"} + classify));
  require_ok(run_maki(Arguments{"train", corpus, "--out", cut, "--max-steps", "31"} + classify));
  require_ok(run_maki({"train", "--resume", cut, "--max-steps", "60"}));
  REQUIRE(read_text(checkpoint(cut, 60)) == read_text(checkpoint(run, 60)));
  const json facts = json::parse(require_ok(run_maki({"eval", run, "--json"})).out);
  REQUIRE(facts.at("labels") == json{"film", "ribbon"});
  REQUIRE(facts.at("targets") == 9);
  REQUIRE(facts.at("accuracy") == 1.0);
  REQUIRE(facts.at("confusion") == json{{2, 0}, {0, 7}});
  const std::string other = folder.write("other.tsv", "tape reel 1\tribbon\nmaki reel 1\tribbon\n");
  const std::string text = require_ok(run_maki({"eval", run, other})).out;
  REQUIRE_THAT(text, ContainsSubstring("50.00 % (1 of 2 texts)"));
  REQUIRE_THAT(text, ContainsSubstring("ribbon      1      1\n"));
  require_refused(run_maki({"eval", run, folder.write("bad.tsv", "tape\tpaper\n")}), 3, {"line 1", "paper"});
  require_refused(run_maki({"fill", run, "--text", "[MASK]"}), 2, {"classify", "fills no masks"});
  require_ok(run_maki({"embed", run, "maki", "tape"}));
  require_ok(run_maki({"gradcheck", run}));
}

TEST_CASE("classify writes labels so that they cannot control a terminal, and in JSON as they are") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "maki reel\t\x1b[31mfilm\ntape reel\t\x1b[0mribbon\n";
  const std::string run = folder / "run";
  require_ok(run_maki(Arguments{"train", folder.write("lines.tsv", lines), "--out", run, "--max-steps", "2"} +
                      kEncoder + Arguments{"--task", "classify"}));
  const std::string line = require_ok(run_maki({"classify", run, "maki reel"})).out;
  REQUIRE(line.find('\x1b') == std::string::npos);
  REQUIRE(line.starts_with("\\x1b["));
  const json facts = json::parse(require_ok(run_maki({"classify", run, "maki reel", "--json"})).out);
  REQUIRE(facts.at("label").get<std::string>().starts_with("\x1b["));
}

TEST_CASE("classify gives each text of the command line or of standard input its label") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("lines.tsv", labelled_lines()), run = folder / "run";
  const Finished trained = run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "60"} + kEncoder +
                                    Arguments{"--task", "classify"});
  REQUIRE_THAT(require_ok(trained).err, ContainsSubstring("to label texts: maki classify " + run));
  const std::string answers = require_ok(run_maki({"classify", run, "maki reel 1", "tape reel 1"})).out;
  REQUIRE(answers.starts_with("film\t"));
  REQUIRE(answers.ends_with("\ttape reel 1\n"));
  REQUIRE_THAT(answers, ContainsSubstring("\tmaki reel 1\nribbon\t"));
  REQUIRE(require_ok(run_maki({"classify", run}, {.input = "maki reel 1\r\ntape reel 1"})).out == answers);
  // After an interrupt at most the line that is being read is answered.
  RunOptions interrupted;
  interrupted.input = "maki reel 1\n";
  interrupted.input_stays_open = true;
  interrupted.output_file = folder / "answers";
  interrupted.meanwhile = [&](pid_t process) {
    for (int i = 0; i < 60000 && text_so_far(interrupted.output_file).empty(); ++i) usleep(1000);
    kill(process, SIGINT);
    std::ofstream(fmt::format("/proc/{}/fd/0", process)) << "tape reel 1\nmaki reel 2\n";
  };
  REQUIRE(run_maki({"classify", run}, interrupted).exit_code == 130);
  REQUIRE(answers.starts_with(read_text(interrupted.output_file)));
  const json facts = json::parse(require_ok(run_maki({"classify", run, "maki reel 1", "--json"})).out);
  const json& probabilities = facts.at("probabilities");
  REQUIRE(facts.at("label") == "film");
  REQUIRE(probabilities.at("film").get<double>() > 0.5);
  REQUIRE(probabilities.at("film").get<double>() + probabilities.at("ribbon").get<double>() == Approx(1).epsilon(1e-9));
  require_refused(run_maki({"classify", run, "maki", ""}), 3, {"text 2", "at least one token"});
  require_refused(run_maki({"classify", run, std::string(17, 'e')}), 3, {"text 1", "17", "16"});
  require_refused(run_maki({"classify", run}, {.input = "Z\n"}), 3, {"line 1", "vocabulary", "Z"});
  require_refused(run_maki({"classify", run}, directory_as_input()), 3, {"standard input: cannot be read"});
  if (has_terminals()) {
    const Finished typed = require_ok(run_maki({"classify", run}, {.typed = "maki reel 1\ntape reel 1\n\x04"}));
    REQUIRE(typed.out == answers);
    REQUIRE_THAT(typed.err, ContainsSubstring("type a line to label it; end with Ctrl-D\n"));
  }
  const TrainedEncoder masked;
  require_refused(run_maki({"classify", masked.run, "maki"}), 2, {"masked", "gives no labels"});
}
