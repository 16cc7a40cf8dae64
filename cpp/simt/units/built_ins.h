#pragma once

#include <cstdint>
#include <string>

#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/units/address_spaces.h"

namespace warpstack::simt {

/// Device functions that the engine itself provides (printf, malloc, free, assert), and calls of
/// the CUDA runtime.
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
  /// The result of a function of the CUDA runtime for a lane.
  std::uint64_t call_runtime(Warp& warp, const Step& step, const Call& call, std::uint32_t lane);
  /// Allocates on the device's heap; the race check forgets what was there before.
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
