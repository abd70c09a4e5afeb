// The forms in which the verbs that draw give their results.
#pragma once

#include <string>

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
/// Writes an SVG document, and says so on stderr. Throws what write_output() throws.
void write_picture(const OutputPath& out, const std::string& svg);
/// Writes a result to stdout. Throws std::system_error if it cannot be written; what is still buffered can fail later.
void print_result(const std::string& text);

/// A field of a line of CSV: in double quotes if it has a comma, a quote or a line end. RFC 4180.
std::string csv_field(const std::string& text);

}  // namespace maki
