// Which maki this is.
#pragma once

namespace maki {

/// "maki 0.1.0 (abc1234)": the version, and the commit if the program was built from a git checkout.
const char* version_text();

}  // namespace maki
