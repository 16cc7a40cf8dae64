#pragma once

#include "stand_ins/state/abi.h"

namespace warpstack::cudart {

/// "cudaErrorInvalidValue"
const char* name_of(Error error);
/// A few words for programs to print; the name where there are none.
const char* description_of(Error error);

}  // namespace warpstack::cudart
