// Models that translate, as a user sees them: exact runs, evaluation, translation of lines, and what is refused.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sstream>
#include <unistd.h>

#include "tests/cli/require_refused.h"
#include "train/run/container.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

const Arguments kTranslate = {"--model",
                              "seq2seq",
                              "--n-layer",
                              "1",
                              "--n-head",
                              "2",
                              "--n-embd",
                              "16",
                              "--block-size",
                              "12",
                              "--batch-size",
                              "4",
                              "--grad-accum",
                              "2",
                              "--dropout",
                              "0.1",
                              "--learning-rate",
                              "0.003",
                              "--schedule",
                              "cosine",
                              "--warmup-steps",
                              "2",
                              "--lr-decay-steps",
                              "12",
                              "--min-lr",
                              "0.0003",
                              "--max-steps",
                              "12",
                              "--eval-interval",
                              "4",
                              "--eval-batches",
                              "2",
                              "--checkpoint-interval",
                              "6"};

const std::vector<std::string> kLetters = {"a", "b", "c", "d", "e"}, kWords = {"one", "two", "three", "four", "five"};

// 60 pairs: letters between spaces, and their words.
struct Lines {
  Lines() {
    for (unsigned i = 0, state = 7; i < 60; ++i) {
      for (unsigned n = 0; n < 2 + i % 4; ++n) {
        state = state * 1103515245u + 12345u;
        const std::size_t k = (state >> 16) % kLetters.size();
        source += (n > 0 ? " " : "") + kLetters[k];
        target += (n > 0 ? " " : "") + kWords[k];
      }
      tsv += source.substr(source.rfind('\n') + 1) + '\t' + target.substr(target.rfind('\n') + 1) + '\n';
      source += '\n';
      target += '\n';
    }
  }
  std::string source, target, tsv;
};

struct TranslatorRun {
  explicit TranslatorRun(const Arguments& more = {"--tokenizer", "word"}) {
    corpus = folder.write("pairs.tsv", Lines().tsv);
    require_ok(run_maki(Arguments{"train", corpus, "--out", path} + kTranslate + more));
  }
  std::string translate(const std::string& input, const Arguments& more = {}) const {
    RunOptions piped;
    piped.input = input;
    return require_ok(run_maki(Arguments{"generate", path} + more, piped)).out;
  }
  TemporaryFolder folder;
  std::string path = folder / "run", corpus;
};

json translation_facts(const Arguments& arguments) { return json::parse(require_ok(run_maki(arguments)).out); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string values_of(const std::string& checkpoint) { return maki::ContainerReader(checkpoint).read("values"); }

}  // namespace

