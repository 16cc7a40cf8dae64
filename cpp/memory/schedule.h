#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "common/enum_names.h"
#include "trace/kernel_trace.h"

namespace warpstack::memory {

/// One executed access to global or local memory by a warp.
struct MemoryAccess {
  std::uint32_t row = 0;                       ///< in the static instruction table
  std::span<const std::uint64_t> sectors;      ///< touched sectors, at least one
  std::span<const std::uint32_t> store_bytes;  ///< byte masks of written sectors; empty for loads
};

/// Which rows of the instruction table a WarpStream yields and which have store masks.
struct RowFlags {
  explicit RowFlags(const std::vector<trace::StaticInstruction>& instructions);
  std::vector<std::uint8_t> uses_caches;
  std::vector<std::uint8_t> writes;
};

/// The accesses of one warp in program order: instructions of global and local space with at least
/// one active lane. A file-backed trace is read in windows, so that a resident warp costs a few
/// kilobytes whatever its length.
class WarpStream {
 public:
  WarpStream(const trace::KernelTrace& trace, const RowFlags& flags, trace::WarpPosition position);
  // Spans point into the stream's own buffer: it moves, but does not copy.
  WarpStream(WarpStream&&) = default;
  WarpStream& operator=(WarpStream&&) = default;

  [[nodiscard]] bool done() const { return done_; }
  /// The access at the cursor; only while not done(). Valid until advance().
  [[nodiscard]] const MemoryAccess& current() const { return current_; }
  void advance();
  /// Brings the sectors of the access at the cursor close.
  void prefetch() const {
    const std::span<const std::uint64_t> sectors = current_.sectors;
    for (std::size_t i = 0; i < sectors.size(); i += 8) __builtin_prefetch(&sectors[i]);
    if (!sectors.empty()) __builtin_prefetch(&sectors.back());
  }
  [[nodiscard]] trace::WarpPosition position() const { return position_; }

 private:
  bool load_window();

  const trace::KernelTrace* trace_;
  const RowFlags* flags_;
  trace::WarpPosition position_;
  trace::ColumnCounts window_end_;  ///< one past the window, within the block
  trace::ColumnCounts warp_end_;    ///< one past the warp
  trace::ColumnView window_;
  std::size_t memory_ = 0;  ///< positions in the window
  std::size_t sector_ = 0;
  std::size_t store_ = 0;
  bool done_ = false;
  MemoryAccess current_;
  std::vector<std::byte> scratch_;
};

/// How the thread blocks of a launch spread over the SMs.
enum class BlockPolicy : std::uint8_t {
  round_robin,    ///< block b to SM b mod num_sms
  random,         ///< each block to an SM of its own draw
  breadth_first,  ///< the SMs take turns until all slots are full; then the next block goes to the
                  ///< SM that first has a free slot
};
constexpr auto names_of(BlockPolicy) {
  return enum_names("block policy", "round_robin", "random", "breadth_first");
}

struct BlockOrder {
  BlockPolicy policy = BlockPolicy::round_robin;
  std::uint64_t seed = 0;  ///< of the random policy
  /// Only the blocks that are resident at the start, as many as an SM holds.
  bool first_occupancy_only = false;
};

/// Blocks of each SM (positions in the trace) in the order in which it takes them.
std::vector<std::vector<std::uint32_t>> assign_blocks(const trace::KernelTrace& trace,
                                                      const RowFlags& flags, std::uint32_t num_sms,
                                                      std::uint32_t blocks_per_sm,
                                                      const BlockOrder& order);

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

/// In which order the resident warps of an SM access memory.
enum class AccessOrder : std::uint8_t {
  round_robin,  ///< one access each in turn
  greedy,       ///< one warp until it waits for a miss, then the oldest that does not wait
};
constexpr auto names_of(AccessOrder) { return enum_names("access order", "round_robin", "greedy"); }

/// The order of the accesses of one SM as a greedy-then-oldest scheduler and its MSHRs make it,
/// without times. A warp goes on until an access of it misses; then the oldest warp that waits for
/// nothing goes on. Misses hold their MSHRs and return in the order in which they left, each when
/// an MSHR is wanted and none is free, or when all warps wait. So where few warps fill the MSHRs,
/// only the oldest make progress, and L1 need hold the lines of these alone. A block that has no
/// access left gives its slot to the SM's next block, whose warps are the youngest.
class GreedySchedule {
 public:
  /// As for SmSchedule; `mshrs` is at least 1.
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
  struct Warp {
    WarpStream stream;
    std::uint64_t age;
    std::uint32_t slot;  ///< of its block
    bool waits = false;
  };
  struct Miss {
    std::uint64_t age;  ///< of the warp that waits for it
    std::uint32_t mshrs;
  };

  [[nodiscard]] Warp& issued() const { return *warps_[issued_]; }
  void fill(std::uint32_t slot);
  void remove_issued();
  void return_first_miss();

  static constexpr std::size_t nobody = ~std::size_t{0};

  const trace::KernelTrace* trace_;
  const RowFlags* flags_;
  std::vector<std::uint32_t> blocks_;
  std::size_t next_block_ = 0;
  std::vector<std::unique_ptr<Warp>> warps_;  ///< with accesses left; oldest first
  std::vector<std::uint32_t> left_;           ///< of the block in each slot, its warps in warps_
  std::uint64_t next_age_ = 0;
  std::size_t issued_ = nobody;  ///< position in warps_
  std::deque<Miss> misses_;
  std::uint64_t taken_mshrs_ = 0;
  std::uint32_t mshrs_;
};

}  // namespace warpstack::memory
