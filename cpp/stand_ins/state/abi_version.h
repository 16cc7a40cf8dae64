#pragma once

namespace warpstack::cudart {

/// Major version of the CUDA runtime that the program was linked with: 11, 12 or 13.
int abi_version();

}  // namespace warpstack::cudart
