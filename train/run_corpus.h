// Where the text of a run comes from, and where it is found again.
#pragma once

#include <string>
#include <vector>

namespace maki {

/// Paths made absolute, so that a run can be gone on with from another folder. "-" and "@stories" stay.
std::vector<std::string> absolute_sources(std::vector<std::string> sources);

/// The sources to read for a run once more: those given now, else the stored ones. Throws CorpusError where the stored
/// text came from standard input, which does not come twice by itself.
std::vector<std::string> sources_again(const std::string& run, const std::vector<std::string>& given,
                                       const std::vector<std::string>& stored);

}  // namespace maki
