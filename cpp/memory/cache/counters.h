#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace warpstack::memory {

/// Where the slowest request of an instruction was served (GPUMech, Section V-B).
enum class MissEvent : std::uint8_t { l1_hit, l2_hit, dram };
inline constexpr std::size_t num_miss_events = 3;

/// Counters of one static instruction over all warps. A *request* is what an instruction asks of
/// one L1 line; it leaves the SM when one of its sectors misses, when it writes through, or when
/// the instruction bypasses L1. A line that a write-back L1 writes back is a request of the
/// instruction that wrote to it last.
struct InstructionCounters {
  std::uint64_t executions = 0;          ///< issued warp instructions
  std::uint64_t active_executions = 0;   ///< of these, with at least one active lane
  std::uint64_t sectors = 0;             ///< touched 32-byte sectors
  std::uint64_t requests = 0;            ///< touched L1 lines
  std::uint64_t l2_requests = 0;         ///< requests that left the SM
  std::uint64_t l2_request_sectors = 0;  ///< sectors that these moved between SM and L2
  std::uint64_t dram_requests = 0;       ///< requests with a sector that missed in L2
  std::uint64_t dram_sectors = 0;        ///< sectors that these moved between L2 and DRAM
  std::uint64_t shared_wavefronts = 0;   ///< passes through shared memory
  std::uint64_t l1_passes = 0;           ///< of loads and stores over the banks of L1
  std::array<std::uint64_t, num_miss_events> events{};  ///< active executions by the slowest answer
  /// Waits of warps for data of this load or atomic, by the level that the last of the data came
  /// from, and their cycles on the reference machine: at most the latency of that level, less if
  /// the line was already on its way. Only the timed order fills these in.
  std::array<std::uint64_t, num_miss_events> waits{};
  std::array<std::uint64_t, num_miss_events> wait_cycles{};
  /// Of these, those of warps that go back (Progress).
  std::uint64_t repeats = 0;
  std::array<std::uint64_t, num_miss_events> repeat_cycles{};

  InstructionCounters& operator+=(const InstructionCounters& other);
};

}  // namespace warpstack::memory
