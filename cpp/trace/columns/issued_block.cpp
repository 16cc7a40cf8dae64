#include "trace/columns/issued_block.h"

#include <algorithm>
#include <string>

#include "common/error.h"

namespace warpstack::trace {

void append_block(TraceBuilder& builder, std::uint64_t linear_index, const IssuedBlock& block) {
  const std::size_t count = block.row.size();
  if (block.warp.size() != count || block.mask.size() != count || block.access.size() != count) {
    throw InputError("the columns of a block have different lengths");
  }
  if (!std::ranges::is_sorted(block.warp)) throw InputError("the warps of a block decrease");
  const std::uint64_t num_warps = builder.header().warps_per_block();
  if (count > 0 && block.warp.back() >= num_warps) {
    throw InputError("warp " + std::to_string(block.warp.back()) + " is outside a block of " +
                     std::to_string(num_warps) + " warps");
  }
  const std::size_t accesses = block.addresses.size() / warp_size;
  builder.begin_block(linear_index);
  std::size_t i = 0;
  for (std::uint32_t warp = 0; warp < num_warps; ++warp) {
    builder.begin_warp(warp);
    for (; i < count && block.warp[i] == warp; ++i) {
      if (block.row[i] >= builder.num_instructions()) {
        throw InputError("row " + std::to_string(block.row[i]) + " is not in the table");
      }
      if (block.access[i] == IssuedBlock::no_access) {
        builder.append(block.row[i], block.mask[i]);
        continue;
      }
      if (block.access[i] >= accesses) throw InputError("an access has no addresses");
      LaneAddresses lanes;
      lanes.mask = block.mask[i];
      std::ranges::copy(
          block.addresses.subspan(block.access[i] * std::size_t{warp_size}, warp_size),
          lanes.address.begin());
      for (const std::uint64_t address : lanes.address) {
        if (address > max_address) throw InputError("an address is beyond the address space");
      }
      builder.append(block.row[i], block.mask[i], &lanes);
    }
  }
  builder.end_block();
}

}  // namespace warpstack::trace
