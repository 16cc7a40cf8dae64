#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simt/async/bulk_copies.h"
#include "simt/program/tensor_map.h"

namespace warpstack::simt {

/// cp.async.bulk.tensor, cp.reduce.async.bulk.tensor: copies tiles of tensors that a TensorMap
/// describes, at once. Also has the instructions that change such a map.
class TensorCopies {
 public:
  TensorCopies(Execution& execution, Faults& faults, Recorder& recorder, AddressSpaces& spaces,
               BulkCopies& copies)
      : execution_(execution),
        program_(execution.program),
        faults_(faults),
        recorder_(recorder),
        spaces_(spaces),
        copies_(copies) {}

  void copy(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  /// tensormap.replace
  void change_map(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);
  /// tensormap.cp_fenceproxy
  void copy_map(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask);

 private:
  /// The current copy of a lane.
  struct Tile {
    TensorMap map;
    std::array<std::int64_t, TensorMap::max_rank> first{};  ///< coordinates
    CopyTargets targets;
  };

  void copy_lane(Warp& warp, const Step& step, std::byte* registers, std::uint32_t lane);
  /// Copies a row of the tile. `offset` is its offset in the tile, `address` that of its first
  /// element in the tensor. `is_inside` says that its other coordinates are within the tensor.
  void copy_row(Warp& warp, const Step& step, std::uint32_t lane, const Tile& tile,
                std::uint64_t offset, std::uint64_t address, bool is_inside);
  /// Loads 16 bytes of a row of the tensor; fills those outside.
  void load_piece(Warp& warp, const Step& step, std::uint32_t lane, const Tile& tile,
                  std::uint32_t first, std::uint64_t address, bool is_inside);
  /// The reverse: stores to the tensor.
  void store_piece(Warp& warp, const Step& step, std::uint32_t lane, const Tile& tile,
                   std::uint32_t first, std::uint64_t address, bool is_inside);
  TensorMap map_at(Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
                   std::uint64_t address, bool writes);
  void put_map(Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
               std::uint64_t address, const TensorMap& map);

  Execution& execution_;
  const KernelProgram& program_;
  Faults& faults_;
  Recorder& recorder_;
  AddressSpaces& spaces_;
  BulkCopies& copies_;
  std::array<std::byte, BulkCopies::piece_bytes> piece_{};
  std::vector<MovedBytes> moved_;
};

}  // namespace warpstack::simt
