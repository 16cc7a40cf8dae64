#include "trace/columns/atomic_lanes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>

#include "trace/instructions/coalescing.h"

namespace warpstack::trace {

void append_atomic_lanes(const LaneAddresses& lanes, std::span<const std::uint64_t> sectors,
                         std::vector<AtomicLanes>& result) {
  if (sectors.empty()) return;
  std::array<std::uint64_t, warp_size> addresses;
  std::size_t count = 0;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    addresses[count++] = lanes.address[std::countr_zero(rest)];
  }
  std::sort(addresses.begin(), addresses.begin() + count);
  const std::size_t first = result.size();
  // A lane across a border may touch a sector in which no lane begins.
  result.resize(first + sectors.size(), {.sector = 0, .word = 1});
  std::size_t i = 0;  // of the previous sector
  for (std::size_t begin = 0; begin < count;) {
    const std::uint64_t address = addresses[begin];
    std::size_t end = begin + 1;
    while (end < count && addresses[end] == address) ++end;
    const std::uint64_t sector = address / sector_bytes;
    if (sectors[i] != sector) {
      i = static_cast<std::size_t>(std::ranges::find(sectors, sector) - sectors.begin());
      if (i == sectors.size()) throw std::logic_error("an atomic's lane touches no sector of it");
    }
    AtomicLanes& found = result[first + i];
    const auto here = static_cast<std::uint8_t>(end - begin);
    found.sector = static_cast<std::uint8_t>(found.sector + here);
    found.word = std::max(found.word, here);
    begin = end;
  }
}

void append_even_lanes(std::uint32_t lanes, std::span<const std::uint32_t> store_bytes,
                       std::uint32_t width, std::vector<AtomicLanes>& result) {
  const auto words_of = [width](std::uint32_t mask) {
    const std::uint32_t size = std::max(width, 1u);
    return std::max((static_cast<std::uint32_t>(std::popcount(mask)) + size - 1) / size, 1u);
  };
  std::uint32_t words = 0;
  for (const std::uint32_t mask : store_bytes) words += words_of(mask);
  std::uint32_t word = 0;
  const auto first_lane = [&](std::uint32_t w) { return (w * lanes + words - 1) / words; };
  for (const std::uint32_t mask : store_bytes) {
    AtomicLanes found{.sector = 0, .word = 1};
    for (const std::uint32_t last = word + words_of(mask); word < last; ++word) {
      const auto here = static_cast<std::uint8_t>(first_lane(word + 1) - first_lane(word));
      found.sector = static_cast<std::uint8_t>(found.sector + here);
      found.word = std::max(found.word, here);
    }
    result.push_back(found);
  }
}

}  // namespace warpstack::trace
