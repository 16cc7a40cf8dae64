#include "simt/units/matrix_unit.h"

#include <bit>
#include <cstring>
#include <string>

#include "common/text.h"
#include "simt/program/matrix.h"
#include "simt/program/registers.h"
#include "simt/state/cluster.h"
#include "simt/units/load_store.h"

namespace warpstack::simt {
namespace {

/// Lane 4 * r + t holds the elements 2 * t and 2 * t + 1 of row r, the first in the low half.
using SmallMatrix = std::array<std::array<std::uint16_t, 8>, 8>;

void put_matrix(std::byte* registers, std::uint32_t slot, const SmallMatrix& matrix,
                bool transposed) {
  if (!transposed) {
    std::memcpy(registers + slot, matrix.data(), sizeof matrix);
    return;
  }
  for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
    const std::uint32_t row = lane / 4;
    const std::uint32_t column = lane % 4 * 2;
    const std::uint32_t word = matrix[column][row] | std::uint32_t{matrix[column + 1][row]} << 16;
    std::memcpy(registers + slot + sizeof word * lane, &word, sizeof word);
  }
}

SmallMatrix get_matrix(const std::byte* registers, std::uint32_t slot, bool transposed) {
  SmallMatrix matrix;
  if (!transposed) {
    std::memcpy(matrix.data(), registers + slot, sizeof matrix);
    return matrix;
  }
  for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
    const std::uint32_t row = lane / 4;
    const std::uint32_t column = lane % 4 * 2;
    const std::uint32_t word = lane_u32(registers, slot, static_cast<int>(lane));
    matrix[column][row] = static_cast<std::uint16_t>(word);
    matrix[column + 1][row] = static_cast<std::uint16_t>(word >> 16);
  }
  return matrix;
}

/// A tile of a store's registers, the elements of each lane one after the other.
void read_tile(const std::byte* registers, const FragmentAccess& access, std::uint32_t tile,
               std::array<std::array<std::byte, 16>, warp_size>& tile_bytes) {
  const MatrixFragment& fragment = access.fragment;
  const std::uint32_t bytes = fragment.register_bytes();
  const std::uint32_t per_tile = fragment.num_registers() / fragment.num_tiles();
  for (std::uint32_t r = 0; r < per_tile; ++r) {
    const std::uint32_t slot = access.values[tile * per_tile + r];
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
      std::memcpy(tile_bytes[lane].data() + r * bytes, registers + slot + bytes * lane, bytes);
    }
  }
}

}  // namespace

void MatrixUnit::multiply(const Warp& warp, const Step& step, std::byte* registers,
                          std::uint32_t mask) const {
  require_whole_warp(warp, step, mask);
  multiply_matrices(registers, program_.multiplications[step.detail]);
}

void MatrixUnit::transpose(const Warp& warp, const Step& step, std::byte* registers,
                           std::uint32_t mask) const {
  require_whole_warp(warp, step, mask);
  put_matrix(registers, step.operands.target, get_matrix(registers, step.operands.source[0], true),
             false);
}

void MatrixUnit::access_matrices(Warp& warp, const Step& step, std::byte* registers,
                                 std::uint32_t mask) {
  require_whole_warp(warp, step, mask);
  const MatrixAccess& access = program_.matrix_accesses[step.detail];
  const bool is_load = step.action == Action::matrix_load;
  constexpr std::uint32_t row_bytes = sizeof(SmallMatrix::value_type);
  const std::uint32_t rows = 8u * access.matrices;
  LaneAddresses& lanes = addresses_;
  read_addresses(registers, access.address, access.address_is_64_bits, access.offset,
                 rows == warp_size ? all_lanes : (1u << rows) - 1, lanes);
  drop_own_ranks(execution_, access.space, lanes);
  if (access.space == AddressSpace::generic) {
    for (std::uint32_t lane = 0; lane < rows; ++lane) {
      if (!in_window(lanes.address[lane], shared_window)) {
        faults_.stop(warp, step, lane,
                     hexadecimal(lanes.address[lane]) + " is not an address of shared memory");
      }
      lanes.address[lane] -= shared_window;
    }
  }
  const HostRange range = spaces_.common_shared_range(lanes, row_bytes, is_load);
  if (!range) spaces_.check_alignment(warp, step, lanes, row_bytes);
  SmallMatrix matrix{};
  // A load reads everything before it writes a register, which may hold addresses.
  std::array<SmallMatrix, 4> loaded;
  for (std::uint32_t m = 0; m < access.matrices; ++m) {
    if (!is_load) matrix = get_matrix(registers, access.values[m], access.transposed);
    for (std::uint32_t row = 0; row < 8; ++row) {
      const std::uint32_t lane = 8 * m + row;
      std::byte* const place =
          range ? range.at(lanes.address[lane])
                : spaces_.shared(warp, step, lane, lanes.address[lane], row_bytes,
                                 {.reads = is_load, .writes = !is_load});
      if (is_load) {
        std::memcpy(loaded[m][row].data(), place, row_bytes);
      } else {
        std::memcpy(place, matrix[row].data(), row_bytes);
      }
    }
  }
  for (std::uint32_t m = 0; is_load && m < access.matrices; ++m) {
    put_matrix(registers, access.values[m], loaded[m], access.transposed);
  }
  if (races_.is_on()) {
    races_.check(warp, step, AddressSpace::shared, lanes, row_bytes,
                 is_load ? RaceKind::load : RaceKind::store);
  }
  // In the trace, each lane moves as many bytes as it gets, row by row.
  LaneAddresses shares{.mask = mask, .address = {}};
  const std::uint32_t share = 4u * access.matrices;
  for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
    shares.address[lane] = lanes.address[lane * share / row_bytes] + lane * share % row_bytes;
  }
  recorder_.record_access(warp, step, mask, &shares);
}

