// The maker of the CPU, where a choice of kernels was measured on the CPUs of one of them.
#pragma once

namespace maki::kernels {

/// Whether the CPU is one of Intel, or of AMD; false on other architectures.
bool is_intel();
bool is_amd();

}  // namespace maki::kernels
