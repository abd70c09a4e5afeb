// The table of fuzz targets.
#include "tests/fuzz/targets.h"

namespace maki::fuzz {

std::span<const Target> targets() {
  static const Target kTargets[] = {kSafetensors, kTokenizerJson, kVocabulary,    kTiktoken, kSavedTokenizer,
                                    kNanoGptMeta, kTokenFile,     kForeignTokens, kLlmC,     kHuggingFace,
                                    kContainer,   kCheckpoint,    kNgramCounts,   kConfig,   kTextFile,
                                    kJsonLines,   kCompletions,   kCommandLine};
  return kTargets;
}

}  // namespace maki::fuzz
