// The configuration as TOML: types, line numbers in messages, and values that are read back exactly.
#include <clocale>
#include <limits>
#include <locale>
#include <version>

#include "data/io/error.h"
#include "tests/train/config_messages.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("an integer literal is accepted for a decimal field, a decimal one is not for an integer field") {
  Config config;
  const auto keys =
      apply_toml(config, "learning_rate = 1\nmin_lr = 0\nbias = true\nschedule = \"linear\"\nseed = 3\n", "some.toml");
  REQUIRE(keys == std::vector<std::string>{"bias", "learning_rate", "min_lr", "schedule", "seed"});
  REQUIRE(config.learning_rate == 1);
  REQUIRE(config.bias);
  REQUIRE(config.schedule == "linear");
  REQUIRE(config.seed == 3);
  for (const char* text :
       {"n_layer = 2.5", "n_layer = 2.0", "n_layer = \"2\"", "n_layer = true", "n_layer = [2]", "n_layer = {a = 2}",
        "learning_rate = \"1\"", "learning_rate = nan", "learning_rate = inf", "bias = 1", "bias = \"true\"",
        "schedule = 3", "schedule = true", "n_layer = 1979-05-27", "corpus = \"a.txt\"", "corpus = [1]"}) {
    const std::string said = toml(text);
    INFO(text << ": " << said);
    REQUIRE(contains(said, "some.toml: line 1"));
    REQUIRE(contains(said, std::string(text).substr(0, std::string(text).find(' '))));
  }
  const std::vector<std::pair<const char*, const char*>> sentences = {
      {"n_layer = 2.0", "n_layer: must be a whole number; got 2.0"},
      {"n_layer = '2'", "n_layer: must be a number; got '2'"},
      {"n_layer = [2]", "n_layer: must be a number; got a list"},
      {"n_layer = {a = 2}", "n_layer: must be a number; got a table"},
      {"bias = 1", "bias: must be true or false; got 1"},
      {"schedule = 1979-05-27", "schedule: must be a string in quotes; got 1979-05-27"},
      {"corpus = 'a.txt'", "corpus: must be a list of strings; got 'a.txt'"},
      {"include = ['a', 1]", "include: must be a list of strings; got the entry 1"},
      {"phases = true", "phases: must be a list of tables; got true"},
      {"phases = [3]", "phases: must be a list of tables; got the entry 3"},
      {"phases = [{end = 2, seed = 1}]", "phases: unknown key seed; the keys are start, end, learning_rate, min_lr, "},
      {"phases = [{start = 1, end = 2}]", "; got one without learning_rate"},
      {"init_from = 3", "init_from: must be a string in quotes; got 3"}};
  for (const auto& [text, said] : sentences) {
    INFO(text);
    REQUIRE(contains(toml(text), said));
  }
}

TEST_CASE("a whole value of a decimal field is written with a fraction, so that every reader takes it for a decimal") {
  Config config;
  const std::vector<std::pair<double, std::string>> numbers = {{1, "1.0"},   {0, "0.0"},      {-3, "-3.0"},
                                                               {0.1, "0.1"}, {1e-9, "1e-09"}, {1e300, "1e+300"}};
  for (const auto& [number, text] : numbers) {
    config.learning_rate = number;
    REQUIRE(field_text(config, find_field("learning_rate")) == text);
  }
}

TEST_CASE("text that is not TOML is refused, naming the line") {
  for (const char* text : {"n_layer = = 2", "n_layer 2", "n_layer = 2\nn_layer = 3", "x = \"", "\xff\xfe = 1", "="}) {
    INFO(text);
    REQUIRE(contains(toml(text), "some.toml: line "));
  }
  REQUIRE_FALSE(toml("n_layer = " + std::string(100000, '[')).empty());
}

