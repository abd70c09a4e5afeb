// Checkpoints of llm.c.
#include "tests/fuzz/foreign_models.h"
#include "tests/fuzz/targets.h"
#include "train/config/error.h"

namespace maki::fuzz {
namespace {

void read(const std::string& bytes) { load_model(open_llm_c(scratch_file("llm_c.bin", bytes))); }

std::vector<std::string> seeds() { return {source_file("tests/fixtures/llm_c.bin")}; }

}  // namespace

const Target kLlmC = {"llm_c", read, is<CheckpointError>, seeds};

}  // namespace maki::fuzz