void MatrixUnit::access_fragment(Warp& warp, const Step& step, std::byte* registers,
                                 std::uint32_t mask) {
  require_whole_warp(warp, step, mask);
  const FragmentAccess& access = program_.fragment_accesses[step.detail];
  const MatrixFragment& fragment = access.fragment;
  const bool is_load = step.action == Action::fragment_load;
  LaneAddresses bases;
  read_addresses(registers, access.address, access.address_is_64_bits, access.offset, all_lanes,
                 bases);
  drop_own_ranks(execution_, access.space, bases);
  std::array<std::uint64_t, warp_size> strides;
  strides.fill(access.column_major ? fragment.rows : fragment.columns);
  if (access.stride != none) {
    for (int lane = 0; lane < static_cast<int>(warp_size); ++lane) {
      strides[lane] = lane_u32(registers, access.stride, lane);
    }
  }
  // b1: strides count in bits.
  const std::uint64_t stride_bits = fragment.element == MatrixElement::b1 && access.stride != none
                                        ? 1
                                        : bits_of(fragment.element);
  const std::uint32_t element_bits = bits_of(fragment.element);
  const auto address_of = [&](std::uint32_t lane, MatrixPosition at) {
    const std::uint64_t major = access.column_major ? at.column : at.row;
    const std::uint64_t minor = access.column_major ? at.row : at.column;
    return bases.address[lane] + (major * strides[lane] * stride_bits + minor * element_bits) / 8;
  };
  const bool whole = access.is_contiguous();
  const std::uint32_t count = fragment.per_tile();
  const std::uint32_t pieces = whole ? 1 : count;
  const std::uint32_t bytes = count * element_bits / 8 / pieces;
  const bool by_column = fragment.role == MatrixRole::b;
  LaneAddresses& lanes = addresses_;
  lanes.mask = all_lanes;
  std::array<std::array<std::byte, 16>, warp_size> tile_bytes{};
  std::array<std::byte, warp_size * 64> made{};  // a load's registers, written at the end
  const std::uint32_t register_bytes = fragment.register_bytes();
  const std::uint32_t lane_bytes = fragment.num_registers() * register_bytes;
  for (std::uint32_t tile = 0; tile < fragment.num_tiles(); ++tile) {
    const std::uint32_t tile_size = pieces * bytes;
    if (!is_load) read_tile(registers, access, tile, tile_bytes);
    for (std::uint32_t piece = 0; piece < pieces; ++piece) {
      for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
        MatrixPosition at = fragment.position(tile, lane);
        (by_column ? at.row : at.column) += piece;
        lanes.address[lane] = address_of(lane, at);
      }
      move_pieces(warp, step, access.space, lanes, bytes, piece * bytes, tile_bytes, is_load);
      if (!access.is_exchanged()) {
        recorder_.record_access(warp, step, mask, &lanes, tile * pieces + piece);
      }
    }
    if (access.is_exchanged()) {
      for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
        // The tile is square: its rows are read as if they were its columns.
        const MatrixPosition first = fragment.position(tile, 0);
        lanes.address[lane] =
            by_column ? address_of(lane, {first.row + lane / 4, first.column + lane % 4 * 2})
                      : address_of(lane, {first.row + lane % 4 * 2, first.column + lane / 4});
      }
      recorder_.record_access(warp, step, mask, &lanes, tile);
    }
    if (!is_load) continue;
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
      std::memcpy(made.data() + lane * lane_bytes + tile * tile_size, tile_bytes[lane].data(),
                  tile_size);
    }
  }
  if (!is_load) return;
  for (std::uint32_t r = 0; r < access.registers; ++r) {
    const std::uint32_t from = r % fragment.num_registers() * register_bytes;
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
      std::memcpy(registers + access.values[r] + register_bytes * lane,
                  made.data() + lane * lane_bytes + from, register_bytes);
    }
  }
}

void MatrixUnit::require_whole_warp(const Warp& warp, const Step& step, std::uint32_t mask) const {
  if (mask == all_lanes) return;
  faults_.stop(warp, step, static_cast<std::uint32_t>(std::countr_zero(mask)),
               "a matrix instruction needs all 32 threads of its warp, " +
                   std::to_string(std::popcount(mask)) + " of warp " + std::to_string(warp.number) +
                   " execute it");
}

void MatrixUnit::move_pieces(Warp& warp, const Step& step, AddressSpace space,
                             const LaneAddresses& lanes, std::uint32_t bytes, std::uint32_t offset,
                             std::array<std::array<std::byte, 16>, warp_size>& tile_bytes,
                             bool is_load) {
  LaneAddresses places;
  const HostRange range = space == AddressSpace::shared
                              ? spaces_.common_shared_range(lanes, bytes, is_load)
                              : spaces_.common_range(step, lanes, bytes, is_load, places);
  const LaneAddresses& where = range.moved ? places : lanes;
  if (!range) spaces_.check_alignment(warp, step, lanes, bytes);
  for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
    std::byte* const place = range ? range.at(where.address[lane])
                                   : spaces_.pointer(warp, step, space, lane, lanes.address[lane],
                                                     bytes, {.reads = is_load, .writes = !is_load});
    std::byte* const value = tile_bytes[lane].data() + offset;
    std::memcpy(is_load ? value : place, is_load ? place : value, bytes);
  }
  if (races_.is_on()) {
    races_.check(warp, step, space, lanes, bytes, is_load ? RaceKind::load : RaceKind::store);
  }
}

}  // namespace warpstack::simt
