#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/cpi_stack.h"
#include "common/interrupt.h"
#include "gpu/latencies.h"
#include "interval/warp_kinds.h"
#include "memory/system/memory_system.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::interval {

/// Latency of each row of a kernel's instruction table, in SM cycles.
using Latencies = std::vector<double>;

/// Fixed latencies for comparing warps with one another, whatever the GPU: those of GPUMech's Table
/// I, every access an L2 hit. Selection by them is a one-time cost per trace (MDM, Section II).
Latencies nominal_latencies(const trace::KernelTrace& trace);

/// Latencies on one GPU: operation classes as configured, memory instructions the average over
/// their miss events (GPUMech, Section V-B), shared memory one cycle more per extra wavefront. A
/// global or local instruction that was never active counts as an L1 hit. Where the memory stage
/// knows what warps waited for, the average is over these waits: of several loads that a warp waits
/// for together, the slowest decides, and a line that was on its way takes less than its latency.
Latencies latencies(const trace::KernelTrace& trace, const memory::MemoryProfile& memory,
                    const gpu::ClassLatencies& classes, const gpu::MemoryLatencies& levels);

/// Latencies of rows when a warp comes to them, and when it goes back (memory::Progress): what the
/// first round of a loop fetched, later ones find in L1, and warps go round unlike often.
struct WarpLatencies {
  WarpLatencies(Latencies all) : first(all), again(std::move(all)) {}
  WarpLatencies(Latencies first, Latencies again)
      : first(std::move(first)), again(std::move(again)) {}
  Latencies first;
  Latencies again;
};

/// The mean latencies divided by the rounds in which warps waited, where the memory stage knows it.
WarpLatencies warp_latencies(const trace::KernelTrace& trace, const memory::MemoryProfile& memory,
                             const Latencies& mean, const gpu::MemoryLatencies& levels);

/// Shares of an instruction's waits that were for L1, L2 and DRAM; all 0 when it was never active.
std::array<double, memory::num_miss_events> wait_shares(const memory::InstructionCounters& row);

/// When a warp alone does nothing at a unit: the load-store unit, or that of a class of
/// instructions. Stretches begin where the warp begins, at barriers of its block and at
/// instructions of the unit, with nothing under way, and end where the warp ends, at such a barrier
/// and at an instruction of the unit: so no latency makes the time shorter.
struct TimeOffUnit {
  double warps = 0;       ///< that have such instructions: 0 or 1; of a launch, per instruction
  double before = 0;      ///< cycles until its first one issues
  double after = 0;       ///< cycles from the last one to the end
  double for_stores = 0;  ///< cycles beyond, in which the launch waits for the last one, a store
  /// The same of each part between two barriers, in sum; a part without such instructions as a
  /// whole.
  double of_parts = 0;

  TimeOffUnit& operator+=(const TimeOffUnit& other);
  /// Of a sum over warps, the mean over those that have such instructions.
  [[nodiscard]] TimeOffUnit mean(double instructions) const;
};

/// By unit: the load-store unit, then the classes of instructions; empty where no GPU limits a
/// class.
using TimesOffUnits = std::array<TimeOffUnit, 1 + trace::num_op_classes>;

/// Warps that behave alike, each alone on an SM.
struct WarpGroup {
  trace::WarpPosition first;  ///< in trace order
  std::uint64_t instructions = 0;
  double cycles = 0;  ///< issue and stall cycles of each; cycles / instructions is its CPI
  std::uint64_t count = 0;
  /// At the end, while it waits for its stores (of `cycles`), or the launch does (beyond these).
  double store_cycles = 0;
  const TimesOffUnits* off_units = nullptr;  ///< null unless they are wanted
};

struct VisitOptions {
  bool awaits_results = false;  ///< a warp ends when the latencies of its results have passed
  gpu::WarpWaits waits{};
  bool barriers_stop_warps = false;  ///< for their latency
  bool off_units = false;            ///< WarpGroup::off_units are wanted
};

