#pragma once

#include <cstdint>
#include <vector>

#include "common/interrupt.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::interval {

/// Warps that execute the same instructions, each with or without active lanes as the others: the
/// interval algorithm says the same of all of them. A kernel has many warps and often few kinds.
class WarpKinds {
 public:
  /// Warps of a trace in a file are a kind each: to compare them would cost as much as to run the
  /// algorithm.
  explicit WarpKinds(const trace::KernelTrace& trace, const InterruptCheck& interrupt = {});

  [[nodiscard]] std::size_t size() const { return first_.size(); }
  /// The first warp of a kind, in trace order.
  [[nodiscard]] const trace::WarpPosition& first(std::size_t kind) const { return first_[kind]; }
  /// The kind of each warp, block by block.
  [[nodiscard]] const std::vector<std::uint32_t>& of_warps() const { return of_warps_; }

 private:
  std::vector<trace::WarpPosition> first_;
  std::vector<std::uint32_t> of_warps_;
};

}  // namespace warpstack::interval
