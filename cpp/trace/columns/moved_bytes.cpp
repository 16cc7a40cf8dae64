#include "trace/columns/moved_bytes.h"

#include <algorithm>
#include <cstddef>

#include "trace/instructions/coalescing.h"

namespace warpstack::trace {

std::uint32_t coalesce(std::span<const MovedBytes> moved, std::vector<std::uint64_t>& sectors,
                       std::vector<std::uint32_t>* store_bytes) {
  constexpr std::size_t most = 0xffff;  // what an access's count can hold
  std::vector<MovedBytes> ranges(moved.begin(), moved.end());
  std::ranges::sort(ranges, {}, &MovedBytes::address);
  const std::size_t first = sectors.size();
  for (const MovedBytes& range : ranges) {
    const std::uint64_t end = range.address + range.bytes;
    for (std::uint64_t at = range.address; at < end;) {
      const std::uint64_t sector = at / sector_bytes;
      const std::uint64_t next = std::min(end, (sector + 1) * sector_bytes);
      if (sectors.size() == first || sectors.back() != sector) {
        if (sectors.size() - first == most) return most;
        sectors.push_back(sector);
        if (store_bytes != nullptr) store_bytes->push_back(0);
      }
      if (store_bytes != nullptr) {
        store_bytes->back() |= static_cast<std::uint32_t>(((std::uint64_t{1} << (next - at)) - 1)
                                                          << at % sector_bytes);
      }
      at = next;
    }
  }
  return static_cast<std::uint32_t>(sectors.size() - first);
}

}  // namespace warpstack::trace
