#pragma once

#include <string>

#include "stand_ins/cudriver/driver.h"
#include "stand_ins/state/fat_binary.h"

namespace warpstack::cudriver {

/// Copies the argument of cuModuleLoadData: PTX text, a fat binary, its wrapper, or machine code,
/// which runs as it is. Throws Failure when it is none of these, or nothing in the fat binary can
/// run.
cudart::FatBinaryImage read_image(Runtime& runtime, const void* data);

/// The bytes of a file, followed by a zero, which ends PTX. Throws Failure.
std::string read_file(const char* path);

}  // namespace warpstack::cudriver
