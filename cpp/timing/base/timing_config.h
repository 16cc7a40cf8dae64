#pragma once

#include <array>
#include <cstdint>

#include "common/cpi_stack.h"
#include "common/enum_names.h"
#include "gpu/latencies.h"
#include "gpu/scheduler.h"
#include "memory/order/memory_config.h"
#include "timing/base/clock.h"
#include "trace/instructions/opcode.h"

namespace warpstack::timing {

/// Where in L1 a request spends the latency of a hit.
enum class L1Latency : std::uint8_t {
  after_tags,   ///< data of a hit come later than the look-up
  before_tags,  ///< requests wait in a pipeline for their look-up, which blocks those behind it
};
constexpr auto names_of(L1Latency) {
  return enum_names("place of the latency of L1", "after_tags", "before_tags");
}

/// Whether a line whose data are on their way can make room for another one.
enum class LinesUnderWay : std::uint8_t { replaceable, reserved };
constexpr auto names_of(LinesUnderWay) {
  return enum_names("lines under way", "replaceable", "reserved");
}

/// What lanes of an atomic that address one word cost.
enum class AtomicRequests : std::uint8_t {
  per_line,  ///< nothing: one request for all lanes of a line
  per_lane,  ///< a request for each of them; those of different words of a sector share it
};
constexpr auto names_of(AtomicRequests) {
  return enum_names("requests of atomics", "per_line", "per_lane");
}

/// Whether a warp is done before L2 or DRAM has its stores.
enum class StoreAcknowledgement : std::uint8_t { none, awaited };
constexpr auto names_of(StoreAcknowledgement) {
  return enum_names("acknowledgement of stores", "none", "awaited");
}

/// When a kernel ends.
enum class KernelEnd : std::uint8_t {
  last_store,     ///< the last warp is done, and L2 has its last store
  last_warp,      ///< the last warp is done
  last_transfer,  ///< and DRAM has nothing left to transfer
};
constexpr auto names_of(KernelEnd) {
  return enum_names("end of a kernel", "last_store", "last_warp", "last_transfer");
}

/// Timing of DRAM, in cycles of its clock; what JEDEC's standards and data sheets call tRCD and so
/// on.
struct DramTiming {
  std::uint32_t burst_bytes = 32;  ///< of one column command
  std::uint32_t bank_groups = 1;
  std::uint32_t ccd = 1;               ///< between column commands, at the full bandwidth
  std::uint32_t ccd_group = 1;         ///< between those of one bank group (tCCDL)
  std::uint32_t rrd = 0;               ///< between activations of two banks
  std::uint32_t rcd = 0;               ///< from the activation of a row to its first column command
  std::uint32_t ras = 0;               ///< from an activation to the precharge
  std::uint32_t rp = 0;                ///< from a precharge to the next activation of the bank
  std::uint32_t rtp = 0;               ///< from a read to the precharge
  std::uint32_t read_latency = 0;      ///< CL
  std::uint32_t write_latency = 0;     ///< WL
  std::uint32_t wtr = 0;               ///< from the end of a write to a read (tCDLR)
  std::uint32_t wr = 0;                ///< from the end of a write to the precharge
  std::uint32_t refresh_interval = 0;  ///< tREFI; 0: no refresh
  std::uint32_t refresh = 0;           ///< tRFC: how long it takes
};

/// What the cycle-level simulator needs to know of a GPU. Latencies are in SM cycles;
/// docs/explanation/timing.md says what each field does.
struct TimingConfig {
  memory::MemoryConfig memory;  ///< SMs and caches; its block order is not used

  double clock_ghz = 1;
  double l2_clock_ghz = 0;    ///< of the NoC and L2; 0: the SM clock
  double dram_clock_ghz = 0;  ///< 0: the clock of L2

  double block_interval_cycles = 0;     ///< between the starts of two blocks on the whole GPU
  double block_replacement_cycles = 0;  ///< from a block's end to the start of one in its place
  double warp_start_cycles = 0;         ///< between the starts of two warps on an SM

  gpu::Scheduler scheduler = gpu::Scheduler::gto;
  double issue_width = 1;  ///< warp instructions per cycle and SM
  std::uint32_t schedulers_per_sm = 1;
  gpu::ClassLatencies latency;
  std::array<std::uint32_t, trace::num_op_classes> interval{};  ///< cycles; 0: no limit
  std::uint32_t lsu_queue_entries = 2;
  AtomicRequests atomic_requests = AtomicRequests::per_line;
  StoreAcknowledgement store_acknowledgement = StoreAcknowledgement::none;
  KernelEnd kernel_end = KernelEnd::last_store;

  double l1_latency = 0;
  L1Latency l1_latency_place = L1Latency::after_tags;
  LinesUnderWay lines_under_way = LinesUnderWay::replaceable;
  std::uint32_t l1_mshrs = 1;  ///< 0: as many as needed
  std::uint32_t l1_mshr_targets = 1;
  std::uint32_t noc_queue_entries = 1;  ///< of each SM

  double noc_bandwidth_gbs = 1;
  double noc_sm_bytes_per_cycle = 0;  ///< of the NoC clock, each way; 0: no limit
  std::uint32_t noc_control_bytes = 0;

  double l2_latency = 0;
  std::uint32_t l2_mshrs = 1;  ///< of each slice
  std::uint32_t l2_mshr_targets = 1;
  std::uint32_t l2_queue_entries = 1;  ///< of each slice, for requests and for replies

  double l2_slice_request_cycles = 1;   ///< of the L2 clock, at least, for each request
  double l2_slice_bytes_per_cycle = 0;  ///< of hits and evictions; 0: no limit
  double l2_atomic_lane_turns = 0;  ///< l2_slice_request_cycles for each lane of an atomic; 0: one

  double dram_latency = 0;
  double dram_bandwidth_gbs = 1;
  std::uint32_t dram_channels = 1;
  std::uint32_t dram_queue_entries = 1;  ///< of each channel
  std::uint32_t dram_row_bytes = 0;      ///< 0: every access takes the same time
  std::uint32_t dram_banks = 1;          ///< of each channel
  /// Banks that take turns with lines, in one another's neighbourhood; each has rows of its own.
  std::uint32_t dram_interleaved_banks = 1;
  std::uint32_t dram_bank_interleave_bytes = 128;
  DramTiming dram_timing;

  /// Throws InputError on impossible values.
  void validate() const;

  [[nodiscard]] Clock l2_clock() const {
    return Clock(l2_clock_ghz == 0 ? ticks_per_cycle : to_ticks(clock_ghz / l2_clock_ghz));
  }
  [[nodiscard]] Clock dram_clock() const {
    return dram_clock_ghz == 0 ? l2_clock() : Clock(to_ticks(clock_ghz / dram_clock_ghz));
  }
  /// Time that `bytes` take at a rate.
  [[nodiscard]] Ticks transfer_time(double bytes, double gigabytes_per_second) const {
    return to_ticks(bytes * clock_ghz / gigabytes_per_second);
  }
};

/// Lost issue slots are counted in parts, so that several warps can share one.
inline constexpr std::int64_t parts_per_slot = std::int64_t{1} << 20;

/// Adds `amount` to a stack in proportion to `shares`, whose sum is positive, in whole numbers; the
/// largest share, the first of several, takes what rounding leaves.
void add_in_proportion(CpiStack<std::int64_t>& stack, std::int64_t amount,
                       const CpiStack<std::int64_t>& shares);

}  // namespace warpstack::timing
