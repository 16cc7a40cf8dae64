#include "simt/async/tensor_copies.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "common/error.h"
#include "common/text.h"
#include "simt/program/registers.h"

namespace warpstack::simt {
namespace {

constexpr std::uint32_t piece_bytes = BulkCopies::piece_bytes;
/// Alignment of a tile in shared memory.
constexpr std::uint64_t tile_alignment = 128;
constexpr std::uint64_t map_alignment = 64;

/// The value of an element outside the tensor.
std::uint64_t fill_of(const TensorMap& map) {
  if (!map.fills_nan) return 0;
  const std::uint32_t bits = 8 * bytes_of(map.element);
  return ~std::uint64_t{0} >> (65 - bits);  // all ones but the sign
}

}  // namespace

void TensorCopies::copy(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
  if (warp.detector != nullptr) warp.detector->work();
  warp.clock = nullptr;
  moved_.clear();
  const TensorCopy& copy = program_.tensor_copies[step.detail];
  const trace::PhaseStep phase =
      copies_.count_completion(registers, copy.barrier, mask, copy.blocks, copy.is_of_pair);
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    copy_lane(warp, step, registers, static_cast<std::uint32_t>(std::countr_zero(rest)));
  }
  recorder_.record_moved(warp, step, mask, moved_, phase);
}

void TensorCopies::copy_lane(Warp& warp, const Step& step, std::byte* registers,
                             std::uint32_t lane) {
  const TensorCopy& copy = program_.tensor_copies[step.detail];
  Tile tile;
  const std::uint64_t map_address = address_in(execution_, registers, copy.map, lane);
  tile.map = map_at(warp, step, lane, copy.map.space, map_address, false);
  const TensorMap& map = tile.map;
  try {
    map.check();
  } catch (const InputError& error) {
    faults_.stop(warp, step, lane,
                 std::string("the map at ") + hexadecimal(map_address) + ": " + error.what());
  }
  if (map.rank != copy.dimensions) {
    faults_.stop(warp, step, lane,
                 "a copy of a tile of " + std::to_string(copy.dimensions) +
                     " dimensions through a tensor map of rank " + std::to_string(map.rank));
  }
  if (execution_.device.memory.find(map.address) == nullptr) {
    faults_.diagnose(warp, step, lane, "out-of-bounds", [&] {
      return "the tensor map at " + hexadecimal(map_address) + " describes a tensor at " +
             hexadecimal(map.address) + ", " + execution_.device.memory.describe(map.address) +
             ": no array is there (one that was freed since the map was made?)";
    });
  }
  for (std::uint32_t d = 0; d < map.rank; ++d) {
    tile.first[d] =
        static_cast<std::int32_t>(lane_u32(registers, copy.coordinates[d], static_cast<int>(lane)));
  }
  tile.targets = copies_.targets_of(warp, step, registers, lane, copy.tile, copy.barrier,
                                    copy.blocks, copy.is_of_pair);
  copies_.begin(warp, copy.barrier, tile.targets);
  for (std::uint32_t t = 0; t < tile.targets.count; ++t) {
    if (tile.targets.address[t] % tile_alignment != 0) {
      faults_.stop(warp, step, lane,
                   "a tile at " + hexadecimal(tile.targets.address[t]) +
                       " of shared memory, which is not a multiple of 128");
    }
  }
  const std::uint64_t row_bytes = std::uint64_t{map.tile_size(0)} * bytes_of(map.element);
  std::array<std::uint32_t, TensorMap::max_rank> at{};  // in the tile
  for (std::uint64_t offset = 0; offset < map.tile_bytes(); offset += row_bytes) {
    std::uint64_t address = map.address;
    bool is_inside = true;
    for (std::uint32_t d = 1; d < map.rank; ++d) {
      const std::int64_t place = tile.first[d] + std::int64_t{at[d]} * map.steps[d];
      is_inside &= place >= 0 && static_cast<std::uint64_t>(place) < map.size(d);
      address += static_cast<std::uint64_t>(place) * map.strides[d - 1];
    }
    copy_row(warp, step, lane, tile, offset, address, is_inside);
    for (std::uint32_t d = 1; d < map.rank && ++at[d] == map.tile_size(d); ++d) at[d] = 0;
  }
  if (copy.to_shared) {
    copies_.signal(warp, step, lane, copy.barrier, tile.targets, map.tile_bytes());
  }
}

void TensorCopies::copy_row(Warp& warp, const Step& step, std::uint32_t lane, const Tile& tile,
                            std::uint64_t offset, std::uint64_t address, bool is_inside) {
  const bool to_shared = program_.tensor_copies[step.detail].to_shared;
  const std::uint32_t per_piece = piece_bytes / bytes_of(tile.map.element);
  for (std::uint32_t first = 0; first < tile.map.tile_size(0); first += per_piece) {
    const std::uint64_t in_tile = offset + first / per_piece * piece_bytes;
    const auto shared_place = [&](std::uint32_t target) {
      const std::uint64_t place =
          swizzled(tile.targets.address[target] + in_tile, tile.map.swizzle);
      copies_.note(warp, step, lane, AddressSpace::shared, place, piece_bytes, to_shared);
      return spaces_.shared(warp, step, lane, place, piece_bytes,
                            {.reads = !to_shared, .writes = to_shared});
    };
    if (!to_shared) {
      std::memcpy(piece_.data(), shared_place(0), piece_bytes);
      store_piece(warp, step, lane, tile, first, address, is_inside);
      continue;
    }
    load_piece(warp, step, lane, tile, first, address, is_inside);
    for (std::uint32_t t = 0; t < tile.targets.count; ++t) {
      std::memcpy(shared_place(t), piece_.data(), piece_bytes);
    }
  }
}

