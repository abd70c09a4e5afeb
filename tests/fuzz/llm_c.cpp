// Checkpoints of llm.c.
#include "data/io/error.h"
#include "tests/fuzz/foreign_models.h"
#include "tests/fuzz/targets.h"

namespace maki::fuzz {
namespace {

void read_as_llm_c(const std::string& bytes) { load_model(open_foreign_model(scratch_file("llm_c.bin", bytes))); }

std::vector<std::string> llm_c_seeds() { return {source_file("tests/fixtures/llm_c.bin")}; }

}  // namespace

const Target kLlmC = {"llm_c", read_as_llm_c, is<CheckpointError>, llm_c_seeds};

}  // namespace maki::fuzz
