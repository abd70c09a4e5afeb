// The section source_tokenizer of a checkpoint: it is there exactly if the model has a vocabulary of its own for what
// it reads, and a checkpoint in which it is missing, damaged or of another size is refused as damaged.
#include "data/io/error.h"
#include "data/io/utf8.h"
#include "data/tokenizer/byte_tokenizer.h"
#include "data/tokenizer/char_tokenizer.h"
#include "data/tokenizer/word_tokenizer.h"
#include "tests/train/small_checkpoint.h"
#include "train/loop/tasks.h"
#include "train/run/config/models.h"
#include "train/run/loaded_model.h"
#include "train/run/verified_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::string kSection = "source_tokenizer";

Config small_config(const std::string& tokenizer, bool shared) {
  Config c = smallest_config();
  leave_open(c);
  c.model = "seq2seq";
  c.block_size = 16;
  c.tokenizer = tokenizer;
  c.share_vocabulary = shared;
  fill_open_fields(c);
  validate(c);
  return c;
}

// The checkpoint after a step of a model that translates.
std::string write_translation(const std::string& path, const std::string& tokenizer, bool shared) {
  const Config config = small_config(tokenizer, shared);
  Corpus corpus;
  corpus.sources = {"pairs.tsv"};
  corpus.text = "ab ab\txy xyz\nba ab\txyz xy z\n";
  corpus.characters = count_code_points(corpus.text);
  corpus.hash = "0123456789abcdef0123456789abcdef";
  const std::unique_ptr<Task> task = make_task(config, corpus);
  Trainer trainer(config, *task);
  trainer.step();
  CheckpointState state = task->data_state();
  state.step = 1;
  state.config = config;
  Unsynced fs;
  write_checkpoint(fs, path, state, trainer.store(), trainer.optimizer());
  return path;
}

std::size_t index_of(const Sections& sections, const std::string& name) {
  std::size_t i = 0;
  while (i < sections.size() && sections[i].first != name) ++i;
  return i;
}

// Requires that neither a resume nor a verb that only reads accepts a file with these sections: both report damage, and
// name `word`.
void require_damaged(const TemporaryFolder& folder, const Sections& sections, const std::string& word) {
  const std::string path = write_sections(folder / "forged.maki", sections);
  for (const auto& read :
       {std::function<void()>([&] { VerifiedCheckpoint{path}; }), std::function<void()>([&] { LoadedModel{path}; })}) {
    const std::string said = error_message<CorruptFile>(read);
    INFO("said: " << said);
    REQUIRE(said.starts_with(path));
    REQUIRE(contains(said, word));
  }
}

}  // namespace

TEST_CASE("a checkpoint of separate vocabularies has both tokenizers, one of a shared vocabulary has one") {
  const TemporaryFolder folder;
  for (const std::string kind : {"char", "word", "byte"}) {
    INFO(kind);
    const std::string separate = write_translation(folder / "separate.maki", kind, false);
    Sections sections = sections_of(separate);
    REQUIRE(index_of(sections, kSection) == index_of(sections, "tokenizer") + 1);
    REQUIRE(VerifiedCheckpoint(separate).state().step == 1);
    const LoadedModel loaded(separate);
    REQUIRE(loaded.tokenizers.source->save() == section(sections, kSection));
    REQUIRE(loaded.tokenizers.target->save() == section(sections, "tokenizer"));
    REQUIRE(loaded.tokenizers.source->kind() == kind);
    REQUIRE(loaded.tokenizer == loaded.tokenizers.target);
    REQUIRE(vocab_sizes(loaded.state).source == loaded.tokenizers.source->vocab_size() + 1);
    REQUIRE(vocab_sizes(loaded.state).target == loaded.tokenizers.target->vocab_size() + 1);

    const std::string shared = write_translation(folder / "shared.maki", kind, true);
    REQUIRE_FALSE(ContainerReader(shared).has(kSection));
    REQUIRE(VerifiedCheckpoint(shared).state().step == 1);
    const LoadedModel one(shared);
    REQUIRE(one.tokenizers.source == one.tokenizers.target);
    REQUIRE(vocab_sizes(one.state).source == 0);
    std::filesystem::remove(separate);
    std::filesystem::remove(shared);
  }
}

TEST_CASE("a source_tokenizer that is missing, empty, damaged or of another size is refused as damage") {
  const TemporaryFolder folder;
  const Sections good = sections_of(write_translation(folder / "good.maki", "word", false));
  const auto with = [&](const std::string& bytes) {
    Sections forged = good;
    section(forged, kSection) = bytes;
    return forged;
  };
  Sections missing = good;
  missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(index_of(missing, kSection)));
  require_damaged(folder, missing, kSection);
  require_damaged(folder, with(""), kSection);
  const std::string saved = good[index_of(good, kSection)].second;
  require_damaged(folder, with("maki word tokenizer 2\n" + saved), "tokenizer");
  require_damaged(folder, with(saved + "x"), "tokenizer");
  require_damaged(folder, with(saved.substr(0, saved.size() - 1)), "tokenizer");
  require_damaged(folder, with(std::string(100'000, '\xFF')), "tokenizer");
  // A valid tokenizer with another number of ids does not fit the model's table.
  require_damaged(folder, with(CharTokenizer("ab").save()), "encoder.wte.weight");
  require_damaged(folder, with(ByteTokenizer().save()), "encoder.wte.weight");
  Sections swapped = good;
  std::swap(swapped[index_of(good, kSection)], swapped[index_of(good, "tokenizer")]);
  require_damaged(folder, swapped, kSection);
  Sections exchanged = good;
  std::swap(section(exchanged, kSection), section(exchanged, "tokenizer"));
  require_damaged(folder, exchanged, "ids");
}

TEST_CASE("a source_tokenizer of a model without a vocabulary of sources is refused as damage") {
  const TemporaryFolder folder;
  for (const std::string& path :
       {write_translation(folder / "shared.maki", "word", true), write_smallest(folder / "gpt.maki")}) {
    Sections sections = sections_of(path);
    const std::size_t at = index_of(sections, "tokenizer");
    sections.insert(sections.begin() + static_cast<std::ptrdiff_t>(at) + 1, {kSection, sections[at].second});
    require_damaged(folder, sections, kSection);
    std::filesystem::remove(path);
  }
}
