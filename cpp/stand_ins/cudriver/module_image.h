#pragma once

#include <string>

#include "stand_ins/cudriver/driver.h"
#include "stand_ins/state/fat_binary.h"

namespace warpstack::cudriver {

/// What cuModuleLoadData gets: PTX text, a fat binary, its wrapper or machine code, which runs as
/// it is. Copies it. Throws Failure when it is none of these, or the fat binary has nothing that
/// runs.
cudart::FatBinaryImage read_image(Runtime& runtime, const void* data);

/// The bytes of a file, with a zero behind them, which ends PTX. Throws Failure.
std::string read_file(const char* path);

}  // namespace warpstack::cudriver
