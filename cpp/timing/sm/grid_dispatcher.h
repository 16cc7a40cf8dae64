#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "memory/order/occupancy.h"
#include "timing/base/clock.h"
#include "timing/base/timing_config.h"
#include "timing/sm/dispatcher.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::timing {

/// A launch among others that run at the same time.
struct GridLaunch {
  const trace::KernelTrace* trace = nullptr;
  std::vector<std::uint32_t> after;  ///< the launches that end before it starts, not in circles
  /// Those of which each block triggers or ends before it starts, and for whose end its own warps
  /// wait where they say so (trace::GridStep); not in circles either.
  std::vector<std::uint32_t> after_trigger;
  std::int32_t priority = 0;  ///< of its stream; the larger is served first
};

/// Gives the blocks of several grids to the SMs. Only the first grid in line gets places: that of
/// the highest priority, and among these the one that was launched first, until its last block has
/// one (Amert et al., "GPU Scheduling on the NVIDIA TX2: Hidden Details Revealed", RTSS 2017,
/// rules X1 and A2; Gilman et al., "Demystifying the Placement Policies of the NVIDIA GPU Thread
/// Block Scheduler for Concurrent Kernels", 2021, call it the leftover policy). At most so many
/// grids are under way at a time (`concurrent_grids`).
///
/// A block needs room on one SM: of warps, threads, block slots, registers and shared memory. It
/// goes where such room got free first. With one grid this is what Dispatcher does. A grid whose
/// first block finds no other block on the machine starts without replacement, as it would alone.
///
/// When a grid has ended, those may start that waited for it last. Where no other grid is under way
/// or may start, they are left to another run, because the machine is at rest then: is_at_rest().
/// A grid whose blocks are done has ended once those have that it started behind the triggers of:
/// streams end in their order.
class GridDispatcher final : public BlockSource {
 public:
  /// `shared_memory_bytes`: of an SM, for all grids.
  GridDispatcher(std::span<const GridLaunch> launches, const TimingConfig& config,
                 const std::optional<std::uint64_t>& shared_memory_bytes, std::uint32_t num_sms);

  /// Whether no block starts any more.
  [[nodiscard]] bool empty() const { return num_left_ == 0 && (num_held_ == 0 || is_at_rest_); }
  /// Whether grids are left to another run.
  [[nodiscard]] bool is_at_rest() const { return is_at_rest_; }
  /// Whether a grid is one of these.
  [[nodiscard]] bool is_held(std::uint32_t grid) const {
    return grids_[grid].num_awaited > 0 || grids_[grid].num_untriggered > 0;
  }
  /// The grids whose warps need not wait any more since it was last asked for them.
  [[nodiscard]] std::vector<std::uint32_t> take_released() { return std::exchange(released_, {}); }
  /// When the first block of a grid started; never: none has.
  [[nodiscard]] Cycle start_of(std::uint32_t grid) const { return grids_[grid].start; }
  [[nodiscard]] bool has_more() const { return !empty(); }
  /// The cycle in which the next block starts, if no room gets free before.
  [[nodiscard]] Cycle next();
  /// No block starts on an SM before this cycle in the room that it has now.
  [[nodiscard]] Cycle earliest_start(std::uint32_t sm);
  /// The block that starts in this cycle, if one does.
  std::optional<BlockStart> start(Cycle now);

  void free_place(std::uint32_t sm, std::uint32_t grid, bool has_triggered, Cycle now) override;
  void trigger(std::uint32_t grid, Cycle now) override;
  std::optional<BlockStart> start_on(std::uint32_t sm, Cycle now) override;

 private:
  /// What a block takes of an SM, or an SM has.
  struct Room {
    std::int64_t blocks = 0;
    std::int64_t warps = 0;
    std::int64_t threads = 0;
    std::int64_t registers = 0;
    std::int64_t shared_memory = 0;

