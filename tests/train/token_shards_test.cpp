// Tokens in several files: the same dataset as one file with all of them.
#include "data/dataset/token_shards.h"

#include "data/dataset/foreign_tokens.h"
#include "data/dataset/window_batches.h"
#include "tests/train/prepared.h"
#include "tests/train/small_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

std::string llm_c_file(const std::vector<std::uint16_t>& ids) {
  std::vector<std::int32_t> header(256);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = static_cast<std::int32_t>(ids.size());
  return std::string(reinterpret_cast<const char*>(header.data()), 1024) +
         std::string(reinterpret_cast<const char*>(ids.data()), 2 * ids.size());
}

std::string nanogpt_file(const std::vector<std::uint16_t>& ids) {
  return std::string(reinterpret_cast<const char*>(ids.data()), 2 * ids.size());
}

std::vector<std::uint16_t> numbers(std::size_t count, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::shuffle);
  std::vector<std::uint16_t> ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<std::uint16_t>(stream.below(i, 200));
  return ids;
}

// Writes a file with all ids and files with parts of them, some empty, and returns the paths of the parts.
std::vector<std::string> write_parts(const TemporaryFolder& folder, const std::string& name,
                                     const std::vector<std::uint16_t>& ids,
                                     std::string (*file)(const std::vector<std::uint16_t>&)) {
  folder.write(name + ".bin", file(ids));
  std::vector<std::string> paths;
  const std::vector<std::size_t> ends = {1, 7, 7, 100, ids.size()};
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    const std::vector<std::uint16_t> part(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                          ids.begin() + static_cast<std::ptrdiff_t>(end));
    paths.push_back(folder.write(fmt::format("parts/{}_{:06}.bin", name, paths.size()), file(part)));
    begin = end;
  }
  return paths;
}

Dataset dataset_from(const std::vector<std::string>& sources, double val_fraction = 0.1) {
  const auto corpus = prepared_corpus(sources);
  REQUIRE(corpus);
  return make_dataset(*corpus, val_fraction, 4, "", make_tokenizer("byte", ""));
}

// The bytes of the checkpoint after some steps on a dataset.
std::string checkpoint_bytes(const TemporaryFolder& folder, const Dataset& data) {
  const Config config = smallest_config();
  TextTrainer trainer(config, data);
  for (int i = 0; i < 5; ++i) trainer.step();
  Unsynced fs;
  write_checkpoint(fs, folder / "checkpoint", state_after(5, config, data), trainer.store(), trainer.optimizer());
  return read_bytes(folder / "checkpoint");
}

}  // namespace

TEST_CASE("a chain of tokens has the ids and joins of its parts", "[token_shards_test]") {
  const std::vector<std::uint8_t> a = {1, 2, 3}, b = {4};
  const std::vector<std::int32_t> c = {500, 600};
  const std::vector<std::int64_t> joins = {1};
  const std::vector<TokenSpan> parts = {TokenSpan(std::span(a), joins), {}, TokenSpan(std::span(b), {}), c};
  const TokenChain text(parts, TokenChain::Border::none), pieces(parts, TokenChain::Border::piece);
  const std::vector<std::int32_t> all = {1, 2, 3, 4, 500, 600};
  for (const TokenSpan span : {TokenSpan(text), TokenSpan(pieces)}) {
    REQUIRE(span.size() == all.size());
    for (std::size_t begin = 0; begin <= all.size(); ++begin) {
      for (std::size_t count = 0; begin + count <= all.size(); ++count) {
        const std::vector<std::int32_t> expected(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                                 all.begin() + static_cast<std::ptrdiff_t>(begin + count));
        REQUIRE(span.ids(begin, count) == expected);
        REQUIRE(span.last(all.size() - begin).first(count).ids() == expected);
      }
      if (begin < all.size()) REQUIRE(span.last(all.size() - begin)[0] == all[begin]);
    }
  }
  REQUIRE(std::ranges::equal(TokenSpan(text).joins(), std::vector<std::int64_t>{1}));
  REQUIRE(std::ranges::equal(TokenSpan(pieces).joins(), std::vector<std::int64_t>{1, 3, 4}));
  REQUIRE(TokenSpan(TokenChain({}, TokenChain::Border::piece)).empty());
}

