#pragma once

#include "stand_ins/state/abi.h"

namespace warpstack::cudart {

/// "cudaErrorInvalidValue"
const char* name_of(Error error);
/// A short text for programs to print, or else the name.
const char* description_of(Error error);

}  // namespace warpstack::cudart
