#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "simt/device/memory_view.h"
#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "trace/instructions/coalescing.h"

namespace warpstack::simt {

/// Whether a generic address lies in the window of shared or local memory.
[[nodiscard]] constexpr bool in_window(std::uint64_t address, std::uint64_t window) {
  return address - window < trace::window_bytes;
}

/// "load", "atomic operation", …
[[nodiscard]] const char* verb_of(const Step& step);
/// "misaligned load of 4 bytes at 0x7001"
[[nodiscard]] std::string access_text(const Step& step, const char* problem, std::uint64_t address,
                                      std::uint64_t bytes);
/// "12 bytes into the shared variable tile"
[[nodiscard]] std::string describe_shared(const KernelProgram& program, std::uint64_t address);

/// What an access does with the bytes at an address.
struct AccessUse {
  bool reads = true;
  bool writes = false;
};

/// How the addresses of a warp's access lie.
enum class AddressPattern : std::uint8_t {
  any,
  same,        ///< all 32 lanes have one
  consecutive  ///< all 32 lanes, each behind the one before it
};

/// What the addresses of an access span.
struct Extent {
  std::uint64_t least = ~std::uint64_t{0};
  std::uint64_t greatest = 0;
  std::uint64_t any = 0;  ///< bits that one of them has
  AddressPattern pattern = AddressPattern::any;
};

/// Host memory that holds all that the lanes of an access need, from a device address on. It is not
/// one pointer for address 0: where device addresses are host addresses, that one is null.
struct HostRange {
  std::byte* data = nullptr;  ///< null where no one range will do
  std::uint64_t origin = 0;   ///< the device address of `data`
  AddressPattern pattern = AddressPattern::any;
  bool moved = false;  ///< the lanes' bytes lie at other addresses than theirs, which stand apart

  explicit operator bool() const { return data != nullptr; }
  [[nodiscard]] std::byte* at(std::uint64_t address) const {
    return data + static_cast<std::ptrdiff_t>(address - origin);
  }
  /// What lies so many bytes behind each address.
  [[nodiscard]] HostRange behind(std::uint64_t bytes) const {
    return {data + bytes, origin, pattern, moved};
  }
};

/// Finds what lies at an address of a launch: checks bounds and alignment, and whether bytes have
/// been written before they are read. Addresses become those of the host.
class AddressSpaces {
 public:
  AddressSpaces(Execution& execution, Faults& faults)
      : execution_(execution),
        program_(execution.program),
        options_(execution.options),
        memory_(execution.device.memory),
        block_(execution.block),
        view_(execution.view),
        faults_(faults) {}

  std::byte* pointer(Warp& warp, const Step& step, AddressSpace space, std::uint32_t lane,
                     std::uint64_t address, std::uint32_t bytes, AccessUse use);
  /// Host address of a read through a generic address.
  std::byte* generic(Warp& warp, const Step& step, std::uint32_t lane, std::uint64_t address,
                     std::uint32_t bytes);
  /// Host address of a global access, after all checks.
  std::byte* global(Warp& warp, const Step& step, std::uint32_t lane, std::uint64_t address,
                    std::uint32_t bytes, bool reads, bool writes);
  std::byte* shared(Warp& warp, const Step& step, std::uint32_t lane, std::uint64_t address,
                    std::uint32_t bytes, AccessUse use);
  /// The same of an address of `space`, which must lie in shared memory, also of another block of
  /// the cluster.
  std::byte* shared_place(Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
                          std::uint64_t address, std::uint32_t bytes, AccessUse use);
  void check_alignment(Warp& warp, const Step& step, const LaneAddresses& lanes,
                       std::uint32_t bytes) const;
  /// What all active lanes of a global access fall into, when it is one allocation and the access
  /// is without a fault. Notes what a store writes. `places` becomes where the lanes' bytes lie if
  /// the range says that they have moved.
  HostRange common_range(const Step& step, const LaneAddresses& lanes, std::uint32_t bytes,
                         bool is_load, LaneAddresses& places);
  HostRange common_shared_range(const LaneAddresses& lanes, std::uint32_t bytes, bool is_load);
  /// The same of an access to local memory. The lanes' bytes have moved to `places`.
  HostRange common_local_range(Warp& warp, const LaneAddresses& lanes, std::uint32_t bytes,
                               bool is_load, LaneAddresses& places);
  /// Allocations have come or gone.
  void forget_allocation() { recent_ = {}; }

 private:
  std::byte* local(Warp& warp, const Step& step, std::uint32_t lane, std::uint64_t address,
                   std::uint32_t bytes, AccessUse use);
  /// How much local memory a thread has, for messages.
  [[nodiscard]] std::string local_room() const;
  /// Host address for an access that may go on outside memory: it reads zeros, what it writes is
  /// lost.
  std::byte* out_of_bounds(const Warp& warp, const Step& step, std::uint32_t lane,
                           std::uint64_t address, std::uint64_t bytes, const std::string& where);
  /// Finds reads of shared or local memory that nobody has written, and notes writes. `place` is in
  /// the map, `address` in messages.
  /// One byte that was written is enough, also of a vector: the others may be the padding of a
  /// structure, which is copied with what surrounds it. A read of local memory is noted and stops
  /// nothing: compilers load variables ahead of the branch that decides whether they are needed.
  void check_written(Warp& warp, const Step& step, std::uint32_t lane, WrittenBytes& written,
                     std::uint64_t place, std::uint64_t address, std::uint32_t bytes, AccessUse use,
                     bool is_shared);

  /// common_range() of blocks that run ahead of their turn, once it is known that the access is
  /// without a fault.
  HostRange range_in_view(const Allocation& allocation, const LaneAddresses& lanes,
                          const Extent& extent, std::uint32_t bytes, bool is_load,
                          LaneAddresses& places);

  [[nodiscard]] Allocation*& recent(const Step& step) {
    return recent_[step.detail % recent_.size()];
  }

  /// Host address in the shared memory of another block of the cluster.
  std::byte* in_other_block(Warp& warp, const Step& step, std::uint32_t lane, std::uint64_t address,
                            std::uint32_t bytes, AccessUse use);

  Execution& execution_;
  const KernelProgram& program_;
  const LaunchOptions& options_;
  DeviceMemory& memory_;
  Block& block_;
  MemoryView* const view_;  ///< of blocks that run ahead of their turn; null as a rule
  Faults& faults_;
  /// The allocations of the last global accesses, by the instruction.
  std::array<Allocation*, 16> recent_{};
  std::array<std::byte, 64> outside_{};  ///< in place of memory that is not there
};

}  // namespace warpstack::simt
