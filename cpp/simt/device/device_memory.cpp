#include "simt/device/device_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <new>

#include "common/error.h"
#include "common/text.h"

namespace warpstack::simt {
namespace {

constexpr std::uint64_t granularity = 256;
/// Memory that a GPU maps at once.
constexpr std::uint64_t large_page = std::uint64_t{2} << 20;
/// Bytes of a gap, which are powers of two, and of all gaps together.
constexpr std::uint64_t least_gap = std::uint64_t{4} << 10;
constexpr std::uint64_t greatest_gap = std::uint64_t{32} << 20;
constexpr std::uint64_t all_gaps = std::uint64_t{3} << 30;

std::string name_of(const Allocation& allocation) {
  const std::string size = std::to_string(allocation.bytes) + "-byte ";
  const std::string place = " at " + hexadecimal(allocation.address);
  return allocation.name.empty() ? size + "allocation" + place
                                 : size + "variable " + allocation.name + place;
}

std::uint64_t rounded_up(std::uint64_t bytes) {
  return (std::max<std::uint64_t>(bytes, 1) + granularity - 1) / granularity * granularity;
}

/// Bytes of address space that this process may still reserve; all ones where no limit is set.
std::uint64_t addresses_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return ~std::uint64_t{0};
  }
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;  // the first number: all mapped pages
  const std::uint64_t taken = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<std::uint64_t>(taken, limit.rlim_cur);
}

/// Maps the arena at the device's own base if that is free, so that device addresses are host
/// addresses, too. Null when there is no address space left.
std::byte* map_arena(std::uint64_t bytes) {
#ifdef MAP_FIXED_NOREPLACE
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto* const wanted = reinterpret_cast<void*>(device_base);
  void* const there = map_lazily(bytes, wanted, MAP_FIXED_NOREPLACE);
  if (there == wanted) return static_cast<std::byte*>(there);
  if (there != nullptr) munmap(there, bytes);  // a kernel that does not know the flag
#endif
  return static_cast<std::byte*>(map_lazily(bytes));
}

}  // namespace

DeviceMemory::DeviceMemory(std::uint64_t capacity, AllocationLayout layout)
    : capacity_(rounded_up(capacity)), asked_(capacity_) {
  reserve(layout);
  free_.emplace(device_base, capacity_);
  gaps_ = gaps_left_ = span_ - capacity_;
  if (gaps_ > 0) room_.emplace(device_base, span_);
}

DeviceMemory::~DeviceMemory() { munmap(arena_, span_); }

void DeviceMemory::reserve(AllocationLayout layout) {
  const std::uint64_t most = addresses_left() / 2;  // the maps of written bytes need some, too
  span_ = capacity_ + (layout == AllocationLayout::apart ? all_gaps : 0);
  if (most < span_) span_ = std::max(most / granularity * granularity, granularity);
  while (arena_ == nullptr) {
    // If there is not enough for all, gaps take at most a quarter.
    const std::uint64_t gaps =
        layout == AllocationLayout::apart ? std::min(all_gaps, span_ / 4) : 0;
    capacity_ = std::min(capacity_, (span_ - gaps) / granularity * granularity);
    arena_ = map_arena(span_);
    if (arena_ != nullptr) return;
    if (span_ <= granularity) throw std::bad_alloc();
    span_ = std::max(span_ / 2 / granularity * granularity, granularity);
  }
}

std::uint64_t DeviceMemory::next_gap() const {
  // A sixteenth is kept for small gaps: there may be millions.
  const std::uint64_t kept = gaps_ / 16;
  if (gaps_left_ > kept) {
    return std::clamp(std::bit_floor((gaps_left_ - kept) / 64), least_gap, greatest_gap);
  }
  return gaps_left_ >= least_gap ? least_gap : 0;
}

