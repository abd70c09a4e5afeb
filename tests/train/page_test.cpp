// The page of `maki serve` is safe under its Content-Security-Policy, small, and complete in both languages.
#include <algorithm>
#include <regex>
#include <set>
#include <string>

#include "tests/catch.h"
#include "train/app/serve/page_text.h"

namespace maki {
namespace {

std::string content(std::string_view path) {
  const std::string_view text = path == "/" ? kPageHtml : path == "/style.css" ? kPageStyle : kPageScript;
  REQUIRE(!text.empty());
  return std::string(text);
}

// The first group of each match.
std::set<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    found.insert((*match)[1].str());
  return found;
}

}  // namespace

TEST_CASE("the page has three files, at most 900 lines together") {
  std::ptrdiff_t lines = 0;
  for (const char* path : {"/", "/style.css", "/page.js"}) {
    const std::string text = content(path);
    CHECK(text.back() == '\n');
    lines += std::ranges::count(text, '\n');
  }
  CHECK(lines <= 900);
}

TEST_CASE("the page has neither inline scripts nor inline styles, and names no other origin") {
  const std::string html = content("/");
  CHECK(matches(html, R"(\s(style|on[a-z]+)=)").empty());
  CHECK(matches(html, "(<style|<script>)").empty());
  CHECK(matches(html, R"re((?:src|href)="([^"]*)")re") == std::set<std::string>{"data:,", "/page.js", "/style.css"});
  for (const char* path : {"/", "/style.css", "/page.js"}) {
    std::set<std::string> others = matches(content(path), R"((https?://[^'" )]*))");
    others.erase("http://www.w3.org/2000/svg");  // the name of a format, which nobody fetches
    CHECK(others.empty());
  }
}

TEST_CASE("what the page reads of an event may contain any character, also U+2028, which a dot leaves out") {
  CHECK(matches(content("/page.js"), R"re((\.\*[^/\n]*/[a-z]*)\.exec)re") == std::set<std::string>{".*)$/s"});
}

TEST_CASE("the page compares losses over the same part of the validation text, and shows that of the best checkpoint") {
  const std::string script = content("/page.js");
  CHECK(matches(script, R"(losses\[line\.step\]\] = \[line, ([^\]]*)\])") ==
        std::set<std::string>{"line.sampled_val_loss ?? line.val_loss"});
  CHECK(matches(script, R"(curves\.validation\.add\(.*, (.*)\);)") == std::set<std::string>{"losses[line.step]"});
  CHECK(matches(script, R"(rows\.bestLoss = (.*);)") == std::set<std::string>{"format(losses[run.best])"});
  CHECK(matches(script, R"(rows\.validationLoss = (.*);)") == std::set<std::string>{"format(evaluation.val_loss)"});
}

TEST_CASE("the losses of a classifier are those of texts, and not of tokens") {
  const std::string script = content("/page.js");
  CHECK(matches(script, R"(title: text\((.*)\), lines: lines)") ==
        std::set<std::string>{"name === 'loss' && run.loss_per_text ? 'textLoss' : name"});
  CHECK(matches(script, R"(\btextLoss: (\[[^\]]*\]))") ==
        std::set<std::string>{"['Loss, nats per text', '損失（1 テキストあたりのナット）']"});
}

TEST_CASE("the page goes on asking for runs after a drawing that failed, and draws a run without a last checkpoint") {
  const std::string script = content("/page.js");
  CHECK(matches(script, R"(await (lookForRuns\(\)[^;]*);)") ==
        std::set<std::string>{"lookForRuns().catch(console.error)"});
  CHECK(matches(script, R"(format\(([^()]*run\.step[^()]*), 9\))") ==
        std::set<std::string>{"now?.step ?? run.step ?? 0"});
}

TEST_CASE("what the page says of a run, or of a request for it, ends with another run") {
  CHECK(matches(content("/page.js"), R"(if \((lost [^()]*)\) say\('problem', run \?)") ==
        std::set<std::string>{"lost || run?.name !== before?.name || !run"});
}

TEST_CASE("the text to look inside is proposed until the user changes it, and cuts no character in half") {
  const std::string script = content("/page.js");
  CHECK(matches(script, R"(box\.defaultValue \|\|= (.*?);)") ==
        std::set<std::string>{"new TextDecoder().decode(bytes, { stream: true })"});
  // No token has less than a byte, so that the context holds as many bytes as tokens.
  CHECK(matches(script, R"(const bytes = (.*?);)") ==
        std::set<std::string>{"new TextEncoder().encode([...begun].slice(0, 40).join('')).slice(0, run.block_size)"});
}

TEST_CASE("the run, the explanation and the cell that are shown stay those that the user has chosen") {
  const std::string script = content("/page.js");
  CHECK(matches(script, R"(names\.indexOf\((.*)\), 0\))") == std::set<std::string>{"settings.get('run') ?? run?.name"});
  CHECK(matches(script, R"(question === asks && \((.*)\)\) return;)") ==
        std::set<std::string>{"trail.length || askedAt === run.shown"});
  CHECK(matches(script, R"(canvas\.onpointerdown = (\S+) =)") == std::set<std::string>{"canvas.onpointermove"});
}

TEST_CASE("a page that is hidden follows no run, and the best checkpoint is asked for by no step") {
  const std::string script = content("/page.js");
  CHECK(matches(script, R"(document\.onvisibilitychange = (\w+);)") == std::set<std::string>{"listen"});
  CHECK(matches(script, R"(if \((.*document\.hidden)\) return;)") == std::set<std::string>{"!run || document.hidden"});
  CHECK(matches(script, R"(const model = (.*) \? '' :)") ==
        std::set<std::string>{"step === best && wanted === 'best'"});
}

TEST_CASE("a text is scored by all of its tokens, also by those that only begin a character") {
  CHECK(matches(content("/page.js"), R"(const known = (choice.*), count)") ==
        std::set<std::string>{"choice.logprobs.token_logprobs.filter((chance) => chance !== null)"});
}

TEST_CASE("alternatives that cannot be written into a text cannot be chosen") {
  const std::string script = content("/page.js");
  CHECK(matches(script, R"((\w+\.top_not_text\[i\][^\]]*)\])") ==
        std::set<std::string>{"logprobs.top_not_text[i]?.includes(name)"});
  CHECK(matches(script, R"(share: Math\.exp\(logprob\), (\w+),)") == std::set<std::string>{"disabled"});
}

TEST_CASE("every text of the page exists in English and in Japanese") {
  const std::string html = content("/"), script = content("/page.js");
  const std::set<std::string> texts = matches(script, R"((\w+): \['[^']+',\s+'[^']+'\])");
  REQUIRE(texts.size() > 80);
  std::set<std::string> used = matches(html, R"re(data-(?:text|label|placeholder)="(\w+)")re");
  used.merge(matches(script, R"(\b(?:text|paragraph)\('(\w+)')"));
  REQUIRE(used.size() > 60);
  for (const std::string& name : used) {
    INFO(name);
    CHECK(texts.contains(name));
  }
}

}  // namespace maki