TEST_CASE("a model that translates: resumed runs and other numbers of threads give the same bytes") {
  const TemporaryFolder folder;
  std::string expected;
  for (const char* const threads : {"1", "2", "3"}) {
    const std::string run = folder / (std::string("threads-") + threads);
    require_ok(run_maki(Arguments{"train", "@copy:4", "--out", run, "--threads", threads} + kTranslate));
    const std::string bytes = read_text(checkpoint(run, 12));
    REQUIRE(bytes.size() > 10'000);
    if (expected.empty()) expected = bytes;
    REQUIRE(bytes == expected);
  }
  for (const int k : {0, 5, 11}) {
    const std::string run = folder / fmt::format("cut-{}", k);
    require_ok(run_maki(Arguments{"train", "@copy:4", "--out", run} + kTranslate +
                        Arguments{"--max-steps", std::to_string(k)}));
    require_ok(run_maki({"train", "--resume", run, "--max-steps", "12"}));
    INFO("k = " << k);
    REQUIRE(read_text(checkpoint(run, 12)) == expected);
  }
}

TEST_CASE("two files and one file with tabs give the same weights, and either run can be resumed") {
  const TemporaryFolder folder;
  const Lines lines;
  const std::string tsv = folder.write("pairs.tsv", lines.tsv), source = folder.write("text.ja", lines.source),
                    target = folder.write("text.en", lines.target);
  const Arguments words = kTranslate + Arguments{"--tokenizer", "word"};
  require_ok(run_maki(Arguments{"train", tsv, "--out", folder / "one"} + words));
  require_ok(run_maki(Arguments{"train", source, target, "--out", folder / "two"} + words));
  REQUIRE(values_of(checkpoint(folder / "one", 12)) == values_of(checkpoint(folder / "two", 12)));
  require_ok(
      run_maki(Arguments{"train", source, target, "--out", folder / "cut"} + words + Arguments{"--max-steps", "7"}));
  require_ok(run_maki({"train", "--resume", folder / "cut", "--max-steps", "12"}));
  REQUIRE(read_text(checkpoint(folder / "cut", 12)) == read_text(checkpoint(folder / "two", 12)));
  // Its configuration describes the same run.
  require_ok(run_maki({"train", "--config", folder / "two/config.toml", "--out", folder / "again"}));
  REQUIRE(read_text(checkpoint(folder / "again", 12)) == read_text(checkpoint(folder / "two", 12)));
  // The other direction is another run.
  require_ok(run_maki(Arguments{"train", target, source, "--out", folder / "back"} + words));
  REQUIRE(values_of(checkpoint(folder / "back", 12)) != values_of(checkpoint(folder / "two", 12)));
  require_refused(run_maki({"train", "--resume", folder / "two", target, source, "--max-steps", "20"}), 3,
                  {"not the text of this run"});
}

TEST_CASE("the checkpoint of a model that translates has its task and vocabularies") {
  const TranslatorRun run, shared({"--tokenizer", "word", "--share-vocabulary"});
  const json facts = translation_facts({"inspect", run.path, "--verify", "--json"});
  REQUIRE(facts.at("verified") == true);
  REQUIRE(facts.at("config").at("model") == "seq2seq");
  REQUIRE(facts.at("config").at("task") == "translate");
  REQUIRE(facts.at("config").at("share_vocabulary") == false);
  REQUIRE(facts.at("config").at("norm_order") == "post");
  REQUIRE(facts.at("config").at("positions") == "sinusoidal");
  REQUIRE(facts.at("tokenizer") == "word");
  // Sources: five letters, space, newline, a word for each letter, and the end.
  REQUIRE(facts.at("source_vocab_size") == 5 + 2 + 5 + 1);
  REQUIRE(facts.at("vocab_size").get<int>() > 13);
  const std::string text = require_ok(run_maki({"inspect", run.path})).out;
  REQUIRE_THAT(text, ContainsSubstring(", and of 13 for sources") &&
                         ContainsSubstring("\nschema = 1\nmodel = 'seq2seq'\ntask = 'translate'\n") &&
                         ContainsSubstring("\nshare_vocabulary = false\n"));
  const json other = translation_facts({"inspect", shared.path, "--verify", "--json"});
  REQUIRE(other.at("config").at("share_vocabulary") == true);
  REQUIRE_FALSE(other.contains("source_vocab_size"));
  REQUIRE_THAT(read_text(shared.path + "/config.toml"), ContainsSubstring("\nshare_vocabulary = true "));
  REQUIRE(shared.translate("a b\n") == shared.translate("a b\n", {"--beam", "1"}));
}

TEST_CASE("a damaged tokenizer of sources: no verb uses the checkpoint") {
  const TranslatorRun run;
  const std::string file = checkpoint(run.path, 12);
  std::string bytes = read_text(file);
  const std::string head = "maki word tokenizer 1\n";
  const std::size_t at = bytes.find(head, bytes.find(head) + 1);
  REQUIRE(at != std::string::npos);
  bytes[at + head.size() + 4] ^= 1;
  write_bytes(file, bytes);
  require_refused(run_maki({"inspect", "--verify", file}), 4, {file, "damaged"});
  require_refused(run_maki({"generate", file, "--prompt", "a"}), 4, {file, "source_tokenizer"});
  require_refused(run_maki({"eval", file, run.corpus}), 4, {file, "source_tokenizer"});
  require_refused(run_maki({"inspect", file}), 4, {file, "source_tokenizer"});
}

TEST_CASE("eval reports loss, exact matches and BLEU of the run's own pairs or of others") {
  const TranslatorRun run;
  const json own = translation_facts({"eval", run.path, "--json"});
  REQUIRE(own.at("pairs") == 6);
  REQUIRE(own.at("val_loss").get<double>() > 0);
  REQUIRE(own.at("perplexity").get<double>() == Approx(std::exp(own.at("val_loss").get<double>())));
  REQUIRE(own.at("exact_match").get<double>() >= 0);
  REQUIRE(own.at("beam") == 1);
  const Finished text = require_ok(run_maki({"eval", run.path, "--beam", "3", "--length-penalty", "1"}));
  REQUIRE_THAT(text.out, ContainsSubstring("validation part of the run's text") &&
                             ContainsSubstring("nats per target token") &&
                             ContainsSubstring("beam of 3, length penalty 1") && ContainsSubstring("of 6 pairs)"));
  // Other pairs: all of them, and the translations themselves as targets are exact.
  const std::string sources = "a b c d e\nb a\nc c c a b\n";
  std::string other;
  const std::vector<std::string> written = lines_of(run.translate(sources));
  REQUIRE(written.size() == 3);
  const std::vector<std::string> lines = lines_of(sources);
  for (std::size_t i = 0; i < 3; ++i) other += lines[i] + '\t' + (written[i].empty() ? "x" : written[i]) + '\n';
  const auto empty = std::ranges::count(written, std::string());
  const json exact =
      translation_facts({"eval", run.path, run.folder.write("other.tsv", other), "--json", "--unknown", "skip"});
  REQUIRE(exact.at("pairs") == 3);
  REQUIRE(exact.at("exact_match").get<double>() == Approx(1 - static_cast<double>(empty) / 3));
  // Text that does not fit.
  const auto refuse = [&](const std::string& pairs, const std::vector<std::string>& words) {
    require_refused(run_maki({"eval", run.path, run.folder.write("bad.tsv", pairs)}), 3, words);
  };
  refuse("a b\tone\na\n", {"bad.tsv: line 2", "0 tabs"});
  refuse("a z\tone\n", {"pair 1, source", "z (U+007A)"});
  refuse("a b\tone one one one one one one one one one one one\n",
         {"pair 1, target", "at most 11 tokens", "it has 12"});
}

TEST_CASE("generate translates every line of a prompt, a file or standard input, and keeps their number") {
  const TranslatorRun run;
  const std::string input = "a b\n\nc d e\r\n\nb\na b";
  const std::string expected = run.translate(input);
  const std::vector<std::string> lines = lines_of(expected);
  REQUIRE(lines.size() == 6);
  REQUIRE(expected.ends_with('\n'));
  REQUIRE(lines[1].empty());
  REQUIRE(lines[3].empty());
  REQUIRE(lines[0] == lines[5]);
  REQUIRE(run.translate(input, {"-"}) == expected);
  REQUIRE(require_ok(run_maki({"generate", run.path, "--prompt", input})).out == expected);
  REQUIRE(require_ok(run_maki({"generate", run.path, "--prompt-file", run.folder.write("in", input)})).out == expected);
  REQUIRE(run.translate("").empty());
  REQUIRE(require_ok(run_maki({"generate", run.path, "--prompt", ""})).out == "\n");
  REQUIRE(lines_of(require_ok(run_maki({"generate", run.path, "--prompt", "", "--json"})).out).size() == 1);
  require_refused(run_maki({"generate", run.path}, directory_as_input()), 3, {"standard input: cannot be read"});
  REQUIRE(run.translate("\n") == "\n");
  // Each line alone, and among more lines than are read at once.
  REQUIRE(run.translate("c d e\n") == lines[2] + "\n");
  std::string many, each;
  for (int i = 0; i < 600; ++i) {
    many += i % 3 == 0 ? "a b\n" : i % 3 == 1 ? "c d e\n" : "\n";
    each += i % 3 == 0 ? lines[0] + "\n" : i % 3 == 1 ? lines[2] + "\n" : "\n";
  }
  REQUIRE(run.translate(many) == each);
  REQUIRE(run.translate(many, {"--threads", "1"}) == each);
  REQUIRE(run.translate("a b\n", {"--checkpoint", "6"}) ==
          run.translate("a b\n", {"--checkpoint", "6", "--beam", "1"}));
}

TEST_CASE("lines from a pipe are answered without waiting for more of them") {
  const TranslatorRun run;
  RunOptions piped;
  piped.input = "a b\nc d e\n";
  piped.input_stays_open = true;
  piped.output_file = run.folder / "answers";
  piped.meanwhile = [&](pid_t process) {
    for (int i = 0; i < 60000 && std::ranges::count(text_so_far(piped.output_file), '\n') < 2; ++i) usleep(1000);
    kill(process, SIGTERM);
  };
  REQUIRE(run_maki({"generate", run.path}, piped).exit_code == 128 + SIGTERM);
  REQUIRE(read_text(piped.output_file) == run.translate(piped.input));
}

TEST_CASE("generate describes each translation as JSON, and searches with a beam") {
  const TranslatorRun run;
  const std::string input = "a b\n\nc d e\n";
  for (const Arguments& search :
       {Arguments{}, Arguments{"--beam", "4"}, Arguments{"--beam", "4", "--length-penalty", "0"}}) {
    const std::vector<std::string> texts = lines_of(run.translate(input, search));
    const std::vector<std::string> lines = lines_of(run.translate(input, search + Arguments{"--json"}));
    REQUIRE(lines.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      const json facts = json::parse(lines[i]);
      REQUIRE(facts.at("source") == lines_of(input)[i]);
      REQUIRE(facts.at("text") == texts[i]);
      REQUIRE(facts.at("step") == 12);
      REQUIRE(facts.at("tokens").get<int>() <= 12);
      REQUIRE(facts.at("log_probability").get<double>() <= 0);
      if (i == 1) continue;
      REQUIRE(facts.at("log_probability").get<double>() < 0);
      const double length = facts.at("tokens").get<double>() + (facts.at("ended") == true ? 1 : 0);
      const double alpha = search.size() == 4 ? 0 : 0.6;
      REQUIRE(facts.at("score").get<double>() * std::pow((5 + length) / 6, alpha) ==
              Approx(facts.at("log_probability").get<double>()));
    }
  }
  const auto score = [&](const char* beam) {
    return json::parse(run.translate("c d e\n", {"--json", "--beam", beam})).at("score").get<double>();
  };
  REQUIRE(score("8") >= score("1"));
  for (const std::string& line : lines_of(run.translate(input, {"--max-tokens", "2", "--json"})))
    REQUIRE(json::parse(line).at("tokens").get<int>() <= 2);
}

TEST_CASE("without --max-tokens, a translation may be as long as the model can write, as in eval") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  // After one step a model hardly knows where a translation ends.
  require_ok(
      run_maki({"train", folder.write("pairs.tsv", Lines().tsv), "--out", run, "--model", "seq2seq", "--n-layer", "1",
                "--n-head", "1", "--n-embd", "8", "--block-size", "240", "--max-steps", "1", "--tokenizer", "word"}));
  const auto tokens = [&](const Arguments& more) {
    return translation_facts(Arguments{"generate", run, "--prompt", "a b", "--json"} + more).at("tokens").get<int>();
  };
  REQUIRE(tokens({}) == 240);
  REQUIRE(tokens({"--max-tokens", "1000"}) == 240);
  REQUIRE(tokens({"--max-tokens", "200"}) == 200);
}

