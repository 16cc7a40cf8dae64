#pragma once

#include "cudart/runtime.h"

namespace warpstack::cudart {

/// Takes over what the attributes of a launch (cudaLaunchAttribute or CUlaunchAttribute, which are
/// the same) say of it: whether it is cooperative, and its clusters.
void apply_attributes(Runtime& runtime, const void* attributes, unsigned count,
                      Runtime::Call& call);

/// What cudaFuncGetAttributes says of a kernel.
FunctionAttributes attributes_of(Runtime& runtime, KernelEntry& kernel);

}  // namespace warpstack::cudart
