// The forms in which the verbs that draw give their results.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/io/output.h"
#include "train/app/command.h"
#include "train/app/draw/words.h"

namespace maki {

/// Where and how a drawing goes: to an SVG file, or to stdout as shades, CSV or JSON.
struct DrawingOptions {
  std::string out, lang;  ///< lang empty: not given
  bool force = false, text = false, csv = false, json = false;
};

/// Adds --out, --force, --lang, --text, --csv and --json.
void add_drawing_options(const Command& command, DrawingOptions& options);
/// Throws Error, beginning with the name of the verb, if more than one form was given, or --force without a file, or
/// --lang for numbers or with an unknown language.
void check_drawing_options(const char* verb, const DrawingOptions& options);
/// The words of the language that was chosen.
const Words& words_of(const DrawingOptions& options);
/// Gives the result in the form that was chosen: `picture` is an SVG document for the file of --out, which is not one
/// of `inputs`; `text`, `json` and `csv` go to stdout. Throws what require_place_for_browsers(), write_output() and
/// print_result() throw.
void print_drawing(const DrawingOptions& options, const std::vector<std::string>& inputs,
                   const std::function<std::string()>& picture, const std::function<std::string()>& text,
                   const std::function<std::string()>& json, const std::function<std::string()>& csv);

/// Throws what require_file_place() throws, and Error if the name has another ending than this one, which browsers
/// need.
void require_place_for_browsers(const OutputPath& out, const std::string& ending);
/// Writes the file and says so on stderr. Throws what write_output() throws.
void write_for_browsers(const OutputPath& out, const std::string& text);

/// A field of a line of CSV: in double quotes if it has a comma, a quote or a line end. RFC 4180.
std::string csv_field(const std::string& text);

}  // namespace maki
