#include <algorithm>
#include <tuple>

#include "data/io/number.h"
#include "train/app/report/sections.h"

namespace maki {
namespace {

constexpr std::size_t kMostTabledLabels = 24, kShownMistakes = 24;

// Of so many labels that a table of all pairs would be too large.
std::string frequent_mistakes(const Json& facts, const std::string& part, const PageLanguage& say) {
  const Json &labels = facts.at("labels"), &counts = facts.at("confusion");
  std::vector<std::tuple<std::int64_t, std::size_t, std::size_t>> mistakes;  // the negative count, label and answer
  for (std::size_t label = 0; label < labels.size(); ++label) {
    for (std::size_t answer = 0; answer < labels.size(); ++answer) {
      const auto count = counts.at(label).at(answer).get<std::int64_t>();
      if (count > 0 && label != answer) mistakes.emplace_back(-count, label, answer);
    }
  }
  std::ranges::sort(mistakes);
  mistakes.resize(std::min(mistakes.size(), kShownMistakes));
  std::vector<TableRow> rows = {{say("label", "正解"), say("answer", "答え"), say("times", "回数")}};
  for (const auto& [count, label, answer] : mistakes)
    rows.push_back(
        {labels.at(label).get<std::string>(), labels.at(answer).get<std::string>(), with_separators(-count)});
  return html_section(say("Most frequent mistakes", "多かった間違い"), part + html_table(rows, /*has_head=*/true));
}

}  // namespace

std::string answers_section(const Json& facts, const std::string& part, const PageLanguage& say) {
  if (facts.at("labels").size() > kMostTabledLabels) return frequent_mistakes(facts, part, say);
  TableRow head = facts.at("labels").get<TableRow>();
  head.insert(head.begin(), say("label \\ answer", "正解 ＼ 答え"));
  std::vector<TableRow> rows = {head};
  for (const auto& counts : facts.at("confusion")) {
    rows.push_back({head[rows.size()]});
    for (const auto& count : counts) rows.back().push_back(with_separators(count.get<std::int64_t>()));
  }
  return html_section(say("Labels and answers", "混同行列"), part + html_table(rows, /*has_head=*/true));
}

}  // namespace maki
