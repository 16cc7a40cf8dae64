#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memory/cache/instruction_cache.h"
#include "timing/memory/load_store_unit.h"
#include "timing/sm/bulk_groups.h"
#include "timing/sm/control_barriers.h"
#include "timing/sm/dispatcher.h"
#include "timing/sm/instruction_stream.h"
#include "timing/sm/phase_barriers.h"
#include "timing/sm/row_slots.h"
#include "timing/sm/wake_wheel.h"
#include "timing/sm/warp_scheduler.h"
#include "trace/columns/dependent_launch.h"
#include "trace/instructions/barrier_steps.h"
#include "trace/instructions/copy_groups.h"
#include "trace/instructions/phase_steps.h"

namespace warpstack::timing {

/// What the simulator looks up for each row of the instruction tables of the kernels that run
/// together, one table after the other.
class RowTable {
 public:
  /// `has_dependents`: some kernels start behind the triggers of others. Throws InputError where
  /// some kernels have control fields and others have none.
  RowTable(std::span<const trace::KernelTrace* const> kernels, const TimingConfig& config,
           bool has_dependents);

  /// A kernel, by the number of its grid.
  struct Grid {
    const trace::KernelTrace* trace = nullptr;
    std::uint32_t first_row = 0;
    memory::CodeLines code;
  };

  struct Row {
    Cycle latency = 0;
    std::uint32_t interval = 0;  ///< cycles for which the unit of the class takes no other one
    std::uint32_t registers = 0;
    std::uint16_t num_sources = 0;
    std::uint16_t num_destinations = 0;
    std::uint8_t unit = 0;  ///< the operation class
    bool is_memory = false;
    bool uses_caches = false;
    bool stops_warp = false;  ///< until it is done, as atomics do on some machines
    bool is_block_barrier = false;
    bool arrives_at_barrier = false;  ///< of the block, without waiting
    bool is_async_copy = false;
    bool is_async_product = false;  ///< its sums are there when a wait says so
    bool is_bulk_store = false;     ///< in a group that a wait waits for
    bool awaits_write = false;      ///< of such a store, that it is written, not only read
  };

  /// Where instructions say when they may issue, with what follows from it.
  struct ControlRow {
    trace::Control control;
    Cycle distance = 1;          ///< until the warp's next instruction may issue
    bool awaits_copies = false;  ///< its write barrier is for asynchronous copies
  };

  [[nodiscard]] const Row& operator[](std::uint32_t row) const { return rows_[row]; }
  [[nodiscard]] bool has_control() const { return !control_.empty(); }
  [[nodiscard]] const ControlRow& control(std::uint32_t row) const { return control_[row]; }
  /// Whether an instruction waits for groups of products, or without control fields for copies.
  [[nodiscard]] bool has_copy_groups() const { return has_copy_groups_; }
  [[nodiscard]] const trace::CopyGroupStep& copy_step(std::uint32_t row) const {
    return effects_[row]->groups;
  }
  /// Whether an instruction waits for groups of bulk stores.
  [[nodiscard]] bool has_bulk_groups() const { return has_bulk_groups_; }
  /// Whether an instruction waits at an mbarrier.
  [[nodiscard]] bool has_phases() const { return has_phases_; }
  [[nodiscard]] const trace::PhaseStep& phase_step(std::uint32_t row) const {
    return effects_[row]->phase;
  }
  /// Whether some kernels start behind the triggers of others.
  [[nodiscard]] bool has_dependents() const { return !grid_steps_.empty(); }
  /// What an instruction does with other grids, where has_dependents().
  [[nodiscard]] trace::GridStep grid_step(std::uint32_t row) const { return grid_steps_[row]; }
  /// Sources, then destinations.
  [[nodiscard]] std::span<const std::uint16_t> registers(const Row& row) const {
    return {registers_.data() + row.registers, std::size_t{row.num_sources} + row.num_destinations};
  }
  [[nodiscard]] std::span<const std::uint16_t> destinations(const Row& row) const {
    return registers(row).subspan(row.num_sources);
  }
  [[nodiscard]] const std::vector<Grid>& grids() const { return grids_; }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] std::size_t num_registers() const { return num_registers_; }
  [[nodiscard]] const trace::StaticInstruction& instruction(std::uint32_t row) const {
    return *instructions_[row];
  }
  [[nodiscard]] const trace::Effects& effects(std::uint32_t row) const { return *effects_[row]; }
  /// The instructions of a warp of a grid.
  [[nodiscard]] InstructionStream stream(std::uint32_t grid, trace::WarpPosition position) const;

