#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "interval_simulation/machine.h"
#include "memory/cache/instruction_cache.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::interval_simulation {

/// A step of a warp: the instructions after the one before it (the head of the step before) up to
/// and with its own head, an instruction that waits for data, goes to the load-store unit, or waits
/// for other warps. A head issues `fresh` cycles after that of the step before, or `carried` cycles
/// after that of the step before this one, or when what it waits for is there; the last of them.
struct Step {
  enum class Action : std::uint8_t { none, access, shared, barrier, arrive, end };

  float fresh = 0;
  float carried = 0;               ///< 0: nothing
  std::uint32_t instructions = 0;  ///< that issue, the head among them
  std::uint32_t row = 0;           ///< of the head
  std::uint32_t first_wait = 0;    ///< in WarpSteps::waits
  std::uint16_t num_waits = 0;
  Action action = Action::none;
  bool steps_phase = false;     ///< the head waits at an mbarrier, or completes something there
  bool comes_to_code = false;   ///< the head is the first of a line of code, which may not be there
  std::uint32_t first_use = 0;  ///< in WarpSteps::uses
  std::uint16_t num_uses = 0;
};

/// What the instructions of a step take of a unit of their scheduler.
struct UnitUse {
  std::uint8_t unit = 0;
  float cycles = 0;
};

/// Which earlier access a head waits for: its data, or only that the load-store unit has sent it.
struct Wait {
  std::uint32_t access = 0;  ///< among those of the warp that others can wait for
  bool until_sent = false;
};

/// All steps of a warp; warps that execute the same instructions have the same.
struct WarpSteps {
  std::vector<Step> steps;
  std::vector<Wait> waits;
  std::vector<UnitUse> uses;
  std::uint32_t most_behind = 1;  ///< accesses between one and the last head that waits for it
  std::uint64_t instructions = 0;
};

/// Makes the steps of warps: the interval algorithm (GPUMech, Eq. 4), with accesses whose time is
/// left open. Where instructions have control fields, these say what they wait for, instead of
/// registers.
class StepBuilder {
 public:
  StepBuilder(const trace::KernelTrace& trace, const Machine& machine,
              const memory::CodeLines& code);

  WarpSteps steps_of(const trace::ColumnView& warp);

 private:
  /// When something is there: after an access, or at a time that counts from the heads of the last
  /// two steps.
  struct Ready {
    static constexpr std::int64_t no_access = -1;
    std::int64_t access = no_access;
    bool until_sent = false;
    std::uint32_t step = 0;  ///< the step whose head `here` counts from
    double here = 0;         ///< cycles
    double before = never;   ///< cycles from the head of the step before
  };
  static constexpr double never = -1e30;

  struct Row {
    double latency = 0;
    double interval = 0;
    std::uint8_t unit = 0;
    bool is_memory = false;
    bool uses_caches = false;
    bool returns = false;  ///< data
    bool stops_warp = false;
    bool is_answered = false;  ///< the warp gets to know when it is done
    bool has_result = false;   ///< beside data of memory, that the end of the warp waits for
    bool is_block_barrier = false;
    bool arrives_at_barrier = false;  ///< of the block, without waiting
    bool is_grouped_copy = false;
    bool is_async_product = false;
    bool is_bulk_store = false;
    bool steps_phase = false;
    std::uint32_t registers = 0;
    std::uint16_t num_sources = 0;
    std::uint16_t num_destinations = 0;
  };

  /// What has to be there together: a group of copies, or one result.
  using Hold = std::vector<Ready>;

  void begin_warp();
  void wait_for(const Ready& ready);
  void wait_for(const Hold& hold) {
    for (const Ready& ready : hold) wait_for(ready);
  }
  void note_result(const Ready& ready);
  /// Cycles from the head before that of `step` until a time that counts from earlier heads, as if
  /// nothing had held the warp up since these.
  [[nodiscard]] double from_head_before(const Ready& ready, std::uint32_t step) const;
  void wait_for_control(std::uint32_t row);
  void wait_for_groups(std::uint32_t row);
  void hold_barriers(std::uint32_t row, bool is_active);
  void take_group_step(std::uint32_t row, bool is_active);
  void close(Step::Action action, std::uint32_t row, bool steps_phase = false);
  [[nodiscard]] Ready now_plus(double cycles) const;
  [[nodiscard]] std::span<const std::uint16_t> registers(const Row& row) const {
    return {registers_.data() + row.registers, std::size_t{row.num_sources} + row.num_destinations};
  }

  const trace::KernelTrace& trace_;
  const Machine& machine_;
  const memory::CodeLines& code_;
  bool has_control_;
  bool has_groups_;
  bool has_phases_ = false;  ///< somebody waits at one
  std::vector<Row> rows_;
  std::vector<std::uint16_t> registers_;

  // Of the warp at hand:
  WarpSteps made_;
  std::vector<Ready> register_ready_;
  std::vector<double> position_;    ///< of each step's head, if nothing held the warp up
  double here_ = 0;                 ///< when the last instruction issues, from the last head
  double before_ = never;           ///< the same, from the head before
  std::uint32_t instructions_ = 0;  ///< since the last head
  std::uint32_t num_accesses_ = 0;  ///< that others can wait for
  std::vector<char> is_waited_;     ///< by access
  std::vector<Wait> pending_;       ///< what the next head waits for
  std::array<double, trace::num_op_classes> used_{};  ///< cycles of units since the last head
  std::array<Ready, trace::num_op_classes> unit_free_;
  std::array<std::vector<Hold>, trace::num_control_barriers> held_;  ///< by control barrier
  Hold copies_;  ///< asynchronous ones that no barrier is held for yet
  std::vector<Hold> copy_groups_;
  std::vector<Hold> product_groups_;
  Hold products_;
  Hold bulk_stores_;  ///< in no group yet
  std::vector<Hold> bulk_groups_;
  Ready stopping_;       ///< an atomic that stops the warp
  Ready last_;           ///< when all results so far are there
  double earliest_ = 0;  ///< that the next instruction issues, from the last head
  Ready stall_;          ///< that the control fields of the last instruction say
};

}  // namespace warpstack::interval_simulation
