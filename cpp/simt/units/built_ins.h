#pragma once

#include <cstdint>
#include <string>

#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/units/address_spaces.h"

namespace warpstack::simt {

/// Functions of the device that the engine itself provides: printf, malloc, free, assert; and the
/// way to those of the CUDA runtime.
class BuiltIns {
 public:
  BuiltIns(Execution& execution, Faults& faults, AddressSpaces& spaces)
      : execution_(execution),
        memory_(execution.device.memory),
        block_(execution.block),
        faults_(faults),
        spaces_(spaces) {}

  void call(Warp& warp, const Step& step, const Call& call, std::uint32_t mask);

 private:
  /// What a function of the CUDA runtime gives a lane.
  std::uint64_t call_runtime(Warp& warp, const Step& step, const Call& call, std::uint32_t lane);
  /// Memory of the device's heap, of which the race check knows nothing yet.
  std::uint64_t allocate(std::uint64_t bytes);
  /// Zero-terminated text at a generic address.
  std::string text_at(Warp& warp, const Step& step, std::uint32_t lane, std::uint64_t address);

  Execution& execution_;
  DeviceMemory& memory_;
  Block& block_;
  Faults& faults_;
  AddressSpaces& spaces_;
};

}  // namespace warpstack::simt
