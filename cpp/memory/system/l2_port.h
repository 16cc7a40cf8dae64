#pragma once

#include <cstdint>

#include "memory/cache/cache.h"
#include "memory/cache/count.h"
#include "memory/cache/request.h"

namespace warpstack::memory {

/// L2 and DRAM as one thread serves them: the requests for a range of sets.
class L2Port {
 public:
  L2Port(Cache& cache, MemoryTotals& totals) : cache_(cache), totals_(totals) {}

  Outcome serve(const Request& request, const ByteMasks& bytes) {
    switch (request.kind) {
      case Request::Kind::read:
        return read(request);
      case Request::Kind::atomic:
        return read_modify_write(request, bytes);
      case Request::Kind::write:
      case Request::Kind::write_back:
        break;
    }
    return write(request, bytes);
  }

 private:
  static constexpr std::uint32_t no_writer = 0;  // L2's write-backs are counted for no row

  [[gnu::always_inline]] Outcome read(const Request& request) {
    Cache::Eviction eviction;
    const Cache::ReadResult result =
        cache_.read(request.set, request.line, request.mask, request.evict_first, eviction);
    count_l2_read(totals_, request.mask, result.hit);
    settle(result.fetch, eviction);
    return outcome(result.hit != request.mask, result.fetch, result.fetch);
  }

  Outcome write(const Request& request, const ByteMasks& bytes) {
    Cache::Eviction eviction;
    const Cache::WriteResult result = cache_.write(request.set, request.line, request.mask, bytes,
                                                   no_writer, request.evict_first, eviction);
    count_l2_write(totals_, request.mask, result.hit);
    totals_[Total::dram_write_sectors] += count_sectors(result.forward);
    settle(result.fetch, eviction);
    return outcome(
        result.hit != request.mask, result.fetch | result.forward,
        result.fetch ? result.fetch : static_cast<SectorMask>(request.mask & ~result.hit));
  }

  /// Atomics read the old value, so a miss always fetches.
  Outcome read_modify_write(const Request& request, const ByteMasks& bytes) {
    Cache::Eviction eviction;
    const Cache::ReadResult read =
        cache_.read(request.set, request.line, request.mask, request.evict_first, eviction);
    const Cache::WriteResult write = cache_.write(request.set, request.line, request.mask, bytes,
                                                  no_writer, request.evict_first, eviction);
    count_l2_atomic(totals_, request.mask, read.hit);
    totals_[Total::dram_write_sectors] += count_sectors(write.forward);
    settle(read.fetch, eviction);
    return outcome(read.hit != request.mask, read.fetch, read.fetch);
  }

  void settle(SectorMask fetch, const Cache::Eviction& eviction) {
    count_dram(totals_, fetch, eviction.dirty);
  }
  static Outcome outcome(bool missed, bool asks_dram, SectorMask moved) {
    return {missed, asks_dram, false, static_cast<std::uint8_t>(count_sectors(moved) & 63)};
  }

  Cache& cache_;
  MemoryTotals& totals_;
};

}  // namespace warpstack::memory
