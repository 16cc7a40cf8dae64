#pragma once

#include <cstdint>

#include "common/enum_names.h"

namespace warpstack::gpu {

/// In which order a warp scheduler offers its warps the issue slots. The analytical models take
/// `oldest` and `gty` for `gto`.
enum class Scheduler : std::uint8_t {
  gto,     ///< the warp that issued last, then from the oldest on
  lrr,     ///< from the warp after the one that issued last on, in order of age
  oldest,  ///< from the oldest on
  gty,     ///< the warp that issued last, then from the youngest on
};
constexpr auto names_of(Scheduler) {
  return enum_names("scheduler", "gto", "lrr", "oldest", "gty");
}

/// What a store does to lower levels.
enum class WritePolicy : std::uint8_t { write_through, write_back };
constexpr auto names_of(WritePolicy) {
  return enum_names("write policy", "write_through", "write_back");
}

/// What a store that misses does.
enum class WriteMiss : std::uint8_t {
  no_allocate,             ///< the write goes on to the next level
  fetch_on_write,          ///< allocate and read the written sectors from the next level
  write_validate,          ///< allocate and remember which bytes are valid
  fetch_on_partial_write,  ///< as fetch_on_write, except for fill units that are written as a whole
  write_and_fetch,         ///< the write goes on to the next level, from which its sectors are read
};
constexpr auto names_of(WriteMiss) {
  return enum_names("write-miss policy", "no_allocate", "fetch_on_write", "write_validate",
                    "fetch_on_partial_write", "write_and_fetch");
}

/// When a line that missed takes its place.
enum class Allocation : std::uint8_t {
  on_miss,  ///< at once
  on_fill,  ///< when its data arrive: after all lines of the instruction have been looked up
};
constexpr auto names_of(Allocation) { return enum_names("allocation", "on_miss", "on_fill"); }

/// Which line makes room. Further values are policies from outside the core (own_policies.h).
enum class Replacement : std::uint16_t {
  lru,   ///< the least recently used line
  fifo,  ///< the oldest line
  plru,  ///< tree pseudo-LRU: each node of a binary tree over the ways points away from the last
         ///< use
};
constexpr auto names_of(Replacement) {
  return enum_names("replacement policy", "lru", "fifo", "plru");
}

/// How line numbers spread over sets, or chunks of the address space over slices.
enum class Indexing : std::uint8_t {
  modulo,
  xor_hash,  ///< the bits above the index are folded onto it by exclusive or
  ipoly,     ///< remainder of the division by an irreducible polynomial over GF(2) (Rau, ISCA 1991)
             ///< of the factor that is a power of two, beside the number above it modulo the other
  scatter,   ///< as if by chance: sets are used unequally
};
constexpr auto names_of(Indexing) {
  return enum_names("indexing", "modulo", "xor", "ipoly", "scatter");
}

/// Whether loads of global memory go through L1.
enum class GlobalLoads : std::uint8_t { cached, bypassed };
constexpr auto names_of(GlobalLoads) {
  return enum_names("way of global loads", "cached", "bypassed");
}

/// What an adaptive L1 keeps of its geometry when its size changes.
enum class AdaptiveL1 : std::uint8_t { sets, ways };
constexpr auto names_of(AdaptiveL1) {
  return enum_names("part that an adaptive L1 keeps", "sets", "ways");
}

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

/// What limits the packets between SMs and L2.
enum class NocTopology : std::uint8_t {
  shared,    ///< one bandwidth for all of a direction
  crossbar,  ///< the ports of SMs and slices alone
};
constexpr auto names_of(NocTopology) { return enum_names("topology", "shared", "crossbar"); }

/// How long an atomic stops its warp.
enum class AtomicWait : std::uint8_t {
  for_data,    ///< until its result is there, where an instruction needs it
  until_done,  ///< the warp issues nothing until it is done
};
constexpr auto names_of(AtomicWait) {
  return enum_names("wait for atomics", "for_data", "until_done");
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
  /// Its SM knows that L2 has its last store: blocks make room before, the launch does not end.
  last_acknowledgement,
};
constexpr auto names_of(KernelEnd) {
  return enum_names("end of a kernel", "last_store", "last_warp", "last_transfer",
                    "last_acknowledgement");
}

/// What the latency of an instruction counts to.
enum class LatencyCounts : std::uint8_t {
  execution,       ///< its result, a cycle after which one that needs it issues (GPUMech, Eq. 4)
  issue_to_issue,  ///< the issue of the one that needs it
};
constexpr auto names_of(LatencyCounts) {
  return enum_names("end of a latency", "execution", "issue_to_issue");
}

}  // namespace warpstack::gpu
