#pragma once

#include <cstddef>
#include <cstdint>

#include "simt/device/texture_sampling.h"
#include "simt/program/registers.h"
#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/state/recorder.h"
#include "simt/units/address_spaces.h"
#include "simt/units/race_monitor.h"

namespace warpstack::simt {

/// Executes texture and surface instructions.
class TextureUnit {
 public:
  TextureUnit(Execution& execution, Faults& faults, AddressSpaces& spaces, RaceMonitor& races,
              Recorder& recorder)
      : execution_(execution),
        program_(execution.program),
        memory_(execution.device.memory),
        faults_(faults),
        spaces_(spaces),
        races_(races),
        recorder_(recorder),
        lines_are_planes_(program_.source == "sass") {}

  void access(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);

 private:
  const Texture& texture_of(Warp& warp, const Step& step, const TextureAccess& access,
                            const std::byte* registers, int lane) const;
  void sample_lane(const TextureAccess& access, const Texture& texture, std::byte* registers,
                   int lane);
  /// Reports a texel that the lane has read but was never written.
  void check_written(const Warp& warp, const Step& step, const Texture& texture, int lane);
  void access_surface(Warp& warp, const Step& step, const TextureAccess& access,
                      const Texture& texture, std::byte* registers, int lane);

  Execution& execution_;
  const KernelProgram& program_;
  DeviceMemory& memory_;
  Faults& faults_;
  AddressSpaces& spaces_;
  RaceMonitor& races_;
  Recorder& recorder_;
  /// Machine code samples textures of one dimension as if they had a second one.
  const bool lines_are_planes_;
  TouchedWords touched_;     ///< by the current read
  LaneAddresses addresses_;  ///< of the current surface access
};

}  // namespace warpstack::simt
