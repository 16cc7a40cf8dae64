#include "simt/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "common/error.h"
#include "common/text.h"

namespace warpstack::simt {
namespace {

constexpr std::uint64_t granularity = 256;

std::string name_of(const Allocation& allocation) {
  const std::string size = std::to_string(allocation.bytes) + "-byte ";
  const std::string place = " at " + hexadecimal(allocation.address);
  return allocation.name.empty() ? size + "allocation" + place
                                 : size + "variable " + allocation.name + place;
}

std::uint64_t rounded_up(std::uint64_t bytes) {
  return (std::max<std::uint64_t>(bytes, 1) + granularity - 1) / granularity * granularity;
}

}  // namespace

DeviceMemory::DeviceMemory(std::uint64_t capacity) : capacity_(rounded_up(capacity)) {
  // At the device's own base where that is free, so that a device address is a host address too.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto* const wanted = reinterpret_cast<void*>(device_base);
  void* arena = nullptr;
#ifdef MAP_FIXED_NOREPLACE
  arena = map_lazily(capacity_, wanted, MAP_FIXED_NOREPLACE);
  if (arena != nullptr && arena != wanted) {  // a kernel that does not know the flag
    munmap(arena, capacity_);
    arena = nullptr;
  }
#endif
  if (arena == nullptr) arena = map_lazily(capacity_);
  if (arena == nullptr) throw std::bad_alloc();
  arena_ = static_cast<std::byte*>(arena);
  free_.emplace(device_base, capacity_);
}

DeviceMemory::~DeviceMemory() { munmap(arena_, capacity_); }

std::uint64_t DeviceMemory::allocate(std::uint64_t bytes, std::string name) {
  if (bytes <= capacity_) {
    const std::uint64_t needed = rounded_up(bytes);
    for (auto range = free_.begin(); range != free_.end(); ++range) {
      if (range->second < needed) continue;
      const auto [address, size] = *range;
      Allocation allocation{.address = address,
                            .bytes = bytes,
                            .name = std::move(name),
                            .written = lazy_bytes(bytes)};
      free_.erase(range);
      if (size > needed) free_.emplace(address + needed, size - needed);
      allocations_.emplace(address, std::move(allocation));
      used_ += needed;
      return address;
    }
  }
  std::uint64_t largest = 0;
  for (const auto& [address, size] : free_) largest = std::max(largest, size);
  throw InputError("the simulated device has no room for " + std::to_string(bytes) + " bytes: " +
                   std::to_string(capacity_ - used_) + " of " + std::to_string(capacity_) +
                   " bytes are free, the largest piece has " + std::to_string(largest));
}

void DeviceMemory::free(std::uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) {
    throw InputError("no allocation of the simulated device starts at " + hexadecimal(address) +
                     "; it may have been freed already");
  }
  const std::uint64_t size = rounded_up(found->second.bytes);
  allocations_.erase(found);
  used_ -= size;
  // Whole pages go back to the system.
  constexpr std::uint64_t page = 4096;
  const std::uint64_t first = (address + page - 1) / page * page;
  const std::uint64_t last = (address + size) / page * page;
  if (last > first) madvise(data(first), last - first, MADV_DONTNEED);
  auto range = free_.emplace(address, size).first;
  if (const auto next = std::next(range);
      next != free_.end() && range->first + range->second == next->first) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range != free_.begin()) {
    const auto previous = std::prev(range);
    if (previous->first + previous->second == range->first) {
      previous->second += range->second;
      free_.erase(range);
    }
  }
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

bool DeviceMemory::is_mapped(std::uint64_t address) const {
  constexpr std::uint64_t page = std::uint64_t{2} << 20;
  const std::uint64_t first = address / page * page;
  // The last allocation that begins in the page or before it.
  const auto next = allocations_.upper_bound(first + (page - 1));
  if (next == allocations_.begin()) return false;
  const Allocation& candidate = std::prev(next)->second;
  return candidate.address + std::max<std::uint64_t>(candidate.bytes, 1) > first;
}

std::string DeviceMemory::describe(std::uint64_t address) const {
  const auto next = allocations_.upper_bound(address);
  if (next != allocations_.begin()) {
    const Allocation& before = std::prev(next)->second;
    const std::uint64_t offset = address - before.address;
    if (offset < before.bytes) {
      return std::to_string(offset) + " bytes into the " + name_of(before);
    }
    const std::uint64_t past = offset - before.bytes;
    const bool nearer = next == allocations_.end() || past <= next->first - address;
    if (nearer && past < (std::uint64_t{1} << 30)) {
      return std::to_string(past) + " bytes past the end of the " + name_of(before);
    }
  }
  if (next != allocations_.end() && next->first - address < (std::uint64_t{1} << 30)) {
    return std::to_string(next->first - address) + " bytes before the " + name_of(next->second);
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
