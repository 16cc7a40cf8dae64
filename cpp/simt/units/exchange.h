#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "simt/state/execution.h"
#include "simt/state/faults.h"

namespace warpstack::simt {

/// The operands of a warp-wide operation.
struct Exchange {
  std::uint32_t present = 0;
  std::array<std::uint64_t, warp_size> values{};
};

/// Advice for messages about a wrong mask.
inline constexpr const char* mask_remedy =
    " (correct the mask; on_fault=\"continue\" of a launch, --on-fault continue of warpstack "
    "trace, gives what a GPU does)";

/// Shuffles, votes, matches and reductions: exchanges values between lanes. WarpOperations says
/// when.
class WarpExchange {
 public:
  WarpExchange(Execution& execution, Faults& faults)
      : program_(execution.program), faults_(faults) {}

  void bring(const Step& step, const std::byte* registers, std::uint32_t mask,
             Exchange& exchange) const;
  /// Gives the lanes of a path their results.
  void take(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask,
            const Exchange& exchange);

 private:
  void shuffle(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask,
               std::uint32_t members, const Exchange& exchange);

  const KernelProgram& program_;
  Faults& faults_;
};

}  // namespace warpstack::simt
