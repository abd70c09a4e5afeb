// One target per file of this folder.
#pragma once

#include "tests/fuzz/fuzz.h"

namespace maki::fuzz {

extern const Target kSafetensors, kTokenizerJson, kVocabulary, kTiktoken, kSavedTokenizer, kNanoGptMeta, kTokenFile,
    kForeignTokens, kLlmC, kHuggingFace, kContainer, kCheckpoint, kNgramCounts, kConfig, kTextFile, kJsonLines,
    kCompletions, kCommandLine;

}  // namespace maki::fuzz
