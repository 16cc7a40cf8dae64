#pragma once

#include <cstddef>

#include "simt/state/execution.h"
#include "simt/state/recorder.h"
#include "simt/units/address_spaces.h"
#include "simt/units/race_monitor.h"
#include "trace/instructions/coalescing.h"

namespace warpstack::simt {

/// The addresses of the lanes of `mask` in a slot plus an offset; without a slot, the offset.
void read_addresses(const std::byte* registers, std::uint32_t slot, bool is_64_bits,
                    std::int64_t offset, std::uint32_t mask, LaneAddresses& lanes);

/// The same for an access, which may have the upper words of its addresses in another slot.
void read_addresses(const std::byte* registers, const MemoryAccess& access, std::uint32_t mask,
                    LaneAddresses& lanes);

/// isspacep
void query_address(const Execution& execution, const Step& step, std::byte* registers,
                   std::uint32_t mask);

/// Loads, stores, atomics and asynchronous copies.
class LoadStore {
 public:
  LoadStore(Execution& execution, Recorder& recorder, AddressSpaces& spaces, RaceMonitor& races)
      : execution_(execution),
        program_(execution.program),
        recorder_(recorder),
        spaces_(spaces),
        races_(races) {}

  void access(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);

 private:
  /// Makes accesses to other blocks' shared memory, for the trace, accesses to the block's own.
  void fold_cluster(LaneAddresses& lanes) const;
  /// The host memory for all lanes of a load or store, if a single range will do. If their bytes
  /// have moved, their addresses are in `places_`.
  HostRange range_of(Warp& warp, const Step& step, const MemoryAccess& access, std::uint32_t bytes,
                     bool is_load);
  void update(Warp& warp, const Step& step, const MemoryAccess& access, std::byte* registers,
              const LaneAddresses& lanes);
  /// A count to which blocks that do not run have added as often as those that do: as each stands
  /// for several, the others come before it. A queue of work then gives each its share, and who is
  /// the last to come finds that out.
  std::uint64_t with_others(const MemoryAccess& access, std::uint64_t count, std::uint64_t step);
  void copy_async(Warp& warp, const Step& step, const MemoryAccess& access, std::byte* registers,
                  const LaneAddresses& to);
  /// Copies for all lanes if a single range of host memory holds what they read, another what they
  /// write, and each lane reads all of its bytes or none; else returns false. Lanes that read
  /// nothing leave the mask of `from`.
  bool copy_together(const Step& step, const MemoryAccess& access, const std::byte* registers,
                     const LaneAddresses& to, LaneAddresses& from);
  /// The same for any lanes, with checks of each.
  void copy_one_by_one(Warp& warp, const Step& step, const MemoryAccess& access,
                       const std::byte* registers, const LaneAddresses& to, LaneAddresses& from);

  Execution& execution_;
  const KernelProgram& program_;
  Recorder& recorder_;
  AddressSpaces& spaces_;
  RaceMonitor& races_;
  LaneAddresses addresses_;  ///< of the current access
  LaneAddresses places_;     ///< of its bytes, if they have moved
};

}  // namespace warpstack::simt
