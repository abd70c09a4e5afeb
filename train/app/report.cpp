#include "train/app/report.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <system_error>

#include "data/io/output.h"
#include "train/app/progress.h"

namespace maki {
namespace {

Json object_of(const Facts& facts);

struct JsonOf {
  Json operator()(const auto& value) const { return value; }
  Json operator()(const Facts& facts) const {
    if (!facts.empty() && !facts.front().name.empty()) return object_of(facts);
    Json list = Json::array();
    for (const Fact& each : facts) list.push_back(std::visit(*this, each.value));
    return list;
  }
};

Json object_of(const Facts& facts) {
  Json object = Json::object();
  for (const Fact& fact : facts) object[fact.name] = std::visit(JsonOf(), fact.value);
  return object;
}

}  // namespace

FloatJson rows_json(const Tensor& x, std::int64_t columns) {
  if (!x) return nullptr;
  FloatJson rows = FloatJson::array();
  const std::int64_t width = x.shape().cols();
  dispatch(x.dtype(), [&]<class T>() {
    for (const T* row = x.data<T>(); row != x.data<T>() + x.numel(); row += width)
      rows.push_back(std::vector<float>(row, row + std::min(width, columns)));
  });
  return rows;
}

Json to_json(const std::vector<ReportLine>& lines) {
  Json object = Json::object();
  for (const ReportLine& line : lines) object.update(object_of(line.facts));
  return object;
}

void print_result(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    throw std::system_error(errno, std::generic_category());
}

void print_beside(const std::string& out, std::string_view text) {
  is_standard_output(out) ? write_to_stderr(text) : print_result(text);
}

void flush_results() {
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
}

Report& Report::add(const std::string& key, Json value) {
  facts_[key] = std::move(value);
  return *this;
}

Report& Report::line(std::string label, std::string text) {
  lines_.emplace_back(std::move(label), std::move(text));
  return *this;
}

Report& Report::text(std::string text) {
  lines_.emplace_back(std::nullopt, std::move(text));
  return *this;
}

Report& Report::add(const std::string& key, Json value, std::string label, std::string text) {
  return add(key, std::move(value)).line(std::move(label), std::move(text));
}

Report& Report::add(const std::vector<ReportLine>& lines) {
  facts_.update(to_json(lines));
  for (const ReportLine& each : lines) {
    if (!each.text.empty()) line(each.label, each.text);
  }
  return *this;
}

Report& Report::beside(std::string out) {
  out_ = std::move(out);
  return *this;
}

void Report::print(bool json, int indent) const {
  if (json) return print_beside(out_, json_text(facts_, indent));
  std::size_t width = 11;  // the labels of all verbs, with few exceptions
  for (const auto& [label, text] : lines_) width = std::max(width, label ? label->size() : 0);
  for (const auto& [label, text] : lines_)
    print_beside(out_, label ? fmt::format("{:<{}}{}\n", *label, width + 2, text) : text + '\n');
}

}  // namespace maki
