// maki positions [options]: sinusoidal positions, their dot products and their wavelengths.
#include <fmt/format.h>
#include <iterator>
#include <memory>

#include "train/app/draw/positions_figure.h"
#include "train/app/report.h"
#include "train/app/verbs.h"
#include "train/app/verbs/drawing_options.h"

namespace maki {
namespace {

constexpr double kMaxPositionBase = 1e12;  // far above 10,000 and the millions of models with long contexts
constexpr double kMaxHeatMapSide = 1024;   // cells; a heat map has the square of it, a million

struct PositionsOptions {
  double base = 10000;
  std::int64_t width = 128, length = 64;
  DrawingOptions drawing;
};

// A row-major matrix as a list of its rows.
Json rows_of(const std::vector<double>& values, std::int64_t columns) {
  Json rows = Json::array();
  for (auto at = values.begin(); at != values.end(); at += columns)
    rows.push_back(std::vector<double>(at, at + columns));
  return rows;
}

std::string facts_json(const PositionFacts& facts) {
  const Json json{{"base", facts.base},
                  {"width", facts.width},
                  {"length", facts.length},
                  {"encoding", rows_of(facts.encoding, facts.width)},
                  {"dot_products", rows_of(facts.dot_products, facts.length)},
                  {"wavelengths", facts.wavelengths}};
  return json_text(json);
}

void append_matrix(std::string& text, const char* quantity, const std::vector<double>& values, std::int64_t columns) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    fmt::format_to(std::back_inserter(text), "{},{},{},{}\n", quantity, at / columns, at % columns, values[i]);
  }
}

std::string csv_text(const PositionFacts& facts) {
  std::string text = "quantity,row,column,value\n";
  append_matrix(text, "encoding", facts.encoding, facts.width);
  append_matrix(text, "dot_product", facts.dot_products, facts.length);
  append_matrix(text, "wavelength", facts.wavelengths, std::ssize(facts.wavelengths));
  return text;
}

int positions(const PositionsOptions& o) {
  check_drawing_options("positions", o.drawing);
  const PositionFacts facts = position_facts(o.length, o.width, o.base);
  const Words& words = words_of(o.drawing);
  print_drawing(
      o.drawing, {}, [&] { return positions_picture(facts, words); }, [&] { return positions_text(facts, words); },
      [&] { return facts_json(facts); }, [&] { return csv_text(facts); });
  return 0;
}

}  // namespace

void add_positions(const Command& command) {
  const auto o = std::make_shared<PositionsOptions>();
  command.add_number("--base", o->base, 0, kMaxPositionBase, "NUMBER",
                     "base of the wavelengths (the --position-base of a model)");
  command.add_number("--width", o->width, 1, kMaxHeatMapSide,
                     "number of columns of the encoding (the --n-embd of a model)");
  command.add_number("--length", o->length, 1, kMaxHeatMapSide, "number of positions, counted from 0");
  add_drawing_options(command, o->drawing);
  command.set_action([o] { return positions(*o); });
}

}  // namespace maki