TEST_CASE("tokens that a file keeps are not appended to", "[token_shards_test]") {
  const auto ids = std::make_shared<const std::vector<std::int32_t>>(std::vector<std::int32_t>{1, 2});
  Tokens shared(TokenSpan(*ids), ids);
  REQUIRE_THROWS_WITH(shared.append(std::vector<std::int32_t>{3}), "tokens: those of a file cannot be appended to");
  REQUIRE(shared.ids() == *ids);
}

TEST_CASE("files of nanoGPT and llm.c with parts of a text are the dataset of one file", "[token_shards_test]") {
  for (auto* const file : {nanogpt_file, llm_c_file}) {
    const TemporaryFolder folder;
    std::vector<std::string> parts = write_parts(folder, "train", numbers(300, 1), file);
    require_same(dataset_from(parts), dataset_from({folder / "train.bin"}));
    const std::vector<std::string> val = write_parts(folder, "val", numbers(120, 2), file);
    parts.insert(parts.begin() + 2, val.begin(), val.end());
    const Dataset whole = dataset_from({folder / "train.bin", folder / "val.bin"});
    for (const std::vector<std::string>& sources : {parts, {folder / "parts"}}) {
      const Dataset data = dataset_from(sources);
      require_same(data, whole);
      REQUIRE(data.prepared->facts.val_bytes == whole.prepared->facts.val_bytes);
      REQUIRE(checkpoint_bytes(folder, data) == checkpoint_bytes(folder, whole));
      const TrainBatches batches(data.train, 3, 4, 2, 7), expected(whole.train, 3, 4, 2, 7);
      for (std::int64_t step = 0; step < 40; ++step) {
        std::vector<std::int32_t> ids(12), targets(12), expected_ids(12), expected_targets(12);
        REQUIRE(batches.fill(step, 1, ids, targets) == expected.fill(step, 1, expected_ids, expected_targets));
        REQUIRE(ids == expected_ids);
        REQUIRE(targets == expected_targets);
      }
    }
  }
}

TEST_CASE("an id that the tokenizer lacks is refused with the name of the first of several files",
          "[token_shards_test]") {
  const TemporaryFolder folder;
  const std::string first = folder.write("train_1.bin", nanogpt_file({1, 2, 3, 4, 5}));
  const std::string second = folder.write("train_2.bin", nanogpt_file({6, 7, 256, 8}));
  const std::string val = folder.write("val.bin", nanogpt_file({1, 2, 3, 4, 5}));
  const auto said = [&](const std::vector<std::string>& sources) {
    return error_message<CorpusError>([&] { dataset_from(sources); });
  };
  const std::string what = ": contains the id 256, but the tokenizer has 256 tokens";
  REQUIRE_THAT(said({first, second, val}), Catch::Matchers::StartsWith(first + " and 2 more" + what));
  REQUIRE_THAT(said({second, val}), Catch::Matchers::StartsWith(second + what));
}

TEST_CASE("parts of characters are counted as characters of at most four tokens, and ends of texts as documents",
          "[token_shards_test]") {
  const TemporaryFolder folder;
  const auto facts = [&](const std::vector<std::uint16_t>& ids, const std::shared_ptr<const Tokenizer>& tokenizer,
                         double val_fraction) {
    const Corpus corpus = prepared_corpus({folder.write("t.bin", nanogpt_file(ids))}).value();
    return make_dataset(corpus, val_fraction, 4, "", tokenizer).prepared->facts;
  };
  const std::shared_ptr<const Tokenizer> bytes = make_tokenizer("byte", "");
  const std::vector<std::uint16_t> parts(44, 0x80);  // each continues a character
  const TokenFileFacts split = facts(parts, bytes, 0.25), whole = facts(parts, bytes, 0);
  REQUIRE((split.train_tokens == 33 && split.val_tokens == 11));
  REQUIRE(split.val_characters == 3);
  REQUIRE(split.characters == 9 + 3);
  REQUIRE((split.bytes == 44 && split.val_bytes == 11 && split.documents == 0));
  REQUIRE((whole.characters == 12 && whole.val_characters == 0));
  const std::shared_ptr<const Tokenizer> pairs = make_tokenizer("bpe", "the cat the cat", {.vocab_size = 262});
  std::vector<std::uint16_t> ids(40, 0x61);
  for (const std::size_t at : {3U, 20U, 39U}) ids[at] = static_cast<std::uint16_t>(pairs->end_of_text().value());
  REQUIRE(facts(ids, pairs, 0.25).documents == 3);
  REQUIRE(facts(ids, pairs, 0).documents == 3);
}

