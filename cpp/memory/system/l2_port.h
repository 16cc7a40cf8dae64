#pragma once

#include <cstdint>
#include <vector>

#include "memory/cache/cache.h"
#include "memory/cache/count.h"
#include "memory/cache/request.h"

namespace warpstack::memory {

/// L2 and DRAM as one thread serves them: the requests for a range of sets. `slice_dram_sectors`,
/// where given, counts what each slice of L2 moves from and to DRAM.
class L2Port {
 public:
  L2Port(Cache& cache, MemoryTotals& totals,
         std::vector<std::uint64_t>* slice_dram_sectors = nullptr)
      : cache_(cache), totals_(totals), slice_dram_sectors_(slice_dram_sectors) {}

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
    settle(request, result.fetch, eviction.dirty);
    return outcome(result.hit != request.mask, result.fetch, result.fetch);
  }

  Outcome write(const Request& request, const ByteMasks& bytes) {
    Cache::Eviction eviction;
    const Cache::WriteResult result = cache_.write(request.set, request.line, request.mask, bytes,
                                                   no_writer, request.evict_first, eviction);
    count_l2_write(totals_, request.mask, result.hit);
    settle(request, result.fetch, eviction.dirty);
    settle(request, 0, result.forward);
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
    settle(request, read.fetch, eviction.dirty);
    settle(request, 0, write.forward);
    return outcome(read.hit != request.mask, read.fetch, read.fetch);
  }

  void settle(const Request& request, SectorMask read, SectorMask written) {
    count_dram(totals_, read, written);
    if (slice_dram_sectors_ == nullptr || (read | written) == 0) return;
    (*slice_dram_sectors_)[cache_.slice_of(request.set)] +=
        count_sectors(read) + count_sectors(written);
  }
  static Outcome outcome(bool missed, bool asks_dram, SectorMask moved) {
    return {missed, asks_dram, false, static_cast<std::uint8_t>(count_sectors(moved) & 63)};
  }

  Cache& cache_;
  MemoryTotals& totals_;
  std::vector<std::uint64_t>* slice_dram_sectors_;
};

}  // namespace warpstack::memory
