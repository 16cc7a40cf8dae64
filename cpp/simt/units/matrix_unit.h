#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "simt/state/execution.h"
#include "simt/state/faults.h"
#include "simt/state/recorder.h"
#include "simt/units/address_spaces.h"
#include "simt/units/race_monitor.h"
#include "trace/instructions/coalescing.h"

namespace warpstack::simt {

/// Executes matrix instructions, in which all lanes of a warp take part.
class MatrixUnit {
 public:
  MatrixUnit(Execution& execution, Faults& faults, Recorder& recorder, AddressSpaces& spaces,
             RaceMonitor& races)
      : execution_(execution),
        program_(execution.program),
        faults_(faults),
        recorder_(recorder),
        spaces_(spaces),
        races_(races) {}

  void multiply(const Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) const;
  /// movmatrix
  void transpose(const Warp& warp, const Step& step, std::byte* registers,
                 std::uint32_t mask) const;
  /// ldmatrix, stmatrix: the first lanes have the addresses of rows of 16 bytes.
  void access_matrices(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  /// wmma.load, wmma.store: tile after tile, each one access of all lanes or one per element.
  void access_fragment(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);

 private:
  void require_whole_warp(const Warp& warp, const Step& step, std::uint32_t mask) const;
  /// Loads or stores `bytes` per lane at `offset` of its part of a tile.
  void move_pieces(Warp& warp, const Step& step, AddressSpace space, const LaneAddresses& lanes,
                   std::uint32_t bytes, std::uint32_t offset,
                   std::array<std::array<std::byte, 16>, warp_size>& tile_bytes, bool is_load);

  const Execution& execution_;
  const KernelProgram& program_;
  Faults& faults_;
  Recorder& recorder_;
  AddressSpaces& spaces_;
  RaceMonitor& races_;
  LaneAddresses addresses_;  ///< of the current access
};

}  // namespace warpstack::simt