    [[nodiscard]] bool is_nothing() const {
      return blocks == 0 && warps == 0 && threads == 0 && registers == 0 && shared_memory == 0;
    }
    [[nodiscard]] bool holds(const Room& need) const {
      return blocks >= need.blocks && warps >= need.warps && threads >= need.threads &&
             registers >= need.registers && shared_memory >= need.shared_memory;
    }
    Room& operator+=(const Room& other);
    Room& operator-=(const Room& other);
    [[nodiscard]] Room shared_with(const Room& other) const;
  };
  /// Room on an SM that got free at one time.
  struct FreeRoom {
    Cycle cycle = 0;
    std::uint64_t number = 0;  ///< in the order in which they came
    Room room;
  };
  struct Grid {
    Room need;
    std::uint32_t next_block = 0;  ///< of those with instructions
    std::uint64_t unfinished = 0;  ///< blocks that have started
    Cycle start = never;
    std::uint32_t num_awaited = 0;      ///< grids that have to end
    std::uint32_t num_untriggered = 0;  ///< grids that have to trigger
    std::uint32_t num_unended = 0;      ///< of these, who have not ended
    std::uint64_t blocks_to_trigger = 0;
    bool has_triggered = false;
    bool is_finished = false;               ///< all its blocks are done
    std::vector<std::uint32_t> followers;   ///< who wait for its end
    std::vector<std::uint32_t> dependents;  ///< who wait for its trigger
  };
  /// Since when an SM has room for a block of a grid.
  struct Since {
    Cycle cycle = never;
    std::uint64_t number = 0;
    [[nodiscard]] bool operator<(const Since& other) const {
      return cycle != other.cycle ? cycle < other.cycle : number < other.number;
    }
  };
  static constexpr std::uint32_t nobody = ~std::uint32_t{0};

  [[nodiscard]] Room need_of(const trace::KernelHeader& kernel) const;
  [[nodiscard]] bool has_blocks(std::uint32_t grid) const {
    return grids_[grid].next_block < launches_[grid].trace->blocks().size();
  }
  void skip(std::uint32_t grid);
  /// The last block of a grid is done: those behind it may start.
  void end(std::uint32_t grid);
  /// Lets those start that waited last for the end of grids that are finished, or for their
  /// triggers. Grids without blocks end at once.
  void release(std::vector<std::uint32_t> finished);
  /// All blocks of a grid have triggered. Appends those that are finished by that.
  void let_dependents_start(std::uint32_t grid, std::vector<std::uint32_t>& finished);
  /// A grid waits for one thing less before it starts.
  void may_start(std::uint32_t grid, std::vector<std::uint32_t>& finished);
  /// Finds the grid in line.
  void find_first();
  /// Finds where its next block starts.
  void find_place();
  [[nodiscard]] Since room_since(std::uint32_t sm, const Room& need) const;
  void take(std::uint32_t sm, const Room& need);

  std::span<const GridLaunch> launches_;
  const TimingConfig& config_;
  Ticks interval_;
  Cycle replacement_;
  std::uint32_t most_grids_;
  std::vector<Grid> grids_;
  std::vector<bool> ended_;
  std::vector<std::vector<FreeRoom>> rooms_;  ///< by SM, oldest first
  std::vector<Since> since_;                  ///< by SM, of the grid in line
  std::vector<Cycle> earliest_;               ///< by SM; -1: not known
  std::uint32_t first_ = nobody;              ///< the grid in line
  std::uint32_t place_ = nobody;              ///< the SM of its next block
  bool is_place_known_ = false;
  bool waits_for_end_ = false;             ///< a grid starts only when another one has ended
  bool has_new_ = false;                   ///< a grid that may start has not
  std::vector<std::uint64_t> num_blocks_;  ///< that run, by SM
  std::uint64_t num_blocks_in_all_ = 0;
  std::uint64_t num_left_ = 0;  ///< grids that may start, with blocks that have not
  std::uint64_t num_held_ = 0;
  std::uint64_t num_waiting_ = 0;  ///< grids with others that have triggered and not ended
  std::vector<std::uint32_t> released_;
  std::uint64_t num_running_ = 0;  ///< grids that have started
  bool is_at_rest_ = false;
  std::uint64_t number_ = 0;
  Ticks free_ = 0;        ///< when the next block may start
  Cycle not_before_ = 0;  ///< the SMs have had their turns until then
};

}  // namespace warpstack::timing
