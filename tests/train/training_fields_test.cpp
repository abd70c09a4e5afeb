// Every training field takes part in training: another value gives other weights in the checkpoint after a few steps.
// This detects a field that is parsed, printed and stored, but not used.
#include <map>
#include <set>

#include "data/io/utf8.h"
#include "tests/train/small_checkpoint.h"
#include "tests/train/small_data.h"
#include "train/loop/tasks.h"
#include "train/loop/trainer.h"
#include "train/run/verified_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

void set(Config& config, const Settings& settings) {
  for (const auto& [name, text] : settings) set_field(config, find_field(name), text);
}

// A value other than that of fields_config(), or for a choice all other values. `needs` are the settings under which
// the field has an effect.
struct Row {
  std::string field;
  std::vector<std::string> values;
  Settings needs = {};
};

const std::vector<Row> kRows = {
    {"model", {"seq2seq", "linear", "encoder", "transformer-xl"}},
    {"task", {"classify"}, {{"model", "encoder"}}},
    {"share_vocabulary", {"true"}, {{"model", "seq2seq"}}},
    {"n_layer", {"2"}},
    {"n_head", {"1"}},
    {"n_kv_head", {"1"}},
    {"n_embd", {"12"}},
    {"precision", {"bfloat16"}},
    {"block_size", {"5"}},
    {"dropout", {"0.3"}},
    {"bias", {"false"}},
    {"tie_weights", {"false"}},
    {"activation", {"gelu_tanh", "relu", "relu_squared", "silu", "swiglu"}},
    {"norm_order", {"post"}},
    {"norm", {"rms"}},
    {"positions", {"sinusoidal", "rotary", "none"}},
    {"position_base", {"100"}, {{"positions", "sinusoidal"}}},
    {"attention", {"softmax", "random:8", "nystrom:4"}, {{"model", "linear"}}},
    {"memory", {"0", "3"}, {{"model", "transformer-xl"}}},
    {"ngram_orders", {"2", "3", "2,3"}},
    {"ngram_prior", {"1", "3"}},
    {"respect_documents", {"true"}, {{"documents", "true"}}},
    {"ngram_rows", {"20"}, {{"ngram_orders", "2,3"}}},
    {"ngram_dropout", {"0.4"}, {{"ngram_orders", "2,3"}}},
    {"ngram_lr_factor", {"0.5"}, {{"ngram_orders", "2,3"}}},
    {"qk_norm", {"true"}},
    {"conv_width", {"2", "3"}},
    {"ffn_width", {"20"}},
    {"norm_epsilon", {"0.001"}},
    {"zero_projections", {"true"}},
    {"lora_rank", {"1", "3"}},
    {"lora_alpha", {"5"}, {{"lora_rank", "2"}}},
    {"lora_targets", {"*.attn.*", "*.mlp.*"}, {{"lora_rank", "2"}}},
    {"freeze", {"wte.*", "h.0.*"}},
    {"dtype", {"float64"}},
    {"tokenizer", {"byte", "word", "bpe"}},
    {"vocab_size", {"259"}, {{"tokenizer", "bpe"}}},
    {"normalize", {"nfc", "nfkc"}},
    {"val_fraction", {"0.3"}},
    {"batch_size", {"3"}},
    {"grad_accum", {"3"}},
    {"seed", {"8"}},
    {"label_smoothing", {"0.2"}},
    {"grad_clip", {"0.1"}},
    {"optimizer", {"adam", "sgd", "muon"}},
    {"learning_rate", {"0.02"}},
    {"muon_lr", {"0.05"}, {{"optimizer", "muon"}}},
    {"min_lr", {"0.004"}},
    {"beta1", {"0.8"}},
    {"beta2", {"0.9"}},
    {"momentum", {"0.5"}, {{"optimizer", "sgd"}}},
    {"nesterov", {"true"}, {{"optimizer", "sgd"}, {"momentum", "0.5"}}},
    {"weight_decay", {"0.5"}},
    {"schedule", {"linear", "constant", "inverse_sqrt", "wsd"}},
    {"warmup_steps", {"3"}},
    {"lr_decay_steps", {"7"}},
};