TEST_CASE("lines that cannot be read are named by number") {
  const TranslatorRun run, learned({"--tokenizer", "word", "--positions", "learned"});
  // The lines before it are answered.
  const auto refuse = [](const TranslatorRun& r, const std::string& good, const std::string& bad, int code,
                         const std::vector<std::string>& words) {
    RunOptions piped;
    piped.input = good + bad + "b\n";
    const Finished finished = run_maki({"generate", r.path}, piped);
    REQUIRE(finished.out == r.translate(good));
    require_refused(finished, code, words);
  };
  refuse(run, "a b\n", "a zoo\n", 3, {"line 2", "z (U+007A)", "o (U+006F) 2 times", "--unknown skip"});
  refuse(run, "a\n\n", "b \xFF\n", 3, {"line 3", "UTF-8", "offset 2"});
  refuse(run, "", "\xFF\n", 3, {"line 1", "UTF-8", "offset 0"});
  const std::string longer = "a b c d e a b c d e a b c d e a b",
                    many = "one two three four five one two three four five one two";
  refuse(learned, "a\n", longer + "\n", 3, {"line 2", "at most 11 tokens", "learned positions", "it has 17"});
  require_refused(run_maki({"attend", learned.path, "--prompt", longer}), 3, {"prompt: may have at most 11 tokens"});
  require_refused(run_maki({"attend", learned.path, "--prompt", "a", "--target", many}), 3,
                  {"target: may have at most 11 tokens", "it has 12; shorten it"});
  require_refused(run_maki({"generate", run.path, "--prompt", "a", "--max-tokens", "0"}), 2,
                  {"max_tokens: must be at least 1 for a model that translates; got 0"});
  REQUIRE(learned.translate("\n") == "\n");
  REQUIRE(lines_of(run.translate(longer + "\n")).size() == 1);  // sinusoidal positions have no end
  RunOptions piped;
  piped.input = "a zb\n";
  const Finished skipped = require_ok(run_maki({"generate", run.path, "--unknown", "skip"}, piped));
  REQUIRE_THAT(skipped.err, ContainsSubstring("line 1: 1 character"));
  REQUIRE(skipped.out == run.translate("a b\n"));
}