 private:
  void add(const trace::KernelTrace& trace, const TimingConfig& config);
  /// Finds out what instructions without control fields wait for besides registers.
  void read_waits(const Grid& grid);

  std::vector<Grid> grids_;
  std::vector<const trace::StaticInstruction*> instructions_;
  std::vector<const trace::Effects*> effects_;
  std::vector<InstructionStream::RowKind> kinds_;
  std::vector<Row> rows_;
  std::vector<ControlRow> control_;
  bool has_copy_groups_ = false;
  bool has_bulk_groups_ = false;
  bool has_phases_ = false;
  std::vector<trace::GridStep> grid_steps_;
  std::size_t num_registers_ = 1;
  std::vector<std::uint16_t> registers_;
};

/// What an SM holds at once, at most.
struct Residency {
  std::size_t blocks = 0;
  std::size_t warps = 0;
};

/// A streaming multiprocessor. In a cycle it takes the replies that have arrived, retires warps,
/// takes the blocks that start in it, issues, and lets the load-store unit send one request.
class Sm {
 public:
  Sm(const TimingConfig& config, const RowTable& rows, const memory::CacheConfig& l1,
     const memory::Cache& l2, const Residency& most, std::uint32_t index);

  /// Thread blocks that it can have at a time.
  [[nodiscard]] std::size_t places() const { return blocks_.size(); }
  /// Counts its issue slots by instruction, too; before the first block.
  void count_rows();
  /// Warps of a grid wait for the grids before it, until release().
  void hold(std::uint32_t grid) { released_[grid] = never; }
  /// They need not wait any more from a cycle on that is still to come.
  void release(std::uint32_t grid, Cycle cycle);
  /// Takes a thread block in this cycle, to whose step it has not come yet.
  void launch(const BlockStart& start, Cycle now);

  /// When it next has something to do.
  [[nodiscard]] Cycle next() const { return next_; }
  /// The cycle next(), whose blocks the dispatcher starts; null: no block starts where one ends.
  void step(BlockSource* dispatcher);
  /// Whether the cycle next() is the same whatever the rest of the GPU does before it, but for
  /// replies that arrive and blocks that start until then. `places_count`: a block that ends makes
  /// room for another one.
  [[nodiscard]] bool can_run_ahead(bool places_count) const {
    if (lsu_.awaits_room() || !lsu_.has_room_for_step(arrivals_.size())) return false;
    return !places_count || std::ranges::none_of(blocks_, [](const Block& block) {
      return block.resident > 0 && block.unfinished == 0;
    });
  }
  /// The last cycle that it has done, or before which it took a block.
  [[nodiscard]] Cycle last() const { return last_; }
  /// A packet leaves the reply network at `now`; it arrives after those before it.
  void send_reply(const Reply& reply, Ticks now) {
    arrivals_.push(reply);
    // The SM has had its turn at this instant.
    next_ = std::min(next_, std::max(cycle_at_or_after(reply.time), cycle_after(now)));
  }
  [[nodiscard]] std::size_t replies_under_way() const { return arrivals_.size(); }
  /// A packet left the queue to the NoC at `now`.
  void take_room(Ticks now) {
    if (now < last_ * ticks_per_cycle) return;  // it ran ahead, because that does not matter
    lsu_.take_room();
    next_ = std::min(next_, lsu_.next(cycle_after(now)));
  }

