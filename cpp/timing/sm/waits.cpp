#include "timing/sm/waits.h"

#include "timing/sm/async_waits.h"
#include "timing/sm/control_waits.h"
#include "timing/sm/register_waits.h"

namespace warpstack::timing {

std::unique_ptr<Waits> Waits::of(const RowTable& rows, const LoadStoreUnit& lsu,
                                 std::size_t num_blocks, std::uint32_t warps_per_block) {
  const std::size_t warps = num_blocks * warps_per_block;
  if (rows.has_control()) return std::make_unique<ControlWaits>(rows, lsu, warps);
  if (rows.has_async_waits()) {
    return std::make_unique<AsyncWaits>(rows, lsu, num_blocks, warps_per_block);
  }
  return std::make_unique<RegisterWaits>(rows, warps);
}

}  // namespace warpstack::timing
