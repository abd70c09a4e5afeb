// General compressors as a yardstick: what a text costs after another one, if a compressor has read that first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/loop/eval_report.h"

namespace maki {

/// "xz" and "zpaq".
std::vector<std::string> compressor_names();
/// Throws Error, naming the package, if the compressor is not installed, and for an unknown name.
void require_compressor(const std::string& name);
/// The bytes of `before` and `text` compressed together minus those of `before` alone, as nats per character of the
/// text, which has `characters` of them, at least 1. The texts are concatenated without separators. Temporary files, in
/// the system's folder for them, hold the texts. Throws Error if they cannot be written or the compressor fails.
ReportLine measure_compressor(const std::string& name, const std::vector<std::string_view>& before,
                              const std::vector<std::string_view>& text, std::int64_t characters);

}  // namespace maki
