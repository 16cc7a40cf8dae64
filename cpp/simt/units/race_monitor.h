#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/state/race_check.h"
#include "trace/instructions/coalescing.h"

namespace warpstack::simt {

/// Tells the race check what a launch does, and reports the races that it finds.
class RaceMonitor {
 public:
  RaceMonitor(Execution& execution, Faults& faults)
      : execution_(execution),
        program_(execution.program),
        options_(execution.options),
        memory_(execution.device.memory),
        block_(execution.block),
        faults_(faults) {}

  /// Whether the launch checks for races.
  [[nodiscard]] bool is_on() const { return block_.races != nullptr; }
  /// Keeps what a store is about to overwrite.
  void keep_bytes(AddressSpace space, const LaneAddresses& lanes, std::uint32_t bytes);
  /// Finds the bytes that the store has changed.
  void find_changes(AddressSpace space, const LaneAddresses& lanes, std::uint32_t bytes);
  /// Notes a warp's load, store or atomic, and reports its races. For a store, find_changes() must
  /// have been called.
  void check(const Warp& warp, const Step& step, AddressSpace space, const LaneAddresses& lanes,
             std::uint32_t bytes, RaceKind kind, const MemoryAccess* access = nullptr);
  /// The same for a lane's copy or product, done by an actor of RaceCheck.
  void check_async(const Warp& warp, const Step& step, AddressSpace space, std::uint32_t lane,
                   std::uint64_t address, std::uint32_t bytes, RaceKind kind, std::uint32_t actor);
  /// The offset of an address in the block's own shared memory. Empty for that of another block,
  /// which the check does not follow.
  [[nodiscard]] std::optional<std::uint64_t> own_offset(std::uint64_t shared_address) const;
  /// RaceCheck, for asynchronous operations.
  [[nodiscard]] RaceCheck& actors() { return *block_.races; }

 private:
  /// Host address of bytes that a store may change, or null.
  const std::byte* peek(AddressSpace space, std::uint64_t address, std::uint32_t bytes);
  /// Describes a lane's access at a step for RaceCheck.
  RaceAccess access_of(const Warp& warp, const Step& step, std::uint32_t lane, std::uint32_t bytes,
                       RaceKind kind);
  std::uint32_t first_site(const ProgramFunction& function) const;
  /// "warps 1 and 0", "warp 1 and a bulk copy"
  [[nodiscard]] std::string pair_text(std::uint32_t later, std::uint32_t earlier) const;
  const SourceInstruction& text_of_site(std::uint32_t site) const;
  void report_race(const Warp& warp, const Step& step, const RaceAccess& later,
                   const Race& earlier);

  Execution& execution_;
  const KernelProgram& program_;
  const LaunchOptions& options_;
  DeviceMemory& memory_;
  Block& block_;
  Faults& faults_;
  std::set<std::pair<const SourceInstruction*, const SourceInstruction*>> pairs_;  ///< noted
  std::array<std::array<std::byte, 32>, warp_size> kept_{};  ///< what a store overwrites
  std::array<std::uint32_t, warp_size> changes_{};           ///< which bytes of it differ now
};

}  // namespace warpstack::simt
