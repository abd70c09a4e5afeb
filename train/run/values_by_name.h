// Values of a checkpoint for a store whose parameters have the same names, but may lie elsewhere in its flat block.
#pragma once

#include <functional>
#include <string>

#include "autograd/parameter.h"
#include "train/run/container.h"

namespace maki {

/// Copies every tensor of the file to the parameter of its name; parameters that the file does not have keep their
/// values, and so do those for whose names `is_wanted`, if there is one, is false. Reads the values in pieces, so it
/// needs no memory for a second model. Throws CorruptFile if the store lacks a wanted tensor of the file or has it in
/// another shape or type, and if the values are damaged; the store must then not be used. Requires: the store is
/// sealed.
void load_values_by_name(const ContainerReader& file, ParameterStore& store,
                         const std::function<bool(const std::string&)>& is_wanted = {});

/// hash128_hex() of all values of a sealed store: the training field init_from of a run that begins with them.
std::string hash_of_values(const ParameterStore& store);

}  // namespace maki