void DeviceMemory::place(Allocation& allocation, std::uint64_t needed) {
  allocation.address = allocation.packed;
  if (gaps_ == 0) return;
  for (std::uint64_t gap = std::min(next_gap(), std::bit_floor(gaps_left_));;
       gap = gap > least_gap ? gap / 2 : 0) {
    const std::uint64_t unit = std::clamp(gap, granularity, large_page);
    for (auto range = room_.begin(); range != room_.end(); ++range) {
      const auto [begin, size] = *range;
      const std::uint64_t skipped = (allocation.packed - begin) % unit;  // units divide 2^64
      if (size < skipped || size - skipped < needed || size - skipped - needed < gap) continue;
      room_.erase(range);
      const std::uint64_t taken = skipped + needed + gap;
      if (skipped > 0) room_.emplace(begin, skipped);
      if (size > taken) room_.emplace(begin + taken, size - taken);
      allocation.address = begin + skipped;
      allocation.gap = gap;
      gaps_left_ -= gap;
      return;
    }
    if (gap == 0) break;
  }
  throw InputError("the simulated device has no room for " + std::to_string(allocation.bytes) +
                   " bytes in one piece: its memory is in pieces of many allocations");
}

std::uint64_t DeviceMemory::allocate(std::uint64_t bytes, std::string name) {
  if (bytes <= capacity_) {
    const std::uint64_t needed = rounded_up(bytes);
    for (auto range = free_.begin(); range != free_.end(); ++range) {
      if (range->second < needed) continue;
      const auto [address, size] = *range;
      Allocation allocation{
          .bytes = bytes, .name = std::move(name), .packed = address, .written = lazy_bytes(bytes)};
      place(allocation, needed);
      free_.erase(range);
      if (size > needed) free_.emplace(address + needed, size - needed);
      const std::uint64_t place = allocation.address;
      allocations_.emplace(place, std::move(allocation));
      used_ += needed;
      ++changes_;
      return place;
    }
  }
  std::uint64_t largest = 0;
  for (const auto& [address, size] : free_) largest = std::max(largest, size);
  throw InputError("the simulated device has no room for " + std::to_string(bytes) + " bytes: " +
                   std::to_string(capacity_ - used_) + " of " + std::to_string(capacity_) +
                   " bytes are free, the largest piece has " + std::to_string(largest) +
                   (capacity_ == asked_ ? ""
                                        : " (it has " + std::to_string(asked_) +
                                              " bytes where the limit on the address space of a "
                                              "process, ulimit -v, allows it)"));
}

void DeviceMemory::give_back(Ranges& ranges, std::uint64_t address, std::uint64_t bytes) {
  auto range = ranges.emplace(address, bytes).first;
  if (const auto next = std::next(range);
      next != ranges.end() && range->first + range->second == next->first) {
    range->second += next->second;
    ranges.erase(next);
  }
  if (range != ranges.begin()) {
    const auto previous = std::prev(range);
    if (previous->first + previous->second == range->first) {
      previous->second += range->second;
      ranges.erase(range);
    }
  }
}

void DeviceMemory::free(std::uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) {
    throw InputError("no allocation of the simulated device starts at " + hexadecimal(address) +
                     "; it may have been freed already");
  }
  const std::uint64_t size = rounded_up(found->second.bytes);
  const std::uint64_t packed = found->second.packed;
  const std::uint64_t gap = found->second.gap;
  allocations_.erase(found);
  used_ -= size;
  ++changes_;
  // Whole pages are returned to the system.
  constexpr std::uint64_t page = 4096;
  const std::uint64_t first = (address + page - 1) / page * page;
  const std::uint64_t last = (address + size) / page * page;
  if (last > first) madvise(data(first), last - first, MADV_DONTNEED);
  give_back(free_, packed, size);
  if (gaps_ == 0) return;
  gaps_left_ += gap;
  give_back(room_, address, size + gap);
}

Allocation* DeviceMemory::find(std::uint64_t address) {
  auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) return nullptr;
  Allocation& candidate = std::prev(next)->second;
  return address - candidate.address < std::max<std::uint64_t>(candidate.bytes, 1) ? &candidate
                                                                                   : nullptr;
}

const Allocation* DeviceMemory::find(std::uint64_t address) const {
  return const_cast<DeviceMemory*>(this)->find(address);
}

