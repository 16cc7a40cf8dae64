#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/cache/cache.h"

namespace warpstack::memory {

/// What an SM asks of one L2 line.
struct Request {
  enum class Kind : std::uint8_t { read, write, atomic, write_back };

  std::uint64_t line;    ///< of L2
  std::uint32_t set;     ///< of L2
  std::uint32_t writer;  ///< of a write-back: the row that it counts for; of an atomic: its row
  std::uint32_t bytes;   ///< position of the byte masks of a write
  SectorMask mask;
  std::uint8_t owner;  ///< the thread that has the set
  Kind kind;
  bool continues : 1;    ///< belongs to the L1 line of the request before it
  bool evict_first : 1;  ///< L2 shall replace the line next
  bool is_awaited : 1;   ///< in the timed order, by a warp
};

/// Room for so many requests of an SM is made at once, because a short launch would spend much of
/// its time on growing.
inline constexpr std::size_t usual_requests = 64;

/// What L2 says about a request.
struct Outcome {
  bool missed : 1;                ///< a sector was not in L2
  bool asks_dram : 1;             ///< L2 answers it when DRAM is done
  std::uint8_t dram_sectors : 6;  ///< fetched, or for a write miss without a fetch, written
};

}  // namespace warpstack::memory