TEST_CASE("names say which files are for validation", "[token_shards_test]") {
  const auto of = [](const std::vector<std::string>& files) { return foreign_token_paths(files).value(); };
  REQUIRE(of({"a/x.bin", "a/y.bin"}).val == std::vector<std::string>{"a/y.bin"});
  REQUIRE(of({"val/train_1.bin", "val/train_2.bin"}).val.empty());
  REQUIRE(of({"x_train_1.bin", "x_val_0.bin"}).val == std::vector<std::string>{"x_val_0.bin"});
  REQUIRE(of({"val/1.bin", "val/2.bin", "val/3.bin"}).val.empty());
  REQUIRE(of({"c.bin", "my_val_0.bin", "a.bin"}).train == std::vector<std::string>{"c.bin", "a.bin"});
  REQUIRE(of({"val.bin"}).train == std::vector<std::string>{"val.bin"});
  REQUIRE_THROWS_WITH(of({"val_1.bin", "val_2.bin", "val_3.bin"}),
                      "val_1.bin: none of the files is for training, as their names say; name some for training");
  REQUIRE_FALSE(foreign_token_paths({"a.bin", "b.txt"}));
  using Paths = std::vector<std::string>;
  // Words decide, not letters, nor the order; a folder counts if no file says anything.
  REQUIRE(of({"val.bin", "train.bin"}).train == Paths{"train.bin"});
  REQUIRE(of({"x-Validation.bin", "x.bin"}).train == Paths{"x.bin"});
  REQUIRE(of({"b.bin", "train2.bin"}).val == Paths{"b.bin"});
  REQUIRE(of({"medieval_00.bin", "medieval_01.bin", "modern_00.bin"}).val.empty());
  REQUIRE(of({"medieval/0.bin", "modern/0.bin", "modern/1.bin"}).train.size() == 3);
  REQUIRE(of({"valid/0.bin", "train/0.bin", "train/1.bin"}).val == Paths{"valid/0.bin"});
  REQUIRE(of({"a.bin", "my-training.bin"}).val == Paths{"a.bin"});
  REQUIRE_THROWS_WITH(of({"other.bin", "train_val.bin"}),
                      ContainsSubstring("train_val.bin: its name must say one purpose"));
  // A file for testing validates only if no other does.
  const ForeignTokenPaths two = of({"test.bin", "train.bin"}), three = of({"test.bin", "train.bin", "val.bin"});
  REQUIRE(two.train == Paths{"train.bin"});
  REQUIRE(two.val == Paths{"test.bin"});
  REQUIRE_THAT(two.notes.at(0), ContainsSubstring("test.bin") && ContainsSubstring("is used for validation"));
  REQUIRE(three.train == Paths{"train.bin"});
  REQUIRE(three.val == Paths{"val.bin"});
  REQUIRE_THAT(three.notes.at(0), ContainsSubstring("test.bin") && ContainsSubstring("is not read"));
}