TEST_CASE("a configuration that is too large, or could be nested too deeply, is refused before it is parsed") {
  std::string quoted_dots = "a";
  while (quoted_dots.size() < 200'000) quoted_dots += ".\".\".\"=\"";
  REQUIRE(contains(toml(quoted_dots + " = 1\n"), "at most 65536"));
  REQUIRE(contains(toml(quoted_dots.substr(0, 60'000) + " = 1\n"), "dots"));
  std::string nested;  // keys of many tables, nested in each other
  while (nested.size() < 60'000) nested += "a={" + std::string(1000, 'a') + ".a.a.a.a.a.a.a.a.a.a=[\n{";
  for (int i = 0; i < 20'000; ++i) nested += "a.";
  REQUIRE_FALSE(toml(nested.substr(0, 65'000)).empty());
  std::string dotted;
  for (int i = 0; i < 2'000; ++i) dotted += "a.";
  REQUIRE(
      contains(toml(dotted + "a = 1\n"), "unknown field a; this version knows those that it writes to config.toml"));
  REQUIRE(contains(toml(std::string(3'000'000, 'k') + " = 1\n"), "at most 65536"));
}

TEST_CASE("messages shorten a long key or value, and suggest no name for it") {
  const std::string key = toml(std::string(60'000, 'k') + " = 1\n");
  REQUIRE(key.size() < 300);
  REQUIRE(contains(key, "kkk… (60000 bytes)"));
  const std::string value = toml("schedule = \"" + std::string(60'000, 'v') + "\"\n");
  REQUIRE(value.size() < 300);
  REQUIRE(contains(value, "vvv… (60000 bytes)"));
  REQUIRE(toml(std::string(1'000, 'k') + " = 1\n" + std::string(1'000, 'k') + " = 1\n").size() < 1'000);
  for (const Field& field : fields()) {
    for (const std::string& long_value :
         {std::string(20'000, '9'), "random:" + std::string(20'000, '0') + "64", "2,3," + std::string(20'000, '4')}) {
      const std::string line =
          fmt::format(fmt::runtime(field.is_list() ? "{} = ['{}']" : "{} = '{}'"), field.name, long_value);
      INFO(field.name << " = " << long_value.substr(0, 20) << "…");
      REQUIRE(error_message<Error>([&] { validate(read_back(line)); }).size() < 1'000);
    }
  }
}

TEST_CASE("a list of sources that would make config.toml too large to be read again is refused, not written") {
  Config config;
  for (int i = 0; i < 700; ++i) config.corpus.push_back("/a/folder/with/a/long/name/" + std::to_string(i) + ".txt");
  REQUIRE(read_back(to_toml(config)).corpus == config.corpus);
  for (int i = 0; i < 3000; ++i) config.corpus.push_back("/a/folder/with/a/long/name/" + std::to_string(i) + ".txt");
  REQUIRE(contains(error_message<Error>([&] { to_toml(config); }), "pass the directory"));
}

TEST_CASE("a configuration of too many files is refused with a remedy") {
  std::string text = "corpus = [";
  for (int i = 0; i < 3000; ++i) text += "'a.txt', ";
  REQUIRE(toml(text + "]\n") ==
          "some.toml: must have at most 2048 dots; got 3000; shorten its list of the corpus to the "
          "directory that holds the files");
}

TEST_CASE("doubles are read back to the last bit, and names with any characters unchanged") {
#if defined(__cpp_lib_to_chars)
  const double smallest = 5e-324;
#else
  const double smallest = std::numeric_limits<double>::min();  // toml++ then reads with a stream, which refuses less
#endif
  for (const double value : {0.1, 1.0 / 3, 1e-3, smallest, 123.456789, 6.02e-23, 0.30000000000000004}) {
    Config config;
    config.learning_rate = value;
    REQUIRE(read_training_toml(training_toml(config)).learning_rate == value);
  }
  for (const std::string& name :
       {std::string("plain"), std::string("two words"), std::string("quote\"quote"), std::string("it's"),
        std::string("'\"'''\"\"\""), std::string("back\\slash\\"), std::string("tab\tnew\nline"),
        std::string("\nnewline first\n"), std::string("\r\n"), std::string("日本語の巻"), std::string("# no comment"),
        std::string("bell\a\x7f\x1b"), std::string(" ")}) {
    Config config;
    config.out = name;
    config.corpus = {name, "other", name};
    const Config again = read_back(to_toml(config));
    INFO(name);
    REQUIRE(again.out == name);
    REQUIRE(again.corpus == config.corpus);
  }
}

TEST_CASE("phases and what a run records are written only if they are set, and are read back unchanged") {
  Config config;
  REQUIRE_FALSE(contains(to_toml(config), "phases"));
  REQUIRE_FALSE(contains(training_toml(config), "init_from"));
  config.phases = {{100, 200, 0.1, 1.0 / 3 / 10, 5}, {200, 300, 2, 0, 0}};
  config.init_from = "0123456789abcdef0123456789abcdef";
  config.taught_by = "0.5 0123456789abcdef0123456789abcdef";
  for (const Config& again : {read_back(to_toml(config)), read_training_toml(training_toml(config))}) {
    REQUIRE(again.phases == config.phases);
    REQUIRE(again.init_from == config.init_from);
    REQUIRE(again.taught_by == config.taught_by);
  }
  REQUIRE(training_differences(config, Config()).size() == 3);
  REQUIRE(phases_before(config, 100).empty());
  REQUIRE(phases_before(config, 101).size() == 1);
  validate(config);
  for (const char* text :
       {"phases = 3", "phases = [3]", "phases = [{start = 1, end = 2}]",
        "phases = [{start = -1, end = 2, learning_rate = 1, min_lr = 1, warmup_steps = 1}]",
        "phases = [{start = 1, end = 2, learning_rate = nan, min_lr = 1, warmup_steps = 1}]",
        "phases = [{start = 1, end = 2, learning_rate = 1, min_lr = 1, seed = 1}]", "init_from = 3"}) {
    INFO(text);
    REQUIRE(contains(toml(text), "some.toml: line 1"));
  }
  const std::string rest = ", learning_rate = 1, min_lr = 1, warmup_steps = 1}]";
  REQUIRE(toml("phases = [{start = 0, end = 1000000000" + rest).empty());
  REQUIRE(contains(toml("phases = [{start = 1, end = 1000000001" + rest), "end: must be between 0 and 1000000000"));
  REQUIRE(contains(toml("phases = [{start = -1, end = 2" + rest), "start: must be between 0 and 1000000000; got -1"));
  REQUIRE(contains(toml("phases = [{start = '1', end = 2" + rest), "start: must be a whole number; got '1'"));
  const auto said = [&](auto change) {
    Config changed = config;
    change(changed);
    return error_message<Error>([&] { validate(changed); });
  };
  REQUIRE(contains(said([](Config& c) { c.phases[1].start = 100; }), "100"));
  REQUIRE(contains(said([](Config& c) { c.phases[1].end = 200; }), "200 to 200"));
  REQUIRE(contains(said([](Config& c) { c.phases[0].min_lr = 1; }), "min_lr"));
  REQUIRE(contains(said([](Config& c) { c.init_from = "none"; }), "init_from"));
  REQUIRE(contains(said([](Config& c) { c.taught_by = "0.5\033[1m"; }), "taught_by: must be a weight and hashes"));
}

TEST_CASE("a path that is not UTF-8 is refused, because it could not be read back from TOML") {
  for (const char* const name : {"\xff", "caf\xe9.txt", "\xed\xa0\x80", "a\xc0\xaf"}) {
    Config config;
    config.corpus = {"good.txt", name};
    REQUIRE(contains(error_message<CorpusError>([&] { validate(config); }), "UTF-8"));
    REQUIRE(contains(error_message<CorpusError>([&] { to_toml(config); }), "UTF-8"));
    config.corpus = {};
    config.out = name;
    REQUIRE(contains(error_message<Error>([&] { validate(config); }), "out"));
    REQUIRE(contains(error_message<Error>([&] { to_toml(config); }), "out"));
  }
}

TEST_CASE("the locale changes nothing") {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  Config config;
  config.learning_rate = 0.0125;
  config.max_steps = 1234567;
  const std::string before = to_toml(config);
  const std::locale old = std::locale::global(std::locale(std::locale::classic(), new Comma));
  std::string during, refused;
  Config again;
  try {
    during = to_toml(config);
    again = read_back(before);
    refused = set("learning_rate", "0,5");
  } catch (...) {
    std::locale::global(old);
    throw;
  }
  std::locale::global(old);
  REQUIRE(during == before);
  REQUIRE(again.learning_rate == 0.0125);
  REQUIRE(again.max_steps == 1234567);
  REQUIRE_FALSE(refused.empty());
}

TEST_CASE("the locale of C, if an installed one has other decimal points or letters, changes nothing") {
  struct Restored {
    std::string name = std::setlocale(LC_ALL, nullptr);
    ~Restored() { std::setlocale(LC_ALL, name.c_str()); }
  };
  Config config;
  config.learning_rate = 0.0125;
  config.max_steps = 1234567;
  const std::string before = to_toml(config);
  int installed = 0;
  for (const char* const name : {"de_DE.UTF-8", "tr_TR.UTF-8"}) {
    const Restored restored;
    if (std::setlocale(LC_ALL, name) == nullptr) continue;
    ++installed;
    INFO(name);
    REQUIRE(to_toml(config) == before);
    const Config again = read_back(before);
    REQUIRE(again.learning_rate == 0.0125);
    REQUIRE(again.max_steps == 1234567);
    REQUIRE_FALSE(set("learning_rate", "0,5").empty());
  }
  if (installed == 0) WARN("skipped: neither the German nor the Turkish locale is installed");
}
