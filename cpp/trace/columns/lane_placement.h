#pragma once

#include <cstdint>
#include <span>

#include "trace/columns/atomic_lanes.h"
#include "trace/instructions/coalescing.h"

namespace warpstack::trace {

// A trace keeps the sectors that a warp instruction touches, not its lanes' addresses. For formats
// with an address per lane, these functions find addresses of the active lanes that coalesce() and
// the like turn into exactly what the trace has. Each returns false if it finds none.

/// Addresses of the lanes in `mask`, `width` bytes each, that touch `sectors` in this order of
/// first touch and, when `store_bytes` is not empty, write exactly these bytes of them. If there
/// are any, they are always found for a load, and for a store or atomic whose lanes are aligned to
/// their width. A misaligned store, which no GPU executes, may find none. For an atomic, each
/// sector and its first word have as many lanes as `atomics` says; a misaligned one may differ.
/// Lanes of an aligned load take `passes` passes over the banks of L1 if any lanes do that (0:
/// any); those of stores of more than 4 bytes may take others.
bool place_lanes(std::uint32_t mask, std::uint32_t width, std::span<const std::uint64_t> sectors,
                 std::span<const std::uint32_t> store_bytes, LaneAddresses& lanes,
                 std::span<const AtomicLanes> atomics = {}, std::uint32_t passes = 0);

/// The same for local memory: private offsets that coalesce_local() maps to `sectors` of warp
/// `warp`.
bool place_local_lanes(std::uint32_t mask, std::uint32_t width, std::uint64_t warp,
                       std::span<const std::uint64_t> sectors,
                       std::span<const std::uint32_t> store_bytes, LaneAddresses& lanes);

/// Offsets in shared memory that need `wavefronts` wavefronts: consecutive without conflicts, in
/// pairs if that takes too many, and with as many lanes on one bank as needed, in one word if lanes
/// of a word take turns.
bool place_shared_lanes(std::uint32_t mask, std::uint32_t width, std::uint32_t wavefronts,
                        LaneAddresses& lanes, SharedAccess access = SharedAccess::other);

/// First bytes of the windows through which generic addresses reach shared and local memory.
struct GenericWindows {
  std::uint64_t shared = 0;
  std::uint64_t local = 0;
};

/// Generic addresses of lanes in several spaces: global ones for the sectors below the local
/// region, addresses in the local window for those in it, and addresses in the shared window for
/// remaining lanes if only one of these is there.
bool place_generic_lanes(std::uint32_t mask, std::uint32_t width, std::uint64_t warp,
                         const GenericWindows& windows, std::span<const std::uint64_t> sectors,
                         std::span<const std::uint32_t> store_bytes, LaneAddresses& lanes,
                         std::span<const AtomicLanes> atomics = {});

}  // namespace warpstack::trace
