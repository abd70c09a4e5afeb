// What the targets that read models of other programs share.
#pragma once

#include "train/run/convert/model_formats.h"

namespace maki::fuzz {

/// Makes the model of an opened file, and loads its weights if they are there.
void load_model(const ForeignModel& model);

}  // namespace maki::fuzz