  [[nodiscard]] LoadStoreUnit& lsu() { return lsu_; }
  [[nodiscard]] const LoadStoreUnit& lsu() const { return lsu_; }
  [[nodiscard]] std::uint64_t instructions() const { return instructions_; }
  /// Cycles for which its tensor cores were busy, each scheduler's by themselves.
  [[nodiscard]] std::uint64_t tensor_cycles() const { return tensor_cycles_; }
  /// The cycle after its last warp was done.
  [[nodiscard]] Cycle end() const { return end_; }
  /// The cycle after the last warp of a grid was done here; 0: it had none.
  [[nodiscard]] Cycle end_of_grid(std::uint32_t grid) const { return grid_ends_[grid]; }
  /// Parts of the issue slots until end(), by what they were used for or lost to.
  [[nodiscard]] CpiStack<std::int64_t> slots() const { return slots_.stack(); }
  /// The same by detail. `waited`, `requests`: what requests waited for below the SMs.
  [[nodiscard]] DetailedStack<std::int64_t> details(WaitedFor waited,
                                                    const WaitedFor& requests) const {
    waited += lsu_.waited_for();
    return attribute(slots_, waited, requests);
  }
  /// Those of them that were lost while a store kept the load-store unit waiting.
  [[nodiscard]] std::int64_t store_slots() const { return store_slots_; }
  /// The same slots by instruction; null unless they are counted.
  [[nodiscard]] const RowSlots* row_slots() const { return row_slots_ ? &*row_slots_ : nullptr; }
  [[nodiscard]] std::uint32_t resident_warps() const { return num_warps_; }
  /// Appends the number of resident warps of each scheduler.
  void count_scheduler_warps(std::vector<std::uint32_t>& counts) const;
  /// Whether a warp waits at a barrier of its block.
  [[nodiscard]] bool waits_at_barrier() const {
    return std::ranges::any_of(by_age_,
                               [this](std::uint32_t slot) { return warps_[slot].is_at_barrier; });
  }
  /// Appends what the unfinished warps wait for, a line each, up to `most` lines.
  void explain(std::string& text, std::size_t most) const;

 private:
  enum class Need : std::uint8_t { nothing, unit, load_store_unit };
  /// What a warp waits for in this cycle. Who could issue waits for its turn, and who needs a unit
  /// that is busy for that.
  enum class Place : std::uint8_t {
    nowhere,  ///< for other warps, or it is not there
    at_data,
    at_load_store_unit,  ///< its instruction there has yet to be sent
    before_access,       ///< it has what an access needs
    before_unit,
    before_turn,
  };

