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
  std::uint32_t writer;  ///< write-back: the row that it is counted for; atomic: its row
  std::uint32_t bytes;   ///< position of the byte masks of a write
  SectorMask mask;
  std::uint8_t owner;  ///< the thread that serves the set
  Kind kind;
  bool continues : 1;    ///< part of the same L1 line as the request before it
  bool evict_first : 1;  ///< L2 shall replace the line next
  bool is_awaited : 1;   ///< timed order: a warp waits for it
};

/// Requests of an SM for which room is made at once: a short launch would spend much of its time on
/// growing vectors.
inline constexpr std::size_t usual_requests = 64;

/// What L2 says about a request.
struct Outcome {
  bool missed : 1;                  ///< a sector was not in L2
  bool asks_dram : 1;               ///< L2 answers it when DRAM is done
  bool waits_for_dram : 1 = false;  ///< timed order: its sectors are still on their way from there
  std::uint8_t dram_sectors : 6;    ///< fetched; for a write miss without a fetch: written
};

}  // namespace warpstack::memory