TEST_CASE("options that do not apply to a kind of model are refused: exit 2") {
  const TranslatorRun run;
  for (const Arguments& option :
       {Arguments{"--top-k", "3"}, Arguments{"--top-p", "0.5"}, Arguments{"--temperature", "0.5"},
        Arguments{"--seed", "1"}, Arguments{"--samples", "2"}, Arguments{"-n", "2"}, Arguments{"--stop", "x"},
        Arguments{"--overflow", "stop"}}) {
    const std::string name = option[0] == "-n" ? "--samples" : option[0];
    require_refused(run_maki(Arguments{"generate", run.path, "--prompt", "a"} + option), 2, {name, "omit it"});
  }
  require_refused(run_maki({"generate", run.path, "--prompt", "a", "--beam", "0"}), 2, {"beam", "between 1 and"});
  require_refused(run_maki({"generate", run.path, "--prompt", "a", "--max-tokens", "0"}), 2, {"max_tokens", "got 0"});
  // Greedy search has no hypotheses to choose from, but --json prints their scores.
  const Arguments penalty = {"--length-penalty", "1"};
  for (const Arguments& greedy : {penalty, penalty + Arguments{"--beam", "1"}}) {
    require_refused(run_maki(Arguments{"generate", run.path, "--prompt", "a"} + greedy), 2,
                    {"generate: --length-penalty", "add --beam"});
    require_refused(run_maki(Arguments{"eval", run.path} + greedy), 2, {"eval: --length-penalty", "add --beam"});
  }
  REQUIRE(lines_of(run.translate("a b\n", Arguments{"--json"} + penalty)).size() == 1);
  const TemporaryFolder folder;
  require_ok(train(folder, folder.write("corpus.txt", small_text())));
  for (const Arguments& option : {Arguments{"--beam", "2"}, Arguments{"--length-penalty", "1"}}) {
    require_refused(run_maki(Arguments{"generate", folder / "run", "--prompt", "the"} + option), 2,
                    {option[0], "omit it"});
    require_refused(run_maki(Arguments{"eval", folder / "run"} + option), 2, {option[0], "omit it"});
  }
  const auto start = [&](const Arguments& more) {
    return run_maki(Arguments{"train", run.corpus, "--out", folder / "other"} + more);
  };
  require_refused(start({"--share-vocabulary"}), 2, {"share_vocabulary", "next_token"});
  require_refused(start({"--task", "translate"}), 2,
                  {"task: must be next_token for a model of kind gpt", "use --model seq2seq for it"});
  require_refused(start({"--model", "seq2seq", "--task", "next_token"}), 2, {"task: must be translate", "seq2seq"});
  require_refused(start({"--model", "seq2seq", "--conv-width", "4"}), 2, {"conv_width"});
  require_refused(start({"--model", "seq2seq", "--attention", "elu"}), 2, {"attention"});
  REQUIRE_FALSE(std::filesystem::exists(folder / "other"));
}

