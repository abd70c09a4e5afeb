#include <algorithm>
#include <fmt/ranges.h>
#include <functional>

#include "data/io/number.h"
#include "data/io/shell_quote.h"
#include "train/app/bench/profile.h"
#include "train/app/bench/step_bench.h"
#include "train/app/progress.h"
#include "train/app/report/chart.h"
#include "train/app/report/sections.h"
#include "train/app/run_corpus.h"
#include "train/run/config/config.h"
#include "train/run/run_lock.h"

namespace maki {
namespace {

using Value = std::function<double(const LoggedStep&)>;

double step_of(const LoggedStep& line) { return static_cast<double>(line.step.step); }
double seconds_of(const LoggedStep& line) { return line.elapsed_seconds; }

std::vector<std::pair<double, double>> points_of(const RunHistory& history, const Value& x, const Value& y) {
  std::vector<std::pair<double, double>> points;
  for (const LoggedStep& line : history.steps()) points.emplace_back(x(line), y(line));
  return points;
}

// Why the run is where it is. A session that was killed has no end.
std::string end_of(const MeasuredRun& run, const PageLanguage& say) {
  const auto& remarks = run.history.remarks();
  if (remarks.empty()) return "";
  if (remarks.back().kind != Remark::Kind::end) {
    if (RunLock::is_held(RunDirectory(run.path))) return say("it is being trained", "学習中");
    return say("it ended without saving: it was killed, or its numbers were no longer finite",
               "保存せずに終わった（強制終了、または数値が発散）");
  }
  if (remarks.back().text == "finished") return say("all its steps are done", "すべてのステップを終えた");
  if (remarks.back().text == "overfitting")
    return say("the validation loss no longer improved while the training loss fell",
               "訓練損失は下がるのに検証損失が改善しなくなった（過学習）");
  if (remarks.back().text == "text unreadable")
    return say("its text could not be read any more; it was saved, and can be resumed",
               "テキストが読めなくなって終わった（保存済み、再開できる）");
  return say("it was interrupted, and can be resumed", "中断された（再開できる）");
}

std::string texts_of(const MeasuredRun& run, Remark::Kind kind) {
  std::vector<std::string> texts;
  for (const Remark& remark : run.history.remarks())
    if (remark.kind == kind && (texts.empty() || texts.back() != remark.text)) texts.push_back(remark.text);
  return fmt::format("{}", fmt::join(texts, "\n"));
}

// The number of tokens, of sources and of targets if they have vocabularies of their own.
std::string vocabulary_of(const CheckpointState& state) {
  const auto& [source, target] = state.tokenizers;
  if (target == nullptr) return with_separators(state.vocab_size);
  const std::string own = with_separators(target->vocab_size());
  return source == target ? own : with_separators(source->vocab_size()) + " + " + own;
}

// Whether the tokenizer may be from a file, which the configuration does not record. One with fewer tokens than it says
// was learned from the text, and so were two.
bool may_be_from_file(const CheckpointState& state) {
  const auto& [source, target] = state.tokenizers;
  if (target == nullptr || source->hash() != target->hash()) return false;
  return !tokenizer_kind(state.config.tokenizer).has_limit || state.config.vocab_size <= target->vocab_size();
}

// How to train the same model again. With the weights of another run comes their tokenizer.
std::string command_of(const MeasuredRun& run) {
  if (run.sources.empty()) return "";
  std::string with;
  if (!run.state.config.init_from.empty()) {
    with = " --init-from RUN_THAT_IT_BEGAN_WITH";
  } else if (may_be_from_file(run.state)) {
    with = fmt::format(" --tokenizer-file {}", shell_quote(run.path));
  }
  return fmt::format("maki train --config {}{} --out NEW_RUN{}", shell_quote(RunDirectory(run.path).config_file()),
                     with, std::ranges::count(run.sources, "-") > 0 ? " < TEXT" : "");
}

// Of the newest evaluation, if the others are compared by a sample of the text.
std::string whole_of(const MeasuredRun& run) {
  const auto& evals = run.history.evals();
  if (evals.empty() || !evals.back().val_loss || !evals.back().sampled_val_loss || evals.back().val_share < 1)
    return "";
  return fmt::format("{:.4f}", *evals.back().val_loss);
}

std::string about(const MeasuredRun& run, const PageLanguage& say) {
  const CheckpointState& state = run.state;
  const Config& c = state.config;
  std::vector<TableRow> rows = {
      {say("run", "実行"), run.path},
      {say("step", "ステップ"), with_separators(state.step)},
      {say("state", "状態"), end_of(run, say)},
      {say("best validation loss", "最良の検証損失"), best_of(run, say)},
      {say("last loss on all of the validation text", "検証テキスト全体での最後の損失"), whole_of(run)},
      {say("training time", "学習時間"), time_of(run)},
      {say("text", "テキスト"), fmt::format("{}", fmt::join(run.sources, "\n"))},
      {say("hash of the text", "テキストのハッシュ"), state.corpus_hash},
      {say("size", "大きさ"),
       say("{} characters; {} training tokens, {} validation tokens; vocabulary of {}",
           "{} 文字、訓練 {} トークン、検証 {} トークン、語彙 {}", with_separators(state.characters),
           with_separators(state.train_tokens), with_separators(state.val_tokens), vocabulary_of(state))},
      {say("model", "モデル"),
       say("{0}: {5}, {6}, width {3}, context of {4}", "{0}：{1} 層、{2} ヘッド、幅 {3}、文脈長 {4}", c.model,
           c.n_layer, c.n_head, c.n_embd, c.block_size, pluralize(c.n_layer, "layer"), pluralize(c.n_head, "head"))},
      {say("machine", "マシン"), texts_of(run, Remark::Kind::session)},
      {say("to repeat it", "同じ学習を繰り返すには"), command_of(run)}};
  std::erase_if(rows, [](const TableRow& row) { return row.back().empty(); });
  const std::string plan = texts_of(run, Remark::Kind::plan);
  return html_table(rows) + html_section(say("Plan", "計画"), plan.empty() ? "" : html_preformatted(plan));
}

std::string comparison(const std::vector<MeasuredRun>& runs, const PageLanguage& say) {
  const Comparison compared = compare(runs, say);
  std::vector<TableRow> rows = compared.results;
  rows.insert(rows.end(), compared.different.begin(), compared.different.end());
  std::vector<std::string> same;
  for (const TableRow& row : compared.equal) same.push_back(row[0] + " = " + row[1]);
  return html_section(say("Results and differences", "結果と違い"),
                      fmt::format("{}<details><summary>{}</summary>{}</details>\n", html_table(rows, /*has_head=*/true),
                                  say("Equal in all of them", "すべてに共通"),
                                  html_preformatted(fmt::format("{}", fmt::join(same, "\n")))));
}

// With the part of the text that it covers, if that of the evaluations is another.
std::string counting_name(const std::vector<MeasuredRun>& runs, const CountingReport& counting,
                          const PageLanguage& say) {
  const auto is_comparable = [&](const auto& run) { return run.history.evaluations_cover(counting.val_share); };
  if (std::ranges::all_of(runs, is_comparable)) return say("counting alone", "数え上げだけ");
  if (counting.val_share == 1) return say("counting alone, on the whole text", "数え上げだけ（テキスト全体）");
  return say("counting alone, on {:.3g}% of the text", "数え上げだけ（テキストの {:.3g}%）", 100 * counting.val_share);
}

// Of one run, training and validation losses have colours of their own; of several, each run has one.
Chart losses(const std::vector<MeasuredRun>& runs, const Value& x, const PageLanguage& say) {
  Chart chart;
  const bool alone = runs.size() == 1;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunHistory& history = runs[i].history;
    const auto raw = points_of(history, x, [](const LoggedStep& line) { return line.step.loss; });
    auto smooth = raw;
    const std::vector<double> means = smoothed_losses(history.steps());
    for (std::size_t k = 0; k < smooth.size(); ++k) smooth[k].second = means[k];
    Series validation{say("validation", "検証"), {}, Series::Style::points, alone ? 1 : i},
        best{say("best checkpoint", "最良のチェックポイント"), {}, Series::Style::points, 2};
    for (const EvalPoint& point : history.validations()) {
      if (history.steps().empty()) break;
      const auto at =
          std::ranges::find_if(history.steps(), [&](const auto& line) { return line.step.step >= point.step; });
      LoggedStep line = at == history.steps().end() ? history.steps().back() : *at;  // for its time
      line.step.step = point.step;
      validation.points.emplace_back(x(line), point.loss);
      if (runs[i].best && runs[i].best->step == point.step) best.points = {validation.points.back()};
    }
    if (alone)
      chart.series.push_back({say("training, single steps", "訓練（ステップごと）"), raw, Series::Style::faint, 0});
    chart.series.push_back(
        {alone ? say("training, smoothed", "訓練（平滑化）") : runs[i].path, smooth, Series::Style::line, i});
    if (!alone) validation.name.clear();
    chart.series.push_back(validation);
    if (alone) chart.series.push_back(best);
  }
  const CheckpointState& first = runs.front().state;
  const bool same_tokens = std::ranges::all_of(runs, [&](const MeasuredRun& run) {
    return run.state.corpus_hash == first.corpus_hash && run.state.tokenizer == first.tokenizer;
  });
  if (!same_tokens) return chart;
  if (const auto& counting = runs.front().history.counting())
    chart.levels.emplace_back(counting_name(runs, *counting, say), counting->val_loss);
  if (const double best = first.best_possible_loss; best > 0)
    chart.levels.emplace_back(say("best possible", "到達可能な最小値"), best);
  return chart;
}

std::string title_of_losses(const std::vector<MeasuredRun>& runs, const PageLanguage& say) {
  const auto labels = [](const MeasuredRun& run) { return task_rule(run.state.config).labels; };
  if (std::ranges::none_of(runs, labels)) return say("loss, nats per token", "損失（ナット／トークン）");
  if (std::ranges::all_of(runs, labels)) return say("loss, nats per text", "損失（ナット／テキスト）");
  return say("loss, nats", "損失（ナット）");
}

std::string loss_charts(const std::vector<MeasuredRun>& runs, const PageLanguage& say) {
  std::string html;
  for (const bool logarithmic : {false, true}) {
    for (const bool over_seconds : {false, true}) {
      Chart chart = losses(runs, over_seconds ? seconds_of : step_of, say);
      chart.x_title = over_seconds ? say("seconds", "秒") : say("steps", "ステップ");
      chart.title = title_of_losses(runs, say);
      if (logarithmic) chart.title += say(", logarithmic", "、両対数");
      chart.log_x = chart.log_y = logarithmic;
      chart.crops_beginning = !logarithmic;
      html += chart_figure(chart);
    }
  }
  return html_section(say("Losses", "損失"), html_charts(html));
}

std::string clipped_share(const MeasuredRun& run, const PageLanguage& say) {
  const double limit = run.state.config.grad_clip;
  const auto& steps = run.history.steps();
  if (limit <= 0 || steps.empty()) return "";
  const auto clipped = std::ranges::count_if(steps, [&](const auto& line) { return line.step.grad_norm > limit; });
  return html_paragraph(say("{:.1f} % of the steps that were logged had a gradient above {}, and were clipped.",
                            "記録されたステップの {:.1f} % で勾配のノルムが {} を超え、切り詰められた。",
                            100 * static_cast<double>(clipped) / static_cast<double>(steps.size()), limit));
}

std::string optimization(const std::vector<MeasuredRun>& runs, const PageLanguage& say) {
  const std::pair<const char*, Value> measured[] = {
      {say("learning rate", "学習率"), [](const auto& line) { return line.step.learning_rate; }},
      {say("norm of the gradient, before clipping", "勾配のノルム（切り詰め前）"),
       [](const auto& line) { return line.step.grad_norm; }},
      {say("tokens per second", "毎秒のトークン数"), [](const auto& line) { return line.tokens_per_second; }}};
  std::string charts;
  for (const auto& [title, value] : measured) {
    Chart chart{.title = title, .x_title = say("steps", "ステップ")};
    for (std::size_t i = 0; i < runs.size(); ++i)
      chart.series.push_back(
          {runs.size() == 1 ? "" : runs[i].path, points_of(runs[i].history, step_of, value), Series::Style::line, i});
    charts += chart_figure(chart);
  }
  return html_section(say("Optimization and speed", "最適化と速度"),
                      html_charts(charts) + (runs.size() == 1 ? clipped_share(runs.front(), say) : ""));
}

std::string layers(const RunHistory& history, const PageLanguage& say) {
  std::string charts;
  for (const bool updates : {false, true}) {
    Chart chart{.title = updates
                             ? say("change by one step, relative to the norm", "1 ステップの変化（ノルムに対する比）")
                             : say("norm of the parameters", "パラメータのノルム"),
                .x_title = say("steps", "ステップ"),
                .log_y = true};
    for (const LoggedLayers& line : history.layers()) {
      for (const LayerReport& layer : line.layers) {
        auto series = std::ranges::find(chart.series, layer.layer, &Series::name);
        if (series == chart.series.end())
          series = chart.series.insert(series, {layer.layer, {}, Series::Style::line, chart.series.size()});
        series->points.emplace_back(static_cast<double>(line.step), updates ? layer.update : layer.norm);
      }
    }
    charts += chart_figure(chart);
  }
  return html_section(say("Layers", "層"), html_charts(charts));
}

// At about 0, ¼, ½ and all of the run.
std::string samples(const RunHistory& history, const PageLanguage& say) {
  const auto& all = history.samples();
  if (all.empty()) return "";
  constexpr std::size_t kShownBytes = 4000;
  std::string html;
  std::int64_t shown = -1;
  for (const std::int64_t quarter : {0, 1, 2, 4}) {
    const Sample& sample = all[static_cast<std::size_t>(quarter * (std::ssize(all) - 1) / 4)];
    if (sample.step == shown) continue;
    shown = sample.step;
    html += html_paragraph(say("step {}", "ステップ {}", with_separators(sample.step))) +
            html_preformatted(truncate_for_message(sample.text, kShownBytes));
  }
  return html_section(say("Samples", "生成例"), html);
}

// Where the time of a step goes, measured now, if that takes no time worth speaking of.
std::string op_times(const MeasuredRun& run, const PageLanguage& say) try {
  constexpr std::int64_t kSteps = 3;
  constexpr double kMostSeconds = 0.3;
  if (run.history.steps().empty() || run.state.step == 0) return "";
  if (kSteps * run.history.elapsed_seconds() / static_cast<double>(run.state.step) > kMostSeconds)
    return html_paragraph(
        say("maki bench shows where the time of a step goes.", "1 ステップの時間の内訳は maki bench で見られる。"));
  Workload workload{run.state.config, run.state.vocab_size};
  workload.config.ngram_prior = 0;
  StepBench bench(workload);
  bench.step();
  const std::vector<ProfileRow> profile = profile_steps(bench.trainer(), kSteps);
  double all = 0;
  for (const ProfileRow& row : profile) all += row.seconds;
  std::vector<TableRow> rows = {{say("op", "演算"), say("pass", "段階"), "ms", "%"}};
  for (std::size_t i = 0; i < std::min<std::size_t>(10, profile.size()); ++i)
    rows.push_back({profile[i].op, profile[i].pass, fmt::format("{:.2f}", 1e3 * profile[i].seconds),
                    fmt::format("{:.0f}", 100 * profile[i].seconds / all)});
  return html_section(say("Where the time of a step goes", "1 ステップの時間の内訳"),
                      html_paragraph(say("Measured on this machine, when the report was made.",
                                         "このページを作ったときに、このマシンで測った。")) +
                          html_table(rows, /*has_head=*/true));
} catch (const Error& error) {
  return html_paragraph(error.what());
}

}  // namespace

std::string report_sections(const std::vector<MeasuredRun>& runs, const PageLanguage& say) {
  const bool alone = runs.size() == 1;
  const MeasuredRun& first = runs.front();
  std::string html = alone ? about(first, say) : comparison(runs, say);
  const bool measured = std::ranges::any_of(runs, [](const auto& run) { return run.history.steps().size() > 1; });
  html += measured ? loss_charts(runs, say) + optimization(runs, say)
                   : html_paragraph(say("There are no curves, because fewer than two steps were logged.",
                                        "記録されたステップが 2 つ未満なので、曲線はない。"));
  if (alone)
    html +=
        layers(first.history, say) + samples(first.history, say) + model_sections(first, say) + op_times(first, say);
  return html;
}

}  // namespace maki
