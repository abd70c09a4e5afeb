#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "autograd/core/check.h"
#include "autograd/ops.h"
#include "data/dataset/masking.h"
#include "data/dataset/window_batches.h"
#include "data/io/file.h"
#include "data/io/number.h"
#include "data/io/utf8.h"
#include "data/tokenizer/word_tokenizer.h"
#include "train/app/draw/attention_figure.h"
#include "train/app/draw/positions_figure.h"
#include "train/app/reading.h"
#include "train/app/report.h"
#include "train/app/report/chart.h"
#include "train/app/report/sections.h"
#include "train/app/run_corpus.h"
#include "train/loop/best_candidates.h"
#include "train/loop/evaluate.h"
#include "train/loop/loss_by_position.h"
#include "train/loop/tasks.h"
#include "train/loop/translate.h"
#include "train/run/values_by_name.h"

namespace maki {
namespace {

// What a report reads of the validation text: few batches, so that it is made in less than a second.
constexpr std::int64_t kReadBatches = 8, kShownTokens = 400, kShownRows = 5;

struct ReadModel {
  explicit ReadModel(const MeasuredRun& run)
      : loaded(read_checkpoint(run.path, "", [](const std::string& path) { return LoadedModel(path); })) {}

  LoadedModel loaded;
  std::unique_ptr<Task> task = {};  // of the validation text; null until it has been read
  double new_words = 1;             // new_word_share() of the text
  std::int64_t batches = 0;         // that were read
  Batch batch = {};                 // the first that was read
  std::vector<double> losses = {};  // of its targets
  std::vector<PositionLoss> positions = {};
  std::map<std::int32_t, std::int64_t> counts = {};  // of the target tokens in all batches
};

// The ids of a row of a [B, T] tensor.
std::vector<std::int32_t> row_of(const Tensor& ids, std::int64_t row) {
  const auto values = ids.values<std::int32_t>();
  const std::int64_t length = ids.numel() / ids.shape()[0];
  return {values.begin() + row * length, values.begin() + (row + 1) * length};
}

// Without the ids of padding and of a task, which the tokenizer does not have.
std::vector<std::int32_t> own_ids(const Tokenizer& tokenizer, std::vector<std::int32_t> ids) {
  std::erase_if(ids, [&](std::int32_t id) { return id < 0 || id >= tokenizer.vocab_size(); });
  return ids;
}

// The text of a line.
std::string line_of(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  return replace_invalid_utf8(tokenizer.decode_line(own_ids(tokenizer, ids)));
}

void read_text(const MeasuredRun& run, ReadModel& read) {
  const CheckpointState& state = read.loaded.state;
  Config config = stored_config(run.path).value_or(Config());
  check(!config.corpus.empty(),
        "{}: does not name the text of its training, so that what the model makes of it is not shown", run.path);
  config.model = state.config.model;
  config.task = state.config.task;
  // Reading a pipe or a device would wait for what may never come.
  const auto is_input = [](const std::string& source) {
    using Kind = std::filesystem::file_type;
    return source == "-" || !std::set{Kind::regular, Kind::directory, Kind::not_found}.contains(file_kind(source));
  };
  check(std::ranges::none_of(config.corpus, is_input),
        "{}: its text came from standard input or a pipe, so that what the model makes of it is not shown", run.path);
  const Corpus corpus = reread_corpus(config, state.corpus_hash, "what the model makes of it is not shown");
  if (!corpus.prepared) read.new_words = new_word_share(corpus.text);
  read.task = make_eval_task(
      state.config, corpus, read.loaded.tokenizers,
      {.own = state.config.val_fraction > 0, .labels = state.labels, .ngram_counts = state.ngram_counts});
}

// A batch of an evaluation takes a third of the time of one in training.
std::int64_t affordable_batches(const MeasuredRun& run) {
  constexpr double kSeconds = 0.5;
  const Config& c = run.state.config;
  if (run.history.steps().empty()) return 1;
  const double per_second = 3 * run.history.steps().back().tokens_per_second;
  return std::clamp<std::int64_t>(
      std::llround(kSeconds * per_second / static_cast<double>(c.batch_size * c.block_size)), 1, kReadBatches);
}

void read_validation(const MeasuredRun& run, ReadModel& read) {
  visit_target_losses(*read.loaded.model, *read.task, Part::val, affordable_batches(run), {},
                      [&](const Batch& batch, const std::vector<double>& losses) {
                        ++read.batches;
                        add_to_positions(batch, losses, read.positions);
                        for (const std::int32_t id : batch.targets.values<std::int32_t>())
                          if (id >= 0 && id < read.loaded.tokenizer->vocab_size()) ++read.counts[id];
                        if (!read.losses.empty()) return;
                        read.losses = losses;
                        read.batch = batch;
                        for (Tensor* const tensor : {&read.batch.ids, &read.batch.targets, &read.batch.source})
                          if (*tensor) *tensor = tensor->clone();  // the next batch has the same memory
                      });
}

// The part that numbers are from, if so many batches are not all of the text.
std::string part_of_text(const ReadModel& read, std::int64_t taken, const PageLanguage& say) {
  const std::int64_t all = read.task->eval_batches(Part::val);
  if (taken >= all) return "";
  const double percent = 100 * static_cast<double>(taken) / static_cast<double>(all);
  return html_paragraph(read.loaded.state.config.val_fraction > 0
                            ? say("From {:.3g} % of the validation text.", "検証テキストの {:.3g} % から。", percent)
                            : say("From {:.3g} % of the training text.", "訓練テキストの {:.3g} % から。", percent));
}

// The targets of the first rows, each coloured by its bits. Tokens that are parts of one character are shown together,
// also where the next row begins within it.
std::string surprise(const ReadModel& read, const PageLanguage& say) {
  constexpr double kBitsPerColor = 1.5;
  const Tokenizer& tokenizer = *read.loaded.tokenizer;
  const std::int64_t length = read.batch.targets.shape()[1];
  const std::int64_t rows = std::clamp<std::int64_t>(kShownTokens / length, 1, read.batch.targets.shape()[0]);
  const auto continues = [&](std::int64_t row) {
    return row > 0 && row < rows && row_of(read.batch.ids, row).front() == row_of(read.batch.targets, row - 1).back();
  };
  std::string text;
  std::size_t next = 0;
  Utf8Stream characters;
  double bits = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto show = [&](const std::string& shown) {
      if (shown.empty()) return;
      text += fmt::format("<span class=\"b{}\" title=\"{:.1f}\">{}</span>",
                          static_cast<int>(std::clamp(bits / kBitsPerColor, 0.0, 7.0)), bits, html_text(shown));
      bits = 0;
    };
    text += "<div class=\"text\">";
    if (!continues(row)) text += html_text(characters.push(tokenizer.bytes(row_of(read.batch.ids, row).front())));
    std::vector<std::int32_t> targets = row_of(read.batch.targets, row);
    targets.resize(std::min<std::size_t>(targets.size(), kShownTokens));  // less than all only if this is the only row
    for (const std::int32_t id : targets) {
      if (id == kIgnoredTarget) continue;
      bits += read.losses[next++] / std::log(2);
      show(characters.push(tokenizer.bytes(id)));
    }
    if (!continues(row + 1)) show(characters.finish());
    text += "</div>\n";
  }
  std::string key;
  for (int level = 0; level < 8; ++level)
    key += fmt::format("<span class=\"b{0}\">{1:g}{2}</span> ", level, kBitsPerColor * level, level == 7 ? "+" : "");
  const char* const part = read.loaded.state.config.val_fraction > 0
                               ? say("From the validation text.", "検証テキストの一部。")
                               : say("From the training text, because there is no validation text.",
                                     "検証テキストがないので、訓練テキストの一部。");
  return html_section(say("How surprised the model is", "モデルにとって意外だったところ"),
                      html_paragraph(part) +
                          html_paragraph(say("The darker a token, the more bits the model needed for it. "
                                             "Pointing at one shows the number.",
                                             "色の濃いトークンほど、モデルは多くのビットを要した。"
                                             "ポインターを合わせると数値が表示される。")) +
                          text + "<p class=\"text soft\">" + say("bits per token: ", "ビット／トークン：") + key +
                          "</p>\n");
}

std::string by_position(const ReadModel& read, const PageLanguage& say) {
  Series line{"", {}, Series::Style::line, 0};
  for (std::size_t i = 0; i < read.positions.size(); ++i)
    line.points.emplace_back(static_cast<double>(i + 1),
                             read.positions[i].sum / static_cast<double>(read.positions[i].targets));
  return part_of_text(read, read.batches, say) +
         html_charts(
             chart_figure({.title = say("loss by position in the context, nats", "文脈内の位置ごとの損失（ナット）"),
                           .x_title = say("position", "位置"),
                           .series = {line},
                           .log_x = true}));
}

// The first, the middle and the last of n.
std::vector<std::int64_t> spread_three(std::int64_t n) {
  const std::set<std::int64_t> chosen = {0, (n - 1) / 2, n - 1};
  return {chosen.begin(), chosen.end()};
}

// The text of the first row. What is behind it, to fill the row up, may have ids of the tokenizer, and is left out.
std::vector<std::int32_t> first_text(const ReadModel& read) {
  const std::vector<std::int32_t> targets = row_of(read.batch.targets, 0);
  if (read.batch.source) return targets;
  std::vector<std::int32_t> ids = row_of(read.batch.ids, 0);
  if (!task_rule(read.loaded.state.config).predicts_next) return ids;
  const auto last = std::find_if(targets.rbegin(), targets.rend(), [](auto id) { return id != kIgnoredTarget; });
  const auto predicting = static_cast<std::size_t>(targets.rend() - last);
  if (predicting > 0 && predicting < ids.size()) {  // nothing follows the last target
    ids[predicting] = targets[predicting - 1];
    ids.resize(predicting + 1);
  }
  return ids;
}

std::string attention(const ReadModel& read, const PageLanguage& say) {
  constexpr std::ptrdiff_t kAttended = 20;  // tokens
  const LoadedModel& loaded = read.loaded;
  const std::vector<std::string> kinds = attention_kinds(loaded);
  if (kinds.empty()) return "";
  const auto beginning = [&](const Tokenizer& tokenizer, std::vector<std::int32_t> row) {
    row = own_ids(tokenizer, std::move(row));
    row.resize(static_cast<std::size_t>(std::min(kAttended, std::ssize(row))));
    return row;
  };
  const auto targets = beginning(*loaded.tokenizer, first_text(read));
  const AttentionMaps maps =
      kinds.size() == 1 ? attention_maps(loaded, targets)
                        : attention_maps(loaded, kinds.front(),
                                         beginning(*loaded.tokenizers.source, row_of(read.batch.source, 0)), targets);
  const ChosenHeads chosen{spread_three(std::ssize(maps.layers)), spread_three(maps.layers.front().shape()[0])};
  return html_section(say("Attention", "注意"),
                      svg_element(grid_picture(attention_grid(loaded, maps, chosen, words_in(say.name())))));
}

// The vectors of a table [V, C] of the model, each divided by its length, so that products are cosines. An empty handle
// if the model has no parameter of one of these names.
Tensor directions(const ParameterStore& store, const std::vector<std::string>& names) {
  constexpr double kTinySquare = 1e-30;
  for (const auto& parameter : store.parameters()) {
    if (std::ranges::find(names, parameter->name()) == names.end()) continue;
    const Tensor vectors = convert(parameter->value(), DType::float64);
    return scale(rms_norm(vectors, {}, kTinySquare), 1 / std::sqrt(static_cast<double>(vectors.shape()[1])));
  }
  return {};
}

std::string neighbours(const ReadModel& read, const PageLanguage& say) {
  constexpr std::int64_t kNearest = 6;
  const Tokenizer& tokenizer = *read.loaded.tokenizer;
  const Tensor table = directions(read.loaded.store, {"wte.weight", "decoder.wte.weight"});
  if (!table || read.counts.empty()) return "";
  std::vector<std::pair<std::int64_t, std::int32_t>> frequent;  // the longer ones first: they mean something
  for (const auto& [id, count] : read.counts) {
    const bool is_word = tokenizer.bytes(id).size() >= 3 && !invalid_utf8(tokenizer.bytes(id));
    frequent.emplace_back(-(is_word ? count + (std::int64_t{1} << 40) : count), id);
  }
  std::ranges::sort(frequent);
  std::vector<TableRow> rows;
  for (std::size_t i = 0; i < std::min<std::size_t>(8, frequent.size()); ++i) {
    const std::int32_t id = frequent[i].second;
    const Tensor cosines = matmul(slice(table, 0, id, id + 1), table, false, /*transpose_b=*/true);
    std::string list;
    for (const Candidate& near : best_candidates(cosines, 0, tokenizer.vocab_size(), kNearest + 1))  // one is itself
      if (near.id != id)
        list += fmt::format("{} {:.2f}   ", token_label(tokenizer.bytes(near.id)), cosines.at(near.id));
    rows.push_back({token_label(tokenizer.bytes(id)), list});
  }
  return html_section(
      say("Nearest tokens", "近いトークン"),
      html_paragraph(say("The cosine of the angle between the embeddings.", "埋め込みベクトルのなす角の余弦。")) +
          html_table(rows));
}

std::string positions(const ReadModel& read, const PageLanguage& say) {
  constexpr std::int64_t kShownPositions = 64;
  const Tensor table = directions(read.loaded.store, {"wpe.weight"});
  if (!table) return "";
  const std::int64_t count = std::min(table.shape()[0], kShownPositions);
  const Tensor shown = slice(table, 0, 0, count);
  const Tensor cosines = matmul(shown, shown, false, /*transpose_b=*/true);
  const Words& words = words_in(say.name());
  const PositionFacts facts{.length = count,
                            .dot_products = {cosines.data<double>(), cosines.data<double>() + cosines.numel()}};
  HeatMap map = facts.dot_product_map(words);
  map.title = "";
  const std::string title = say("Cosine between learned positions", "学習した位置ベクトルどうしの余弦");
  const HeatMapGrid grid{.title = title,
                         .source = read.loaded.path,
                         .subtitle = "",
                         .description = title,
                         .scale_title = "cos",
                         .maps = {map},
                         .scale = scale_around_zero(map.values),
                         .words = &words};
  return html_section(say("Positions", "位置"), svg_element(grid_picture(grid)));
}

std::string translations(const ReadModel& read, const PageLanguage& say) {
  const PairTokenizers& tokenizers = read.loaded.tokenizers;
  std::vector<std::vector<std::int32_t>> sources;
  for (std::int64_t row = 0; row < std::min(kShownRows, read.batch.source.shape()[0]); ++row)
    sources.push_back(own_ids(*tokenizers.source, row_of(read.batch.source, row)));
  const std::vector<Hypothesis> found = translate(read.loaded.generator(), sources, ends_of(tokenizers),
                                                  {.max_tokens = read.loaded.state.config.block_size});
  std::vector<TableRow> rows = {{say("source", "原文"), say("translation", "訳"), say("reference", "参照訳")}};
  for (std::size_t i = 0; i < sources.size(); ++i)
    rows.push_back({line_of(*tokenizers.source, sources[i]), translated_line(*tokenizers.target, found[i]),
                    line_of(*tokenizers.target, row_of(read.batch.targets, static_cast<std::int64_t>(i)))});
  return html_section(say("Translations", "翻訳"), html_table(rows, /*has_head=*/true));
}

std::string answers(const ReadModel& read, const PageLanguage& say) {
  const std::int64_t batches = read.task->eval_batches(Part::val), taken = std::min(batches, 4 * kReadBatches);
  const MeanLoss loss = mean_loss(*read.loaded.model, *read.task, Part::val, taken, {}).value();
  const Json facts = to_json(read.task->measure(*read.loaded.model, {loss, taken, batches}, {}, {}));
  return answers_section(facts, part_of_text(read, taken, say), say);
}

std::string filled_masks(const ReadModel& read, const PageLanguage& say) {
  constexpr std::ptrdiff_t kShownMasks = 12, kContext = 6;  // tokens on each side
  const Tokenizer& tokenizer = *read.loaded.tokenizer;
  const auto mask = static_cast<std::int32_t>(tokenizer.vocab_size());
  const std::vector<std::int32_t> targets = row_of(read.batch.targets, 0);
  MaskedText text{row_of(read.batch.ids, 0), {}};
  for (std::size_t i = 0; i < text.ids.size(); ++i) {
    if (targets[i] == kIgnoredTarget) continue;
    text.ids[i] = mask;  // an evaluation shows some of its targets, or random tokens in their places
    if (std::ssize(text.masks) < kShownMasks) text.masks.push_back(static_cast<std::int32_t>(i));
  }
  const auto found = fill_masks(read.loaded, text, /*top=*/3);
  std::vector<TableRow> rows = {
      {say("text", "テキスト"), say("hidden token", "隠したトークン"), say("expected", "予測")}};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto at = text.ids.begin() + text.masks[i], begin = at - std::min(kContext, at - text.ids.begin()),
               end = at + std::min(kContext + 1, text.ids.end() - at);
    std::string around, candidates;
    for (auto id = begin; id != end; ++id) around += *id == mask ? kMask : tokenizer.bytes(*id);
    for (const Candidate& c : found[i])
      candidates += fmt::format("{} {:.0f} %   ", token_label(tokenizer.bytes(c.id)), 100 * c.probability);
    rows.push_back({replace_invalid_utf8(around),
                    token_label(tokenizer.bytes(targets[static_cast<std::size_t>(text.masks[i])])), candidates});
  }
  return html_section(say("Filled masks", "穴埋め"), html_table(rows, /*has_head=*/true));
}