  struct ResidentWarp {
    // What each instruction changes lies together.
    Cycle ready = never;      ///< when it has what its next instruction waits for
    std::int64_t lost = 0;    ///< parts of slots while it waited for data, not yet settled
    std::int64_t mark = 0;    ///< of lost_per_warp_, up to which they are counted
    std::uint32_t cause = 0;  ///< what its next instruction waits for, see register_cause()
    std::uint32_t age = 0;    ///< its place in by_age_, with gaps
    std::uint32_t row = 0;    ///< of the instruction that it waits at, or issued last
    std::uint32_t scheduler = 0;
    Place place = Place::nowhere;
    Need need = Need::nothing;
    std::uint8_t unit = 0;
    bool is_resident = false;
    bool is_at_barrier = false;
    std::uint8_t barrier = 0;  ///< of its block, where it waits
    bool has_exited = false;   ///< issued its last instruction
    std::uint32_t block = 0;   ///< slot
    Cycle finish = 0;          ///< when what it has issued is done, without its loads
    Cycle barrier_until = 0;
    StackDetail barrier_detail = StackDetail::starts;  ///< what it waits for until then
    std::uint32_t atomic = LoadStoreUnit::no_load;     ///< that it waits for, whatever comes next
    std::uint32_t number = 0;                          ///< among all that have had the slot
    InstructionStream stream;
    std::vector<std::uint32_t> loads;  ///< in flight, oldest first
    Cycle code_ready = -1;             ///< since when its next instruction is there
    Cycle stalls_until = 0;            ///< its control fields say so
    Cycle products_done = 0;           ///< the asynchronous ones
    std::uint32_t code_line = 0;       ///< of its next instruction
  };
  struct Block {
    std::uint32_t resident = 0;    ///< warps not retired
    std::uint32_t unfinished = 0;  ///< warps that have not exited
    bool is_whole = true;          ///< the trace has all its warps
    bool has_triggered = false;    ///< those start that wait for that
    std::uint32_t grid = 0;
    std::vector<std::uint32_t> slots;  ///< of its warps, ascending
    trace::BlockBarriers barriers;
  };
  /// Who waits until an instruction in the queue of the load-store unit has read its sources.
  struct Reader {
    std::uint32_t slot = 0;
    std::uint32_t number = 0;  ///< of the warp
    std::uint8_t barrier = trace::no_control_barrier;
    std::uint8_t write_barrier = trace::no_control_barrier;  ///< of one that returns nothing
    bool is_bulk_store = false;
  };

  /// Sets of warps by age: a word of each.
  struct Waiting {
    std::uint64_t at_data = 0;
    std::uint64_t at_load_store_unit = 0;
    std::uint64_t before_access = 0;
  };
  /// A word of a scheduler's warps that have what they wait for.
  struct Ready {
    std::uint64_t before_access = 0;
    std::uint64_t before_turn = 0;
    std::array<std::uint64_t, trace::num_op_classes> before_unit{};
  };
  struct Units {
    std::uint32_t wanted = 0;  ///< by warps that have what they wait for; a bit each
    std::uint32_t busy = 0;    ///< a bit each; some may be free again
    std::array<std::uint32_t, trace::num_op_classes> num_waiting{};
    std::array<Cycle, trace::num_op_classes> free{};  ///< from when on
  };

