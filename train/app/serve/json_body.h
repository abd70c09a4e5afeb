// The body of a request: an object of JSON, whose fields are read and checked one after the other. Errors name the
// field.
#pragma once

#include <algorithm>
#include <fmt/ranges.h>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "autograd/core/check.h"
#include "train/app/report.h"

namespace maki {

/// A value as error messages show it; written as text only when it is formatted, because a value may be long and most
/// checks hold.
struct ShownJson {
  const Json& value;
};

}  // namespace maki

/// @cond
template <>
struct fmt::formatter<maki::ShownJson> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const maki::ShownJson& shown, Context& context) const {
    return fmt::formatter<std::string>::format(
        maki::truncate_for_message(shown.value.dump(-1, ' ', false, maki::Json::error_handler_t::replace)), context);
  }
};
/// @endcond

namespace maki {

/// All functions throw Error.
class JsonBody {
 public:
  explicit JsonBody(std::string_view body) {
    // What is nested deeper than any field is left out: to write it into a message would take a level of the stack for
    // each of its levels.
    constexpr int kMaxDepth = 4;
    // No request has more than about twenty. The parser takes a time that grows with the square of their number.
    constexpr int kMaxNames = 64;
    int names = 0;
    const auto keep = [&](int depth, Json::parse_event_t event, const Json&) {
      if (event == Json::parse_event_t::key || event == Json::parse_event_t::object_start) ++names;
      check(names <= kMaxNames, "body: must have at most {} fields and objects in all; got more", kMaxNames);
      return depth <= kMaxDepth;
    };
    try {
      fields_ = Json::parse(body, keep);
    } catch (const Json::parse_error& error) {
      fail("body: must be JSON; byte {} of it is not", error.byte);
    } catch (const Json::exception&) {
      fail("body: must be JSON; a number in it is too large");
    }
    check(fields_.is_object(), "body: must be an object of JSON; got {}", ShownJson{fields_});
  }

  /// null if the field was not given, for which the value null stands as well.
  const Json* find(const char* name) {
    known_.emplace_back(name);
    const auto field = fields_.find(name);
    return field == fields_.end() || field->is_null() ? nullptr : &*field;
  }
  /// A field that must be given; the error ends with the advice.
  std::string text(const char* name, const char* advice) {
    const Json* const value = find(name);
    check(value != nullptr, "{}: must be a text; got none; {}", name, advice);
    check(value->is_string(), "{}: must be a text; got {}; {}", name, ShownJson{*value}, advice);
    return value->get<std::string>();
  }
  /// A number in [low, high]; with `above`, in (low, high].
  template <class Number>
  Number number(const char* name, Number otherwise, double low, double high, bool above = false) {
    const Json* const value = find(name);
    if (value == nullptr) return otherwise;
    const bool whole = std::is_integral_v<Number>;
    const double number = value->is_number() ? value->get<double>() : low - 1;
    check((!whole || value->is_number_integer()) && (above ? number > low : number >= low) && number <= high,
          "{}: must be a {}number {} {} and {}{}; got {}", name, whole ? "whole " : "", above ? "above" : "between",
          low, above ? "at most " : "", high, ShownJson{*value});
    return value->get<Number>();
  }
  bool flag(const char* name) {
    const Json* const value = find(name);
    if (value == nullptr) return false;
    check(value->is_boolean(), "{}: must be true or false; got {}", name, ShownJson{*value});
    return value->get<bool>();
  }
  /// After all fields: refuses a name that has not been asked for.
  void require_no_others() const {
    for (const auto& [name, value] : fields_.items())
      check(value.is_null() || std::ranges::find(known_, name) != known_.end(),
            "{}: is no field of this request; must be one of {}", truncate_for_message(name), fmt::join(known_, ", "));
  }

 private:
  Json fields_;
  std::vector<std::string> known_;
};

}  // namespace maki