void TensorCopies::load_piece(Warp& warp, const Step& step, std::uint32_t lane, const Tile& tile,
                              std::uint32_t first, std::uint64_t address, bool is_inside) {
  const TensorMap& map = tile.map;
  const std::uint32_t size = bytes_of(map.element);
  const std::uint32_t count = piece_bytes / size;
  const auto column = [&](std::uint32_t i) {
    return tile.first[0] + std::int64_t{first + i} * map.steps[0];
  };
  const auto load = [&](std::uint64_t from, std::uint32_t bytes, std::byte* to) {
    copies_.note(warp, step, lane, AddressSpace::global, from, bytes, false);
    std::memcpy(to, spaces_.global(warp, step, lane, from, bytes, true, false), bytes);
    moved_.push_back({from, bytes});
  };
  const std::int64_t begin = column(0);
  if (is_inside && map.steps[0] == 1 && begin >= 0 &&
      static_cast<std::uint64_t>(begin) + count <= map.size(0)) {
    load(address + static_cast<std::uint64_t>(begin) * size, piece_bytes, piece_.data());
    return;
  }
  const std::uint64_t fill = fill_of(map);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int64_t place = column(i);
    std::byte* const to = piece_.data() + i * size;
    if (is_inside && place >= 0 && static_cast<std::uint64_t>(place) < map.size(0)) {
      load(address + static_cast<std::uint64_t>(place) * size, size, to);
    } else {
      std::memcpy(to, &fill, size);
    }
  }
}

void TensorCopies::store_piece(Warp& warp, const Step& step, std::uint32_t lane, const Tile& tile,
                               std::uint32_t first, std::uint64_t address, bool is_inside) {
  if (!is_inside) return;
  const TensorCopy& copy = program_.tensor_copies[step.detail];
  const TensorMap& map = tile.map;
  const std::uint32_t size = bytes_of(map.element);
  const AtomicFunction reduction = copy.reductions[static_cast<std::size_t>(map.element)];
  if (copy.reduces && reduction == nullptr) {
    faults_.stop(warp, step, lane, "this reduction is not one of the tensor's element type");
  }
  for (std::uint32_t i = 0; i < piece_bytes / size; ++i) {
    const std::int64_t place = tile.first[0] + std::int64_t{first + i} * map.steps[0];
    if (place < 0 || static_cast<std::uint64_t>(place) >= map.size(0)) continue;
    const std::uint64_t to = address + static_cast<std::uint64_t>(place) * size;
    std::byte* const target = spaces_.global(warp, step, lane, to, size, copy.reduces, true);
    copies_.note(warp, step, lane, AddressSpace::global, to, size, true);
    std::uint64_t value = read_value(piece_.data() + i * size, size);
    if (copy.reduces) value = reduction(read_value(target, size), value, 0);
    std::memcpy(target, &value, size);
    moved_.push_back({to, size});
  }
}

void TensorCopies::change_map(Warp& warp, const Step& step, std::byte* registers,
                              std::uint32_t mask) {
  const TensorMapChange& change = program_.tensor_map_changes[step.detail];
  // An earlier block may not have written the rest of the map yet.
  if (change.map.space != AddressSpace::shared) execution_.need_turn();
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    const std::uint64_t address = address_in(execution_, registers, change.map, lane);
    TensorMap map = map_at(warp, step, lane, change.map.space, address, true);
    try {
      map.replace(change.field, change.ordinal,
                  read_lane(registers, change.value, change.value_bytes, static_cast<int>(lane)));
    } catch (const InputError& error) {
      faults_.stop(warp, step, lane, error.what());
    }
    put_map(warp, step, lane, change.map.space, address, map);
  }
}

void TensorCopies::copy_map(Warp& warp, const Step& step, std::byte* registers,
                            std::uint32_t mask) {
  // All lanes name the same map.
  const TensorMapCopy& copy = program_.tensor_map_copies[step.detail];
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
  const TensorMap map = map_at(warp, step, lane, copy.from.space,
                               address_in(execution_, registers, copy.from, lane), false);
  put_map(warp, step, lane, copy.to.space, address_in(execution_, registers, copy.to, lane), map);
}

TensorMap TensorCopies::map_at(Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
                               std::uint64_t address, bool writes) {
  if (address % map_alignment != 0) {
    faults_.stop(warp, step, lane,
                 "a tensor map at " + hexadecimal(address) + ", which is not a multiple of 64");
  }
  std::array<std::byte, TensorMap::bytes> packed;
  for (std::uint32_t at = 0; at < packed.size(); at += piece_bytes) {
    // A map under construction is written field by field, mostly over zeros.
    std::memcpy(packed.data() + at,
                spaces_.pointer(warp, step, space, lane, address + at, piece_bytes,
                                {.reads = !writes, .writes = writes}),
                piece_bytes);
  }
  return TensorMap::unpack(packed);
}

void TensorCopies::put_map(Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
                           std::uint64_t address, const TensorMap& map) {
  const auto packed = map.pack();
  for (std::uint32_t at = 0; at < packed.size(); at += piece_bytes) {
    std::memcpy(spaces_.pointer(warp, step, space, lane, address + at, piece_bytes,
                                {.reads = false, .writes = true}),
                packed.data() + at, piece_bytes);
  }
}

}  // namespace warpstack::simt