TEST_CASE("token files of maki are read together if they are alike", "[token_shards_test]") {
  const TemporaryFolder folder;
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer("byte", "");
  const auto make = [&](const std::string& name, std::size_t bytes, double val_fraction, const std::string& kind) {
    const std::string text = folder.write("texts/" + name, words(bytes, bytes));
    std::filesystem::create_directories(folder / "files");
    PrepareOptions options{.sources = {}, .val_fraction = val_fraction, .tokenizer_kind = kind, .out = {}};
    prepare({text}, folder / ("files/" + name), options);
    return folder / ("files/" + name);
  };
  const std::string a = make("a", 500, 0.1, "byte"), b = make("b", 900, 0.1, "byte");
  const Dataset first = dataset_from({a}), second = dataset_from({b}), both = dataset_from({a, b});
  std::vector<std::int32_t> train = first.train.ids();
  const auto border = static_cast<std::int64_t>(train.size());
  const std::vector<std::int32_t> rest = second.train.ids();
  train.insert(train.end(), rest.begin(), rest.end());
  REQUIRE(both.train.ids() == train);
  REQUIRE(std::ranges::equal(both.train.view().joins(), std::vector{border}));
  REQUIRE(both.val.size() == first.val.size() + second.val.size());
  REQUIRE(both.characters == first.characters + second.characters);
  REQUIRE(both.prepared->facts.bytes == first.prepared->facts.bytes + second.prepared->facts.bytes);
  require_same(dataset_from({folder / "files"}), both);
  REQUIRE(dataset_from({b, a}).corpus_hash != both.corpus_hash);

  verify_token_file(*both.prepared);
  std::string damaged = read_bytes(b);
  damaged[400] = static_cast<char>(damaged[400] ^ 1);  // a token
  const std::string bad = folder.write("bad", damaged);
  REQUIRE_THAT(error_message<CorpusError>([&] {
                 verify_token_file(*open_token_files({a, bad}));
               }),
               Catch::Matchers::StartsWith(bad) && ContainsSubstring("checksum mismatch of its data"));

  const auto said = [&](const std::vector<std::string>& sources) {
    return error_message<CorpusError>([&] { prepared_corpus(sources); });
  };
  REQUIRE_THAT(said({a, make("c", 500, 0.2, "byte")}), ContainsSubstring("`val_fraction`") && ContainsSubstring("0.2"));
  REQUIRE_THAT(said({a, make("d", 500, 0.1, "char")}),
               ContainsSubstring("same tokenizer") && ContainsSubstring(tokenizer->hash()));
  REQUIRE_THAT(said({folder / "texts/a", a}), ContainsSubstring("texts/a"));
  REQUIRE_THAT(said({folder.write("x/1.bin", llm_c_file({1})), folder.write("x/2.bin", "ab"),
                     folder.write("x/3.bin", llm_c_file({1}))}),
               ContainsSubstring("2.bin") || ContainsSubstring("3.bin"));
  folder.write("files/readme.txt", "A text beside token files is a text, as before.");
  REQUIRE_FALSE(prepared_corpus({folder / "files"}));
  REQUIRE_FALSE(prepared_corpus({folder / "texts"}));
  REQUIRE_FALSE(prepared_corpus({folder / "missing"}));
  REQUIRE_THAT(error_message<Error>([] { prepared_corpus({}); }),
               ContainsSubstring("must name at least one file") && ContainsSubstring("got none"));
}

TEST_CASE("a directory with a model of Hugging Face is no corpus, alone or beside a text", "[token_shards_test]") {
  const TemporaryFolder folder;
  const std::string hf = folder / "hf", text = folder.write("text", "a text");
  folder.write("hf/config.json", "{}");
  REQUIRE_FALSE(prepared_corpus({hf}));
  for (const std::string weights : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"}) {
    const std::string file = folder.write("hf/" + weights, "x");
    for (const std::vector<std::string>& sources : {{hf}, std::vector{text, hf}}) {
      REQUIRE(error_message<Error>([&] { prepared_corpus(sources); }) ==
              hf + ": is a model of Hugging Face, not a run or a text; make a run of it with: maki import " + hf);
    }
    std::filesystem::remove(file);
  }
  folder.write("hf/model.safetensors", "x");
  for (const char* const name : {"hf/train.bin", "hf/val.bin"}) folder.write(name, nanogpt_file({1, 2}));
  REQUIRE(prepared_corpus({hf}));
}