/// Runs the interval algorithm over one warp of each kind, on `num_threads` threads, and calls
/// `visit(warp)` for every warp that has instructions, a group of one, in the order of the trace.
void visit_warps(const trace::KernelTrace& trace, const WarpKinds& kinds,
                 const WarpLatencies& latencies, double issue_rate, unsigned num_threads,
                 const InterruptCheck& interrupt,
                 const std::function<void(const WarpGroup&)>& visit, VisitOptions options = {});

/// Runs the interval algorithm over every warp (GPUMech, Eq. 5: the features of representative warp
/// selection) and groups warps with the same features, in the order of their first warps: a kernel
/// has millions of warps but few kinds. Warps without instructions are left out. Uses `num_threads`
/// threads; the result does not depend on their number.
std::vector<WarpGroup> group_warps(const trace::KernelTrace& trace, const Latencies& latencies,
                                   double issue_rate, unsigned num_threads = 1,
                                   const InterruptCheck& interrupt = {});

/// Why cycles were lost: the memory level follows the miss events of the instruction waited for.
inline constexpr std::array stall_causes = {StackComponent::dep, StackComponent::l1,
                                            StackComponent::l2, StackComponent::dram};
inline constexpr std::size_t num_stall_causes = stall_causes.size();

/// The intervals of one warp in columns; entry i describes interval i. Counts are per warp.
struct IntervalColumns {
  std::vector<double> instructions;
  std::vector<double> stall_cycles;
  std::array<std::vector<double>, num_stall_causes>
      stall_by_cause;  ///< as `stall_causes`; sum: stall_cycles
  /// Row of the instruction that the last stall of the interval waited for; -1: none.
  std::vector<std::int64_t> cause_row;
  std::vector<double> memory_instructions;  ///< active loads of global and local memory
  std::vector<double> read_misses;          ///< read requests that leave the SM
  std::vector<double> write_requests;       ///< write and atomic requests that leave the SM
  std::vector<double> dram_read_requests;   ///< read misses that reach DRAM
  std::vector<double> dram_write_requests;  ///< write requests that reach DRAM
  std::vector<double> dram_requests;        ///< the sum of both
  std::vector<double> llc_miss_ratio;       ///< dram_requests / (read_misses + write_requests)
  std::vector<double> read_bytes;           ///< per request; 0: what the GPU's caches move at once
  std::vector<double> write_bytes;
  std::vector<double> dram_bytes;

  [[nodiscard]] std::size_t size() const { return instructions.size(); }
};

/// Where the misses of a warp's accesses come from.
enum class MissSource : std::uint8_t {
  per_instruction,  ///< mean over all warps of the instruction's active executions
  observed_warp,    ///< the warp's own accesses, in MemoryProfile::observed
};

struct IntervalOptions {
  double issue_rate = 1;
  /// Stalls of at most this many cycles do not end an interval; they add to its stall cycles.
  double merge_threshold = 0;
  MissSource miss_source = MissSource::per_instruction;
  /// Bytes of a request when L1 (L2) fills whole lines; 0: as the memory stage counted its sectors.
  double l1_unit_bytes = 0;
  double l2_unit_bytes = 0;
  gpu::WarpWaits waits{};
};

/// The interval algorithm (GPUMech, Section III-B, Eq. 4): issue(k+1) = max(issue(k) + 1/r, done +
/// 1 over the producers of k+1's sources), done = issue + latency; an interval ends where
/// issue(k+1) is later than issue(k) + 1/r by more than rounding. Instructions without an active
/// lane issue but write no register. Where instructions have control fields, ControlClock says when
/// they may issue, instead of registers; of groups of asynchronous copies it does so beside them.
IntervalColumns build_intervals(const trace::KernelTrace& trace, trace::WarpPosition warp,
                                const Latencies& latencies, const memory::MemoryProfile& memory,
                                const IntervalOptions& options);

}  // namespace warpstack::interval