TEST_CASE("parallel text that does not fit: exit 3, both files are named, and no run is left behind") {
  const TemporaryFolder folder;
  const Lines lines;
  const std::string source = folder.write("a.ja", lines.source), target = folder.write("a.en", lines.target + "x\n"),
                    empty = folder.write("empty", ""),
                    gap = folder.write("gap.en", "\n" + lines.target.substr(lines.target.find('\n') + 1));
  const auto refuse = [&](const Arguments& corpus, const std::vector<std::string>& words, const Arguments& more = {}) {
    require_refused(run_maki(Arguments{"train"} + corpus + Arguments{"--out", folder / "run"} + kTranslate + more), 3,
                    words);
    REQUIRE_FALSE(std::filesystem::exists(folder / "run"));
  };
  refuse({source, target}, {"a.ja and ", "a.en", "same number of lines", "60 and 61"});
  refuse({source, empty}, {"a.ja and ", "empty"});
  refuse({source, gap}, {"gap.en: line 1 is empty"});
  refuse({source, target, source}, {"two files", "got 3 files"});
  refuse({source}, {"a.ja: line 1", "one tab"});
  refuse({folder.write("p.tsv", lines.tsv)}, {"pair ", "at most 2 tokens", "--block-size"}, {"--block-size", "3"});
  refuse({folder.write("q.tsv", "a\tb\n")}, {"1 of 1 pairs", "--val-fraction"});
}

