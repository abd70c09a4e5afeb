// A file system for inputs that need not survive a crash of the machine.
#pragma once

#include "data/io/file_system.h"

namespace maki::fuzz {

struct Unsynced : FileSystem {
  int fsync(int) override { return 0; }
};

}  // namespace maki::fuzz
