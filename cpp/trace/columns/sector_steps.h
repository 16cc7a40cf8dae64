#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/columns/block_columns.h"

namespace warpstack::trace {

/// Sectors as steps, the form of files: each less the one before it in its access, and an access's
/// first less that of the last access of the same row, or less 0. Warps that do the same at other
/// places have the same steps, so that a compressor finds little that is new. Differences wrap.
/// `columns` are those of consecutive warps, and `has_sectors` says by row whether its memory
/// instructions have sectors. Throws InputError when the memory instructions announce other sectors
/// than there are.
std::vector<std::uint64_t> steps_of_sectors(const ColumnView& columns,
                                            std::span<const std::uint8_t> has_sectors);

/// The sectors of columns that have their steps in `sector`. Throws likewise.
std::vector<std::uint64_t> sectors_of_steps(const ColumnView& columns,
                                            std::span<const std::uint8_t> has_sectors);

}  // namespace warpstack::trace