const Allocation* DeviceMemory::nearest(std::uint64_t address) const {
  const auto next = allocations_.upper_bound(address);
  const Allocation* const after = next == allocations_.end() ? nullptr : &next->second;
  if (next == allocations_.begin()) return after;
  const Allocation& before = std::prev(next)->second;
  const std::uint64_t offset = address - before.address;
  const bool is_nearer = after == nullptr || offset < before.bytes ||
                         offset - before.bytes <= after->address - address;
  return is_nearer ? &before : after;
}

std::uint64_t DeviceMemory::packed(std::uint64_t address) const {
  const Allocation* const owner = contains(address) ? nearest(address) : nullptr;
  return owner == nullptr ? address : address - owner->address + owner->packed;
}

bool DeviceMemory::is_mapped(std::uint64_t address) const {
  const std::uint64_t place = packed(address) - device_base;
  if (place >= capacity_) return false;
  const std::uint64_t first = device_base + place / large_page * large_page;
  const std::uint64_t last = std::min(first + large_page, device_base + capacity_);
  // Nothing is in use if one free range covers all of it.
  const auto next = free_.upper_bound(first);
  if (next == free_.begin()) return true;
  const auto& [begin, size] = *std::prev(next);
  return begin + size < last;
}

std::string DeviceMemory::describe(std::uint64_t address) const {
  constexpr std::uint64_t near = std::uint64_t{1} << 30;  // of an address outside the arena
  const Allocation* const allocation = nearest(address);
  if (allocation != nullptr) {
    const bool is_before = address < allocation->address;
    const std::uint64_t offset =
        is_before ? allocation->address - address : address - allocation->address;
    const std::string of = name_of(*allocation);
    if (!is_before && offset < allocation->bytes)
      return std::to_string(offset) + " bytes into the " + of;
    const std::uint64_t distance = is_before ? offset : offset - allocation->bytes;
    if (contains(address) || distance < near) {
      return std::to_string(distance) +
             (is_before ? " bytes before the " : " bytes past the end of the ") + of;
    }
  }
  return "far from every allocation";
}

Allocation& DeviceMemory::checked(std::uint64_t address, std::uint64_t bytes, const char* what) {
  Allocation* allocation = find(address);
  if (allocation == nullptr || bytes > allocation->bytes - (address - allocation->address)) {
    throw InputError(std::string("cannot ") + what + " " + std::to_string(bytes) + " bytes at " +
                     hexadecimal(address) + " of the simulated device: it is " + describe(address));
  }
  return *allocation;
}

void DeviceMemory::write(std::uint64_t address, const void* source, std::uint64_t bytes) {
  if (bytes == 0) return;
  mark(checked(address, bytes, "write"), address, bytes);
  std::memcpy(data(address), source, bytes);
}

void DeviceMemory::read(std::uint64_t address, void* target, std::uint64_t bytes) const {
  if (bytes == 0) return;
  const_cast<DeviceMemory*>(this)->checked(address, bytes, "read");
  std::memcpy(target, data(address), bytes);
}

void DeviceMemory::fill(std::uint64_t address, std::uint8_t value, std::uint64_t bytes) {
  if (bytes == 0) return;
  mark(checked(address, bytes, "fill"), address, bytes);
  if (value == 0) {
    zero_mapped(data(address), bytes);
  } else {
    std::memset(data(address), value, bytes);
  }
}

void DeviceMemory::copy(std::uint64_t target, std::uint64_t source, std::uint64_t bytes) {
  if (bytes == 0) return;
  const Allocation& from = checked(source, bytes, "copy from");
  Allocation& to = checked(target, bytes, "copy to");
  std::memmove(data(target), data(source), bytes);
  if (from.written == nullptr) {
    mark(to, target, bytes);
  } else if (to.written != nullptr) {
    std::memmove(to.written.get() + (target - to.address),
                 from.written.get() + (source - from.address), bytes);
  }
}

void DeviceMemory::mark(Allocation& allocation, std::uint64_t address, std::uint64_t bytes) {
  if (allocation.written == nullptr) return;
  if (bytes == allocation.bytes) {
    allocation.written.reset();
  } else {
    std::memset(allocation.written.get() + (address - allocation.address), 1, bytes);
  }
}

}  // namespace warpstack::simt
