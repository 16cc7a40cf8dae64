#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "common/enum_names.h"
#include "memory/order/warp_stream.h"
#include "trace/columns/kernel_trace.h"

// The order in which the warps of an SM access memory. block_assignment.h assigns thread blocks to
// SMs.

namespace warpstack::memory {

/// The order of the accesses of one SM (GPUMech, Section V-A; cache paper, Section 2.4): at most
/// `blocks_per_sm` thread blocks are resident; in a round each resident warp issues its next
/// access, in the order of block slots and warps; after a round, blocks without further accesses
/// give their slots to the SM's next blocks.
class SmSchedule {
 public:
  /// `blocks`: positions in the trace, in the order in which the SM takes them. `flags` must
  /// outlive the schedule.
  SmSchedule(const trace::KernelTrace& trace, const RowFlags& flags,
             std::vector<std::uint32_t> blocks, std::uint32_t blocks_per_sm);

  /// Moves to the SM's next access. Returns null when there is none.
  const MemoryAccess* next();
  /// The warp of the access that next() returned last.
  [[nodiscard]] trace::WarpPosition warp() const { return issued_->position(); }

 private:
  using Slot = std::vector<WarpStream>;  ///< the unfinished warps of a block
  void end_round();
  void prefetch_ahead() const;
  void fill(Slot& slot);

  const trace::KernelTrace* trace_;
  const RowFlags* flags_;
  std::vector<std::uint32_t> blocks_;
  std::size_t next_block_ = 0;
  std::vector<Slot> slots_;
  std::size_t slot_ = 0;
  std::size_t warp_ = 0;
  WarpStream* issued_ = nullptr;
};

/// The order in which the resident warps of an SM access memory.
enum class AccessOrder : std::uint8_t {
  round_robin,  ///< one access each in turn
  greedy,       ///< one warp until it waits for a miss, then the oldest that does not wait
  timed,        ///< as on a reference machine with latencies (timed_schedule.h)
};
constexpr auto names_of(AccessOrder) {
  return enum_names("access order", "round_robin", "greedy", "timed");
}

/// The order of one SM's accesses under a greedy-then-oldest scheduler with MSHRs, without times. A
/// warp goes on until one of its accesses misses; then the oldest warp that waits for nothing goes
/// on. Misses hold their MSHRs and return in the order in which they left: one whenever an MSHR is
/// wanted and none is free, or all warps wait. So if few warps fill the MSHRs, only the oldest make
/// progress, and L1 need only hold their lines. A block that has no access left gives its slot to
/// the SM's next block, whose warps are the youngest.
class GreedySchedule {
 public:
  /// The parameters are those of SmSchedule; `mshrs` is at least 1.
  GreedySchedule(const trace::KernelTrace& trace, const RowFlags& flags,
                 std::vector<std::uint32_t> blocks, std::uint32_t blocks_per_sm,
                 std::uint32_t mshrs);

  /// Moves to the SM's next access. Returns null when there is none.
  const MemoryAccess* next();
  /// The warp of the access that next() returned last.
  [[nodiscard]] trace::WarpPosition warp() const { return issued().stream.position(); }
  /// The warp waits: this access takes `mshrs` MSHRs.
  void missed(std::uint32_t mshrs);

 private:
  struct ScheduledWarp {
    WarpStream stream;
    std::uint64_t age;
    std::uint32_t slot;  ///< of its block
    bool waits = false;
  };
  struct Miss {
    std::uint64_t age;  ///< of the warp that waits for it
    std::uint32_t mshrs;
  };

  [[nodiscard]] ScheduledWarp& issued() const { return *warps_[issued_]; }
  void fill(std::uint32_t slot);
  void remove_issued();
  void return_first_miss();

  static constexpr std::size_t nobody = ~std::size_t{0};

  const trace::KernelTrace* trace_;
  const RowFlags* flags_;
  std::vector<std::uint32_t> blocks_;
  std::size_t next_block_ = 0;
  std::vector<std::unique_ptr<ScheduledWarp>> warps_;  ///< those with accesses left, oldest first
  std::vector<std::uint32_t> left_;  ///< by slot: warps of its block that are in warps_
  std::uint64_t next_age_ = 0;
  std::size_t issued_ = nobody;  ///< position in warps_
  std::deque<Miss> misses_;
  std::uint64_t taken_mshrs_ = 0;
  std::uint32_t mshrs_;
};

}  // namespace warpstack::memory
