#include "train/app/report/measured_run.h"

#include <algorithm>
#include <functional>

#include "data/io/file.h"
#include "data/io/printable.h"
#include "train/app/reading.h"
#include "train/app/run_corpus.h"
#include "train/run/container.h"
#include "train/run/metrics.h"

namespace maki {
namespace {

template <class Text>
ComparedField field_of(const std::vector<MeasuredRun>& runs, const std::string& name, const Text& text) {
  ComparedField field{name, {}};
  for (const MeasuredRun& run : runs) field.values.push_back(escape_unprintable(text(run)));
  return field;
}

}  // namespace

bool ComparedField::differs() const {
  return std::ranges::adjacent_find(values, std::not_equal_to<>()) != values.end();
}

std::vector<std::string> sources_of_run(const std::string& run) {
  try {
    return stored_config(run).value_or(Config()).corpus;
  } catch (const Error&) {
    return {};
  }
}

MeasuredRun read_measured_run(const std::string& path) {
  const bool is_run = is_directory(path);
  const ContainerReader file(choose_checkpoint(path, is_run ? "last" : ""));
  if (!is_run) return {path, read_state(file), {}, {}};
  const RunDirectory run(path);
  return {path, read_state(file), read_history(run.metrics_file()), run.best()};
}

std::pair<std::vector<ComparedField>, std::vector<ComparedField>> compare_configurations(
    const std::vector<MeasuredRun>& runs) {
  std::vector<ComparedField> rows = {
      field_of(runs, "text", [](const MeasuredRun& run) { return run.state.corpus_hash; })};
  for (const Field& field : fields()) {
    if (field.is_training())
      rows.push_back(
          field_of(runs, field.name, [&](const MeasuredRun& run) { return option_text(run.state.config, field); }));
  }
  const auto equal = std::stable_partition(rows.begin(), rows.end(), [](const auto& row) { return row.differs(); });
  return {{rows.begin(), equal}, {equal, rows.end()}};
}

}  // namespace maki
