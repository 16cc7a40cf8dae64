#pragma once

#include <cstdint>
#include <vector>

#include "common/enum_names.h"
#include "memory/order/warp_stream.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::memory {

/// How the thread blocks of a launch spread over the SMs.
enum class BlockPolicy : std::uint8_t {
  round_robin,    ///< block b to SM b mod num_sms
  random,         ///< each block to an SM drawn for it
  breadth_first,  ///< the SMs take turns until all slots are full; then the next block goes to the
                  ///< SM that first has a free slot
};
constexpr auto names_of(BlockPolicy) {
  return enum_names("block policy", "round_robin", "random", "breadth_first");
}

struct BlockOrder {
  BlockPolicy policy = BlockPolicy::round_robin;
  std::uint64_t seed = 0;  ///< for the random policy
  /// Assigns only the blocks that are resident at the start, as many as an SM holds.
  bool first_occupancy_only = false;
};

/// The blocks of each SM (positions in the trace), in the order in which it takes them.
std::vector<std::vector<std::uint32_t>> assign_blocks(const trace::KernelTrace& trace,
                                                      const RowFlags& flags, std::uint32_t num_sms,
                                                      std::uint32_t blocks_per_sm,
                                                      const BlockOrder& order);

}  // namespace warpstack::memory
