// The output of `maki generate` against direct calls of the model and the sampler.
#include <fmt/format.h>

#include "nn/generate/sampler.h"
#include "tests/catch.h"
#include "tests/cli/small_run.h"
#include "tests/train/text_trainer.h"
#include "train/run/loaded_model.h"

using namespace maki::tests;

namespace {

constexpr std::size_t kWindow = 16;  // block_size in kSmall

struct Trained {
  Trained() {
    const Finished finished = run_maki(
        Arguments{"train", folder.write("corpus.txt", small_text()), "--out", run, "--max-steps", "60"} + kSmall);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
  }
  /// Returns the text after the prompt.
  std::string generate(const std::string& prompt, int tokens, const Arguments& more) const {
    const Finished finished = run_maki(
        Arguments{"generate", run, "--checkpoint", "last", "--prompt", prompt, "--max-tokens", std::to_string(tokens)} +
        more);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    REQUIRE(finished.out.starts_with(prompt));
    return finished.out.substr(prompt.size());
  }
  TemporaryFolder folder;
  std::string run = folder / "run";
};

// Generates a text token by token, each from the logits of a full forward pass over what the model reads: the whole
// text while it fits into the window. Once the window is full, the model continues with its last half, until it is full
// again.
std::string written_out(const std::string& file, const std::string& prompt, int tokens, const maki::Sampling& options) {
  const maki::LoadedModel loaded(file);
  maki::Sampler sampler(options);
  std::vector<std::int32_t> read = loaded.tokenizer->encode(prompt);
  maki::TokenHistory before;
  before.add_prompt(read);
  std::string text;
  for (int n = 0; n < tokens; ++n) {
    if (read.size() > kWindow) read.erase(read.begin(), read.end() - kWindow / 2);
    const auto length = static_cast<std::int64_t>(read.size());
    const maki::Tensor logits = gpt_of(*loaded.model).logits(maki::tensor(read, {1, length}));
    const maki::Tensor last = maki::slice(logits, 1, length - 1, length);
    read.push_back(sampler(last, 0, static_cast<std::uint64_t>(n), before));
    before.add_drawn(read.back());
    text += loaded.tokenizer->bytes(read.back());
  }
  return text;
}

}  // namespace

TEST_CASE("generated text equals that of direct calls of model and sampler, far past the window") {
  const Trained trained;
  const std::string file = checkpoint(trained.run, 60);
  for (const maki::Sampling& options : {maki::Sampling{.temperature = 0}, maki::Sampling{.temperature = 1.3, .seed = 4},
                                        maki::Sampling{.temperature = 0.9, .top_k = 5, .seed = 5},
                                        maki::Sampling{.temperature = 1.1, .top_p = 0.7, .seed = 6}}) {
    Arguments flags = {"--temperature", fmt::format("{}", options.temperature)};
    if (options.temperature > 0) {
      flags =
          flags + Arguments{"--top-k", fmt::format("{}", options.top_k), "--top-p", fmt::format("{}", options.top_p),
                            "--seed",  fmt::format("{}", options.seed)};
    }
    REQUIRE(trained.generate("the reel ", 60, flags) == written_out(file, "the reel ", 60, options));
  }
}

TEST_CASE("past the end of the window generation continues as if the last half of the window had been the prompt") {
  const Trained trained;
  const std::string text = small_text();
  for (std::size_t i = 0; i < 8; ++i) {
    const std::string prompt = text.substr(60 * i, kWindow);
    // The first new token is drawn with the whole window in view, the second with half a window that ends with the
    // first.
    const std::string two = trained.generate(prompt, 2, {"--temperature", "0"});
    const std::string half = (prompt + two[0]).substr(kWindow + 1 - kWindow / 2);
    REQUIRE(two.substr(1) == trained.generate(half, 1, {"--temperature", "0"}));
  }
}

TEST_CASE("of several stop strings the one that occurs first in the text ends it, in whatever order they are given") {
  const Trained trained;
  const Arguments sampled = {"--seed", "3", "--temperature", "1"};
  const std::string text = trained.generate("the ", 80, sampled);
  REQUIRE(text.size() == 80);
  // Two strings that occur in the text, the second after the first.
  const std::string early = text.substr(20, 4), late = text.substr(50, 6);
  const std::size_t first = text.find(early);
  REQUIRE(first < text.find(late));
  for (const Arguments& stops :
       {Arguments{"--stop", early, "--stop", late}, Arguments{"--stop", late, "--stop", early}}) {
    REQUIRE(trained.generate("the ", 80, sampled + stops) == text.substr(0, first));
  }
  REQUIRE(trained.generate("the ", 80, sampled + Arguments{"--stop", late}) == text.substr(0, text.find(late)));
  // Two that end with the same character, the shorter one inside the longer: the longer one begins first.
  std::size_t at = 10;
  while (text.find(text.substr(at, 4)) != at || text.find(text.substr(at + 1, 3)) != at + 1) ++at;
  const std::string outer = text.substr(at, 4), inner = outer.substr(1);
  for (const Arguments& stops :
       {Arguments{"--stop", outer, "--stop", inner}, Arguments{"--stop", inner, "--stop", outer}}) {
    REQUIRE(trained.generate("the ", 80, sampled + stops) == text.substr(0, at));
  }
  // A stop string of which only the beginning occurs: what was held back for it is written in the end.
  REQUIRE(trained.generate("the ", 80, sampled + Arguments{"--stop", early + "\x01"}) == text);
}