TEST_CASE("a run may begin with the weights and vocabularies of another") {
  const TranslatorRun run;
  const std::string next = run.folder / "next",
                    pairs = run.folder.write("next.tsv", "a c b\tone three two\nb a d\ttwo one four\n");
  require_ok(run_maki({"train", pairs, "--init-from", run.path, "--out", next, "--max-steps", "0", "--lr-decay-steps",
                       "5", "--val-fraction", "0", "--batch-size", "2"}));
  REQUIRE(values_of(checkpoint(next, 0)) == values_of(checkpoint(run.path, 12)));
  REQUIRE(require_ok(run_maki({"generate", next, "--prompt", "a b"})).out ==
          require_ok(run_maki({"generate", run.path, "--prompt", "a b", "--checkpoint", "last"})).out);
  const auto start = [&](const std::string& corpus, const Arguments& more = {}) {
    return run_maki(Arguments{"train", corpus, "--init-from", run.path, "--out", run.folder / "no"} + more);
  };
  require_refused(start(run.folder.write("z.tsv", "a b\tone two\na z\tone\n")), 3, {"pair 2, source", "z (U+007A)"});
  require_refused(start(run.corpus, {"--model", "gpt"}), 2, {"model", "seq2seq"});
  require_refused(start(run.corpus, {"--share-vocabulary"}), 2, {"share_vocabulary: must be false"});
}