  void deliver(Cycle now);
  void complete_loads(Cycle now);
  void retire(Cycle now, BlockSource* dispatcher);
  /// Gives a block slots for its warps, the lowest that are free.
  void take_slots(Block& block, std::size_t warps);
  /// Accounts for the issue slots of the cycles before this one, which nobody used.
  void lose_until(Cycle now);
  void issue(Cycle now);
  /// The slot of the warp that issues next; `nobody` without one.
  [[nodiscard]] std::uint32_t pick(std::uint32_t scheduler, bool accepts, Cycle now);
  void issue_from(std::uint32_t warp, std::uint32_t scheduler, Cycle now);
  /// Lets the instruction hold its barriers; `load`: what the load-store unit gave for it.
  void hold_for_access(std::uint32_t slot, std::uint32_t row, std::uint32_t load, Cycle now);
  void hold_for_operation(std::uint32_t slot, std::uint32_t row, Cycle now);
  /// When the groups of copies for which an instruction without control fields waits are there.
  [[nodiscard]] ControlBarriers::Wait copy_wait(std::uint32_t slot, std::uint32_t row);
  /// Does what an instruction with active lanes does at groups and mbarriers; `load` as above.
  void take_async_steps(std::uint32_t slot, std::uint32_t row, std::uint32_t load, Cycle now);
  /// What an instruction with active lanes does with other grids.
  void take_grid_step(std::uint32_t block, std::uint32_t row);
  /// Something was completed at an mbarrier of the block: its warps look again.
  void look_at_phases(std::uint32_t block);
  /// Frees the barriers of instructions that the load-store unit has sent.
  void free_readers(Cycle now);
  /// What an instruction does at a barrier of its block. Where the trace has only some of the
  /// warps, all barriers are of all of these.
  [[nodiscard]] trace::BarrierStep barrier_step(std::uint32_t block, std::uint32_t row) const;
  /// Lets the block's warps go on that wait at a barrier for which enough have come.
  void check_barrier(std::uint32_t block, std::uint32_t number, Cycle now);
  /// The warp comes to its next instruction, whose code may not be there.
  void come_to_code(std::uint32_t slot, Cycle now);
  /// Finds out when the warp's next instruction may issue: when its registers are ready or, where
  /// it has control fields, when these say so.
  void look_ahead(std::uint32_t slot);
  /// Accounts for `slots` issue slots that nobody used in a cycle: all warps that wait share them
  /// alike, each giving its part to what it waits for; slots of which nobody waits are idle.
  void lose(std::int64_t slots, Cycle cycle);
  void lose_at_load_store_unit(std::int64_t parts);
  void lose_at_rows(std::int64_t slots, std::int64_t each, std::int64_t rest, Cycle cycle);
  /// The oldest of those that share a lost slot.
  [[nodiscard]] std::uint32_t oldest_waiting(bool accepts, bool with_units, Cycle cycle);
  /// What was lost to a warp goes to what it waits for.
  void settle(std::uint32_t slot);
  /// It waits for something else from now on, until then as far as is known, for what it needs
  /// afterwards.
  void wait_for(ResidentWarp& warp, std::uint32_t slot, std::uint32_t cause, Cycle until, Need need,
                std::uint8_t unit);
  /// It waits for other warps from now on, or is not there.
  void wait_for_others(ResidentWarp& warp, std::uint32_t slot);
  void leave_place(ResidentWarp& warp, std::uint32_t slot);
  /// It has what it waited for.
  void be_ready(ResidentWarp& warp);
  /// Goes on to a cycle: who waits until then has what it waited for.
  void come_to(Cycle cycle);
  /// Counts what it has lost while it waits for data.
  void count_lost(ResidentWarp& warp) {
    warp.lost += lost_per_warp_ - warp.mark;
    warp.mark = lost_per_warp_;
  }
  Waiting& waiting(std::uint32_t age) { return waiting_[age / 64]; }
  Ready& turns(const ResidentWarp& warp) { return turns_[warp.scheduler * words_ + warp.age / 64]; }
  /// The units that warps with all that they wait for need, and that take nothing in a cycle.
  [[nodiscard]] std::uint32_t missed_units(std::uint32_t scheduler, Cycle cycle);
  /// Brings close what a warp touches that issues soon: other SMs have their turns before it does.
  void prefetch(const ResidentWarp& warp, std::uint32_t slot) const {
    warp.stream.prefetch();
    const RegisterState* registers = &registers_[slot * num_registers_];
    for (const std::uint16_t reg : rows_.destinations(rows_[warp.row])) {
      __builtin_prefetch(registers + reg);
    }
    const std::uint32_t next = warp.stream.next_row();
    if (next == InstructionStream::no_row) return;
    for (const std::uint16_t reg : rows_.registers(rows_[next])) {
      __builtin_prefetch(registers + reg);
    }
  }
  /// Gives the resident warps new ages, without gaps.
  void renumber();
  /// It waits for its loads, the oldest first, and for its results.
  void drain(std::uint32_t slot);
  /// The first cycle after `now` in which a warp may issue, or waits for something else, if nothing
  /// else happens.
  Cycle next_issue(Cycle now);
  /// What a register waits for: when it is ready, and for what until then. Four times the cycle,
  /// and the place of the detail in `sent_by`; or `pending` and the load.
  using RegisterState = std::int64_t;
  static constexpr RegisterState pending = RegisterState{1} << 62;
  static constexpr RegisterState register_details = 3;
  static constexpr std::array sent_by = {StackDetail::arithmetic, StackDetail::shared_memory,
                                         StackDetail::l1_latency};
  static constexpr RegisterState ready_at(Cycle cycle,
                                          StackDetail detail = StackDetail::arithmetic) {
    return 4 * cycle + (detail == StackDetail::l1_latency      ? 2
                        : detail == StackDetail::shared_memory ? 1
                                                               : 0);
  }
  static constexpr Cycle register_ready(RegisterState state) {
    return state >= pending ? never : state >> 2;
  }
  /// A detail of the stack, or a load in flight.
  static constexpr std::uint32_t register_cause(RegisterState state) {
    if (state >= pending) return first_load_cause + static_cast<std::uint32_t>(state - pending);
    return static_cast<std::uint32_t>(sent_by[static_cast<std::size_t>(state & register_details)]);
  }

