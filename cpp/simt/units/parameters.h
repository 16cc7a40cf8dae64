#pragma once

#include <cstddef>
#include <cstdint>

#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/units/address_spaces.h"

namespace warpstack::simt {

/// Parameters of kernels and of functions, which lie in the frames of warps.
class Parameters {
 public:
  Parameters(Execution& execution, Faults& faults, AddressSpaces& spaces)
      : execution_(execution),
        program_(execution.program),
        memory_(execution.device.memory),
        faults_(faults),
        spaces_(spaces) {}

  ~Parameters();
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  /// The parameter buffer as a piece of device memory, for kernels that take its address.
  std::uint64_t parameter_address();
  void load_kernel_parameter(Warp& warp, const Step& step, std::byte* registers,
                             std::uint32_t mask);
  void access_parameter(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask,
                        bool is_load);

 private:
  Execution& execution_;
  const KernelProgram& program_;
  DeviceMemory& memory_;
  Faults& faults_;
  AddressSpaces& spaces_;
  std::uint64_t parameter_address_ = 0;
  std::uint64_t before_ = 0;  ///< bytes before the first parameter
};

}  // namespace warpstack::simt
