#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/lazy_bytes.h"
#include "simt/program/address_space.h"

namespace warpstack::simt {

/// A piece of device memory that one allocation, variable or parameter buffer owns.
struct Allocation {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;   ///< as asked for; an access beyond is out of bounds
  std::string name;          ///< of a variable; empty for an allocation
  std::uint64_t packed = 0;  ///< its address if allocations lay back to back
  std::uint64_t gap = 0;     ///< unused bytes behind it
  /// One entry per byte, 0 until it is written; null once all bytes are known to be written.
  LazyBytes written;
};

/// How allocations are laid out.
enum class AllocationLayout : std::uint8_t {
  packed,  ///< back to back, as on a GPU
  apart    ///< with gaps, so that an access beyond one does not fall into the next
};

/// The memory of the simulated device: one arena with a fixed base, first-fit allocation, and
/// bounds. Device address a lies at host address data(a). It is not safe to use one from several
/// threads.
///
/// With gaps an allocation keeps the alignment, up to 2 MiB, that it has back to back. Gaps take
/// addresses but no memory. They have 32 MiB at first, and shrink to 4 KiB as their number grows.
class DeviceMemory {
 public:
  /// Reserves address space for `capacity` bytes and the gaps; pages are committed when touched. If
  /// the process may not reserve so much, first the gaps and then the capacity are reduced. Throws
  /// std::bad_alloc when it may reserve next to nothing.
  explicit DeviceMemory(std::uint64_t capacity, AllocationLayout layout = AllocationLayout::packed);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Allocates uninitialised memory at a multiple of 256 (as cudaMalloc does). 0 bytes are allowed
  /// and have an address of their own. Throws InputError, which says what is free, when there is no
  /// room.
  std::uint64_t allocate(std::uint64_t bytes, std::string name = {});
  /// Throws InputError when no allocation starts at `address`.
  void free(std::uint64_t address);
  /// Bytes in allocations, and the arena's size.
  [[nodiscard]] std::uint64_t used() const { return used_; }
  [[nodiscard]] std::uint64_t capacity() const { return capacity_; }
  /// Whether an address lies in the arena, inside or outside of allocations.
  [[nodiscard]] bool contains(std::uint64_t address) const {
    return address >= device_base && address - device_base < span_;
  }

  /// The address behind the last allocation.
  [[nodiscard]] std::uint64_t end() const {
    return allocations_.empty()
               ? device_base
               : allocations_.rbegin()->first + allocations_.rbegin()->second.bytes;
  }

  /// The allocation that holds `address`, or null.
  [[nodiscard]] Allocation* find(std::uint64_t address);
  [[nodiscard]] const Allocation* find(std::uint64_t address) const;
  /// Whether a GPU lets a kernel access `address`, that is, an allocation uses its page of 2 MiB.
  [[nodiscard]] bool is_mapped(std::uint64_t address) const;
  /// The address if allocations lay back to back; one between allocations belongs to the nearer
  /// one.
  [[nodiscard]] std::uint64_t packed(std::uint64_t address) const;
  /// Grows with every allocation and every free.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  /// "12 bytes past the end of the 400-byte allocation at 0x7000…", for messages.
  [[nodiscard]] std::string describe(std::uint64_t address) const;

  /// Copies in and out, within one allocation; they throw InputError beyond it.
  void write(std::uint64_t address, const void* source, std::uint64_t bytes);
  void read(std::uint64_t address, void* target, std::uint64_t bytes) const;
  void fill(std::uint64_t address, std::uint8_t value, std::uint64_t bytes);
  /// Bytes that were never written are not written in the copy, either.
  void copy(std::uint64_t target, std::uint64_t source, std::uint64_t bytes);

  /// Notes that bytes of an allocation have been written.
  static void mark(Allocation& allocation, std::uint64_t address, std::uint64_t bytes);

  [[nodiscard]] std::byte* data(std::uint64_t address) { return arena_ + (address - device_base); }
  [[nodiscard]] const std::byte* data(std::uint64_t address) const {
    return arena_ + (address - device_base);
  }

 private:
  /// Free ranges: address to bytes.
  using Ranges = std::map<std::uint64_t, std::uint64_t>;

  Allocation& checked(std::uint64_t address, std::uint64_t bytes, const char* what);
  /// The allocation that is nearest to an address; null when there is none.
  [[nodiscard]] const Allocation* nearest(std::uint64_t address) const;
  void reserve(AllocationLayout layout);
  [[nodiscard]] std::uint64_t next_gap() const;
  /// Reserves addresses for `needed` bytes and a gap, and notes them in `allocation`.
  void place(Allocation& allocation, std::uint64_t needed);
  static void give_back(Ranges& ranges, std::uint64_t address, std::uint64_t bytes);

  std::byte* arena_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t asked_ = 0;      ///< the capacity that was asked for
  std::uint64_t span_ = 0;       ///< bytes of the arena
  std::uint64_t gaps_ = 0;       ///< bytes of it that all gaps together may take
  std::uint64_t gaps_left_ = 0;  ///< those not taken yet
  std::uint64_t used_ = 0;
  std::uint64_t changes_ = 0;
  std::map<std::uint64_t, Allocation> allocations_;  ///< by address
  Ranges free_;                                      ///< of the packed layout
  Ranges room_;                                      ///< of the arena, with gaps
};

}  // namespace warpstack::simt
