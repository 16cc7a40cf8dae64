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

/// Whether an access reads or writes the bytes at an address.
struct AccessUse {
  bool reads = true;
  bool writes = false;
};

/// The pattern of the addresses of a warp's access.
enum class AddressPattern : std::uint8_t {
  any,
  same,        ///< all 32 lanes have the same
  consecutive  ///< all 32 lanes, each behind the one before it
};

/// The range of the addresses of an access.
struct Extent {
  std::uint64_t least = ~std::uint64_t{0};
  std::uint64_t greatest = 0;
  std::uint64_t any = 0;  ///< bitwise or of the addresses
  AddressPattern pattern = AddressPattern::any;
};

/// Host memory that holds all bytes of an access's lanes, from a device address on. It is not given
/// as the pointer of address 0, which is null if device addresses are host addresses.
struct HostRange {
  std::byte* data = nullptr;  ///< null if no single range will do
  std::uint64_t origin = 0;   ///< the device address of `data`
  AddressPattern pattern = AddressPattern::any;
  bool moved = false;  ///< the lanes' bytes lie at other addresses, which are given separately

  explicit operator bool() const { return data != nullptr; }
  [[nodiscard]] std::byte* at(std::uint64_t address) const {
    return data + static_cast<std::ptrdiff_t>(address - origin);
  }
  /// The range `bytes` further on.
  [[nodiscard]] HostRange behind(std::uint64_t bytes) const {
    return {data + bytes, origin, pattern, moved};
  }
};

/// Translates addresses of a launch to those of the host. Checks bounds and alignment, and that
/// bytes are written before they are read.
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
  /// The same for an address of `space` in shared memory, possibly of another block of the cluster.
  std::byte* shared_place(Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
                          std::uint64_t address, std::uint32_t bytes, AccessUse use);
  void check_alignment(Warp& warp, const Step& step, const LaneAddresses& lanes,
                       std::uint32_t bytes) const;
  /// The range for all active lanes of a global access, if they access one allocation without a
  /// fault. Notes what a store writes. If the range is `moved`, `places` receives the addresses of
  /// the lanes' bytes.
  HostRange common_range(const Step& step, const LaneAddresses& lanes, std::uint32_t bytes,
                         bool is_load, LaneAddresses& places);
  HostRange common_shared_range(const LaneAddresses& lanes, std::uint32_t bytes, bool is_load);
  /// The same for an access to local memory. The lanes' bytes have moved to `places`.
  HostRange common_local_range(Warp& warp, const LaneAddresses& lanes, std::uint32_t bytes,
                               bool is_load, LaneAddresses& places);
  /// Must be called when allocations have come or gone.
  void forget_allocation() { recent_ = {}; }

 private:
  std::byte* local(Warp& warp, const Step& step, std::uint32_t lane, std::uint64_t address,
                   std::uint32_t bytes, AccessUse use);
  /// The size of a thread's local memory, for messages.
  [[nodiscard]] std::string local_room() const;
  /// Host address for an access outside memory that may go on: it reads zeros, and its writes are
  /// lost.
  std::byte* out_of_bounds(const Warp& warp, const Step& step, std::uint32_t lane,
                           std::uint64_t address, std::uint64_t bytes, const std::string& where);
  /// Finds reads of shared or local memory that was never written, and notes writes. `place` is
  /// used in the map, `address` in messages. One written byte is enough, even of a vector: the
  /// others may be the padding of a structure that is copied as a whole. A read of local memory is
  /// only noted, because compilers load variables ahead of the branch that decides whether they are
  /// needed.
  void check_written(Warp& warp, const Step& step, std::uint32_t lane, WrittenBytes& written,
                     std::uint64_t place, std::uint64_t address, std::uint32_t bytes, AccessUse use,
                     bool is_shared);

  /// common_range() for blocks that run ahead of their turn, once the access is known to have no
  /// fault.
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
  MemoryView* const view_;  ///< of blocks that run ahead of their turn; else null
  Faults& faults_;
  /// The allocations of the last global accesses, by instruction.
  std::array<Allocation*, 16> recent_{};
  std::array<std::byte, 64> outside_{};  ///< stands for memory that does not exist
};

}  // namespace warpstack::simt