std::string facts(const ReadModel& read, const PageLanguage& say) {
  std::vector<TableRow> rows = {
      {say("checkpoint", "チェックポイント"), fmt::format("{} ({})", read.loaded.path, read.loaded.state.step)},
      {say("hash of its values", "値のハッシュ"), hash_of_values(read.loaded.store)}};
  constexpr double kMostNewWords = 0.5;  // more are new only where words are not divided by spaces
  if (read.new_words < kMostNewWords)
    rows.push_back(
        {say("new words", "新しい単語"), say("{:.1f} % of those in the last tenth of the text",
                                             "テキストの最後の 1 割にある単語の {:.1f} %", 100 * read.new_words)});
  return html_section(say("Model", "モデル"), html_table(rows));
}

}  // namespace

std::string model_sections(const MeasuredRun& run, const PageLanguage& say) {
  std::string html;
  const auto made = [](const auto& section) -> std::string {
    try {
      return section();
    } catch (const Error& error) {
      return html_paragraph(error.what());
    }
  };
  const auto add = [&](const auto& section) { html += made(section); };
  add([&] {
    ReadModel read(run);
    const TaskRule& task = task_rule(read.loaded.state.config);
    const std::string missing = made([&] { return read_text(run, read), std::string(); });
    html += facts(read, say) + missing;
    if (!read.task) return std::string();
    if (read.task->eval_batches(Part::val) == 0)
      return html_paragraph(
          say("There is no validation text that the model could read.", "モデルに読ませる検証テキストがない。"));
    if (task.labels) return answers(read, say);
    read_validation(run, read);
    if (task.predicts_next) add([&] { return surprise(read, say) + by_position(read, say); });
    if (task.reads_source()) add([&] { return translations(read, say); });
    if (task.fills_masks) add([&] { return filled_masks(read, say); });
    add([&] { return attention(read, say); });
    add([&] { return positions(read, say) + neighbours(read, say); });
    return std::string();
  });
  return html;
}

}  // namespace maki
