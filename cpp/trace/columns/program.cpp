#include "trace/columns/program.h"

#include <algorithm>
#include <string>

#include "common/error.h"

namespace warpstack::trace {

void append_program(TraceBuilder& builder, std::span<const ProgramStep> steps,
                    const InterruptCheck& interrupt) {
  const KernelHeader& header = builder.header();
  const std::uint64_t warps_per_block = header.warps_per_block();
  const std::uint64_t num_warps = header.num_blocks() * warps_per_block;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const auto check = [&](const char* what, std::size_t size, std::uint64_t expected) {
      if (size != 0 && size != expected) {
        throw InputError("step " + std::to_string(s) + ": " + what + " has " +
                         std::to_string(size) + " entries where the launch needs " +
                         std::to_string(expected));
      }
    };
    check("issued", steps[s].issued.size(), num_warps);
    check("mask", steps[s].mask.size(), num_warps);
    check("addresses", steps[s].addresses.size(), num_warps * warp_size);
  }
  for (std::uint64_t warp_id = 0; warp_id < num_warps; ++warp_id) {
    const std::uint64_t warp = warp_id % warps_per_block;
    if (interrupt && warp_id % 4096 == 0) interrupt();
    if (warp == 0) builder.begin_block(warp_id / warps_per_block);
    builder.begin_warp(static_cast<std::uint32_t>(warp));
    const std::uint64_t threads =
        std::min<std::uint64_t>(header.threads_per_block() - warp * warp_size, warp_size);
    const auto all_threads = static_cast<std::uint32_t>((std::uint64_t{1} << threads) - 1);
    for (const ProgramStep& step : steps) {
      if (!step.issued.empty() && !step.issued[warp_id]) continue;
      const std::uint32_t mask = step.mask.empty() ? all_threads : step.mask[warp_id];
      if (step.addresses.empty()) {
        builder.append(step.row, mask);
        continue;
      }
      LaneAddresses lanes;
      lanes.mask = mask;
      std::ranges::copy(step.addresses.subspan(warp_id * warp_size, warp_size),
                        lanes.address.begin());
      for (const std::uint64_t address : lanes.address) {
        if (address > max_address) throw InputError("an address is beyond the address space");
      }
      builder.append(step.row, mask, &lanes);
    }
    if (warp + 1 == warps_per_block) builder.end_block();
  }
}

}  // namespace warpstack::trace