TEST_CASE("maki tokenizer knows both vocabularies of a run that translates, and says which it uses") {
  const TranslatorRun run({"--tokenizer", "char", "--block-size", "40"});
  const auto encoded = [&](const std::string& text, const Arguments& more = {}) {
    return run_maki(Arguments{"tokenizer", "encode", run.path} + more, {.input = text});
  };
  const Finished target = require_ok(encoded("one")), source = require_ok(encoded("a b", {"--source"}));
  REQUIRE_THAT(target.err, ContainsSubstring("this is that of the targets; --source is that of the sources"));
  REQUIRE(source.err.empty());
  const Finished prepared = require_ok(run_maki({"prepare", run.folder.write("text", "one two one two"), "--out",
                                                 run.folder / "text.tokens", "--tokenizer-file", run.path}));
  REQUIRE_THAT(prepared.err, ContainsSubstring("this is that of the targets\n"));
  REQUIRE(require_ok(run_maki({"tokenizer", "decode", run.path, "--source"}, {.input = source.out})).out == "a b");
  require_refused(encoded("a b"), 3, {"a (U+0061)"});
  const auto size = [&](const Arguments& more) {
    const Arguments inspect = {"tokenizer", "inspect", run.path, "--json"};
    return json::parse(require_ok(run_maki(inspect + more)).out).at("vocab_size").get<int>();
  };
  REQUIRE(size({"--source"}) != size({}));
}

TEST_CASE("sample translations of a model of bytes are written to the metrics") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("pairs.tsv", Lines().tsv), run = folder / "run";
  require_ok(run_maki(Arguments{"train", corpus, "--out", run} + kTranslate +
                      Arguments{"--tokenizer", "byte", "--block-size", "32", "--sample-interval", "3"}));
  int samples = 0;
  for (const std::string& line : lines_of(read_text(run + "/metrics.jsonl"))) {
    const json facts = json::parse(line);
    if (facts.at("kind") != "sample") continue;
    ++samples;
    REQUIRE_THAT(facts.at("text").get<std::string>(), ContainsSubstring("\n→ ") && ContainsSubstring("\n(target: "));
  }
  REQUIRE(samples == 4);
  require_ok(run_maki({"eval", run}));
}

TEST_CASE("gradcheck and bench of a model that translates") {
  const Arguments model = {"--model", "seq2seq", "--n-layer", "1", "--n-head", "2", "--n-embd", "8"};
  for (const Arguments& more :
       {Arguments{}, Arguments{"--share-vocabulary", "--norm-order", "pre", "--positions", "learned",
                               "--label-smoothing", "0.1", "--norm", "rms", "--activation", "swiglu"}}) {
    const json checked = translation_facts(Arguments{"gradcheck", "--block-size", "6", "--json"} + model + more);
    REQUIRE(checked.at("passed") == true);
    REQUIRE(checked.at("compared").get<int>() > 300);
    const auto names = checked.at("tensors");
    for (const char* const name : {"encoder.h.0.attn.c_attn.weight", "decoder.h.0.cross.c_kv.weight"})
      REQUIRE(std::ranges::any_of(names, [&](const json& tensor) { return tensor.at("name") == name; }));
  }
  const TranslatorRun run({"--tokenizer", "word", "--dropout", "0"});
  REQUIRE(translation_facts({"gradcheck", run.path, "--json"}).at("passed") == true);
  const json bench = translation_facts(
      Arguments{"bench"} + model +
      Arguments{"--block-size", "8", "--batch-size", "3", "--vocab-size", "19", "--steps", "2", "--json"});
  REQUIRE(bench.at("tokens_per_second").get<double>() > 0);
  REQUIRE(bench.at("tokens_per_second").get<double>() * bench.at("ms_per_step").get<double>() == Approx(1e3 * 24));
  REQUIRE(std::ranges::any_of(bench.at("profile"), [](const json& row) { return row.at("op") == "attention"; }));
  require_refused(run_maki(Arguments{"bench", "--vocab-size", "1"} + model), 2, {"vocab_size", "at least 2"});
  require_refused(run_maki(Arguments{"bench", "generate"} + model), 2, {"seq2seq", "does not continue a text"});
}
