#pragma once

#include "cudart/runtime.h"

namespace warpstack::cudart {

/// Whether the attributes of a launch (cudaLaunchAttribute or CUlaunchAttribute, which are the
/// same) ask for a cooperative one. Throws Failure for clusters.
bool is_cooperative_launch(Runtime& runtime, const void* attributes, unsigned count);

/// What cudaFuncGetAttributes says of a kernel.
FunctionAttributes attributes_of(Runtime& runtime, KernelEntry& kernel);

}  // namespace warpstack::cudart