  const RowTable& rows_;
  std::uint32_t index_;
  IssueSlots issue_slots_;
  std::uint32_t slots_per_scheduler_;
  std::size_t num_registers_;
  bool has_control_;
  bool has_copy_groups_;
  bool has_bulk_groups_;
  bool has_phases_;
  bool has_dependents_;
  Cycle barrier_latency_;
  Ticks warp_start_;  ///< from the start of a warp to that of the next one

  /// By grid; none: all of the code is there.
  std::vector<std::optional<memory::InstructionCache>> instruction_caches_;
  bool waits_for_code_ = false;
  LoadStoreUnit lsu_;
  std::vector<WarpScheduler> schedulers_;
  std::vector<ResidentWarp> warps_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> free_blocks_;  ///< lowest slot last
  std::vector<std::uint64_t> free_slots_;   ///< of warps; a bit each
  std::vector<Cycle> grid_ends_;
  std::vector<Cycle> released_;           ///< by grid: from when on its warps need not wait
  std::vector<std::uint32_t> triggered_;  ///< grids of blocks that have triggered in this cycle
  std::vector<std::uint32_t> by_age_;     ///< resident warps
  std::vector<std::uint32_t> draining_;   ///< warps that have exited
  // What the warps wait for, which changes only when something happens to one of them:
  std::size_t words_;             ///< of a set
  std::vector<Waiting> waiting_;  ///< by word
  std::vector<Ready> turns_;      ///< by scheduler and word
  std::vector<Units> units_;      ///< by scheduler
  std::uint32_t num_at_data_ = 0;
  std::uint32_t num_at_load_store_unit_ = 0;
  std::uint32_t num_before_access_ = 0;
  std::uint32_t num_before_unit_ = 0;
  std::uint32_t num_before_turn_ = 0;
  WakeWheel wheel_;                     ///< of those of which it is known until when they wait
  WarpBits candidates_;                 ///< for pick()
  std::vector<std::uint32_t> slot_of_;  ///< by age
  std::uint32_t next_age_ = 0;
  std::int64_t lost_per_warp_ = 0;  ///< parts of slots, of each that waits for data
  /// By how many warps share a slot: what each gets, and what is left for the oldest.
  std::vector<std::pair<std::int64_t, std::int64_t>> shares_;
  std::vector<RegisterState> registers_;  ///< by warp slot and register
  bool prefetches_ = false;               ///< the registers of all SMs are too many for near caches
  ControlBarriers control_barriers_;
  PhaseBarriers phases_;
  BulkGroups bulk_groups_;
  Fifo<Reader> readers_;  ///< one for each instruction in the queue of the load-store unit
  Fifo<Reply> arrivals_;

  Ticks next_warp_start_ = 0;
  std::uint32_t num_warps_ = 0;
  std::uint64_t instructions_ = 0;
  std::uint64_t tensor_cycles_ = 0;
  LostSlots slots_;
  std::int64_t store_slots_ = 0;
  std::optional<RowSlots> row_slots_;
  Cycle last_ = -1;  ///< cycles up to here are accounted for
  Cycle end_ = 0;
  Cycle next_ = never;
};

}  // namespace warpstack::timing