// The learning rate rises, falls and reaches min_lr within the eight steps.
Config fields_config() {
  Config c;
  set(c, {{"n_layer", "1"},
          {"n_head", "2"},
          {"n_embd", "8"},
          {"block_size", "6"},
          {"dropout", "0.1"},
          {"batch_size", "2"},
          {"grad_accum", "2"},
          {"val_fraction", "0.2"},
          {"learning_rate", "0.01"},
          {"min_lr", "0.002"},
          {"label_smoothing", "0.1"},
          {"grad_clip", "0.5"},
          {"warmup_steps", "2"},
          {"lr_decay_steps", "6"}});
  leave_open(c);
  return c;
}

// Text for the task: 400 letters, in documents of 40 bytes if there are documents; or lines of three letters, a tab and
// three letters, or one as a label.
Corpus corpus_for(const Config& config) {
  const bool pairs = !task_rule(config).plain_text();
  Corpus corpus;
  corpus.sources = {"text"};
  corpus.text = seeded_text(400, pairs ? "abcdefg" : "abcdefg \n");
  // Characters that NFC and NFKC change.
  const std::string unnormalized = "e\u0301 \uFB01\uFB01\uFB01\uFB01\uFB01\uFB01\uFB01 ";
  if (!pairs) corpus.text.insert(0, unnormalized);
  if (pairs) {
    for (std::size_t i = 3; i < corpus.text.size(); i += 4) corpus.text[i] = i % 8 == 3 ? '\t' : '\n';
  }
  for (std::size_t at = 0; config.documents && at < corpus.text.size(); at += 40) corpus.documents.push_back(at);
  corpus.characters = count_code_points(corpus.text);
  corpus.hash = "0123456789abcdef0123456789abcdef";
  return corpus;
}

// The section `values` of the checkpoint after eight steps.
std::string values_after_training(const TemporaryFolder& folder, Config config) {
  fill_open_fields(config);
  validate(config);
  const std::unique_ptr<Task> task = make_task(config, corpus_for(config));
  Trainer trainer(config, *task);
  for (int i = 0; i < 8; ++i) trainer.step();
  CheckpointState state = task->data_state();
  state.step = 8;
  state.config = config;
  Unsynced fs;
  write_checkpoint(fs, folder / "trained.maki", state, trainer.store(), trainer.optimizer(), trainer.carried());
  REQUIRE(VerifiedCheckpoint(folder / "trained.maki").state().step == 8);
  return ContainerReader(folder / "trained.maki").read("values");
}

}  // namespace

TEST_CASE("a different value of any training field gives different weights") {
  const TemporaryFolder folder;
  std::map<std::string, const Row*> rows;
  for (const Row& row : kRows) rows[row.field] = &row;
  for (const Field& field : fields()) {
    if (!field.is_training() || field.choices.size() == 1) continue;
    INFO("field " << field.name << ": a new one needs a row in this table");
    REQUIRE(rows.contains(field.name));
    const Row& row = *rows[field.name];
    // A model has only some of the tasks.
    if (!field.choices.empty() && field.name != "task") REQUIRE(row.values.size() + 1 == field.choices.size());
    Config config = fields_config();
    set(config, row.needs);
    const std::string unchanged = values_after_training(folder, config);
    REQUIRE(unchanged == values_after_training(folder, config));
    std::set<std::string> seen = {unchanged};
    Config filled = config;
    fill_open_fields(filled);
    for (const std::string& value : row.values) {
      INFO("value " << value);
      Config changed = config;
      set(changed, {{field.name, value}});
      REQUIRE(field_text(changed, field) != field_text(filled, field));
      REQUIRE(seen.insert(values_after_training(folder, changed)).second);
    }
  }
}
