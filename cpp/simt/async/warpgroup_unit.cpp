#include "simt/async/warpgroup_unit.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "simt/program/registers.h"

namespace warpstack::simt {
namespace {

constexpr std::uint32_t factor_piece = 16;
/// Bytes that shared memory delivers per wavefront.
constexpr std::uint32_t wavefront_bytes = 128;

/// Wavefronts of a warp's share of the factors: its own rows of A, a fourth of B.
std::uint32_t wavefronts_of(const WarpgroupMultiply& multiply) {
  const std::uint32_t rows = multiply.a_descriptor == none ? 0 : warp_rows;
  const std::uint32_t bytes = (rows + multiply.columns / warpgroup_warps) * factor_bytes;
  return std::max(bytes / wavefront_bytes, 1u);
}

}  // namespace

void WarpgroupUnit::multiply(Warp& warp, const Step& step, std::byte* registers,
                             std::uint32_t mask) {
  const WarpgroupMultiply& multiply = program_.warpgroup_multiplications[step.detail];
  const auto first = static_cast<std::uint32_t>(std::countr_zero(mask));
  if (mask != all_lanes) {
    faults_.stop(warp, step, first,
                 "a product of four warps needs all 32 threads of each, " +
                     std::to_string(std::popcount(mask)) + " of warp " +
                     std::to_string(warp.number) + " execute it");
  }
  if (group_of(warp).size() != warpgroup_warps) {
    faults_.stop(warp, step, first,
                 "a product of four warps in a block of " + std::to_string(execution_.num_warps) +
                     " warps: warp " + std::to_string(warp.number) +
                     " is in a group that is not whole; launch a multiple of 128 threads");
  }
  if (warp.detector != nullptr) warp.detector->work();
  const auto uniform = [&](std::uint32_t slot) { return lane_u64(registers, slot, 0); };
  if (multiply.a_descriptor == none) {
    read_registers(multiply, registers, a_);
  } else {
    read_factor(warp, step, MatrixDescriptor::unpack(uniform(multiply.a_descriptor)),
                multiply.transpose_a, warp.number % warpgroup_warps * warp_rows, a_);
  }
  const std::span<FactorRow> b = std::span(b_).first(multiply.columns);
  read_factor(warp, step, MatrixDescriptor::unpack(uniform(multiply.b_descriptor)),
              multiply.transpose_b, 0, b);
  const bool accumulates =
      multiply.accumulates == none || (predicate_bits(registers + multiply.accumulates) & 1) != 0;
  multiply_rows(registers, multiply, accumulates, a_, b);
  recorder_.record_wavefronts(warp, step, mask, wavefronts_of(multiply));
  recorder_.record_access(warp, step, mask, nullptr, 1);
}

void WarpgroupUnit::commit(Warp& warp) {
  if (races_.is_on()) races_.actors().commit_products(warp.number);
  ++warp.async.committed_groups;
  ++execution_.async_events;
}

bool WarpgroupUnit::wait(const Warp& warp, const Step& step) {
  if (!is_over(warp, step)) return false;
  if (races_.is_on()) {
    races_.actors().wait_for_products(warp.number, program_.warpgroup_waits[step.detail].pending);
  }
  return true;
}

bool WarpgroupUnit::is_over(const Warp& warp, const Step& step) const {
  const std::uint64_t pending = program_.warpgroup_waits[step.detail].pending;
  return std::ranges::all_of(group_of(warp), [&](const Warp& other) {
    return other.state == Warp::State::done ||
           other.async.committed_groups + pending >= warp.async.committed_groups;
  });
}

std::string WarpgroupUnit::text(const Warp& warp, const Step& step) const {
  const std::uint64_t pending = program_.warpgroup_waits[step.detail].pending;
  std::string late;
  for (const Warp& other : group_of(warp)) {
    if (other.state == Warp::State::done ||
        other.async.committed_groups + pending >= warp.async.committed_groups) {
      continue;
    }
    late += (late.empty() ? "" : ", ") + std::to_string(other.number);
  }
  return "wgmma.wait_group for the products of the other warps of its group (" + late + ")";
}

std::span<const Warp> WarpgroupUnit::group_of(const Warp& warp) const {
  const std::vector<Warp>& warps = execution_.block.warps;
  const std::size_t first = warp.number - warp.number % warpgroup_warps;
  return std::span(warps).subspan(first,
                                  std::min<std::size_t>(warpgroup_warps, warps.size() - first));
}

void WarpgroupUnit::read_factor(Warp& warp, const Step& step, const MatrixDescriptor& descriptor,
                                bool by_columns, std::uint32_t first_row,
                                std::span<FactorRow> rows) {
  const std::uint32_t actor = races_.is_on() ? races_.actors().begin_product(warp.number) : 0;
  const auto piece = [&](std::uint64_t address) {
    const std::byte* const found =
        spaces_.shared(warp, step, 0, address, factor_piece, {.reads = true});
    if (races_.is_on()) {
      races_.check_async(warp, step, AddressSpace::shared, 0, address, factor_piece, RaceKind::load,
                         actor);
    }
    return found;
  };
  for (std::uint32_t row = 0; row < rows.size() && !by_columns; ++row) {
    for (std::uint32_t k = 0; k < factor_bytes; k += factor_piece) {
      std::memcpy(rows[row].data() + k, piece(descriptor.by_rows(first_row + row, k)),
                  factor_piece);
    }
  }
  if (!by_columns) return;
  constexpr std::uint32_t element = 2;
  constexpr std::uint32_t rows_of_piece = factor_piece / element;
  for (std::uint32_t row = 0; row < rows.size(); row += rows_of_piece) {
    for (std::uint32_t k = 0; k < factor_bytes / element; ++k) {
      const std::byte* const from = piece(descriptor.by_columns(first_row + row, k));
      for (std::uint32_t r = 0; r < rows_of_piece; ++r) {
        std::memcpy(rows[row + r].data() + k * element, from + r * element, element);
      }
    }
  }
}

void WarpgroupUnit::read_registers(const WarpgroupMultiply& multiply, const std::byte* registers,
                                   std::span<FactorRow> rows) const {
  // Four registers: the first 16 bytes of rows g and g + 8, then the others of the same.
  for (std::uint32_t i = 0; i < multiply.a_values.size(); ++i) {
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
      const std::uint32_t word = lane_u32(registers, multiply.a_values[i], static_cast<int>(lane));
      std::memcpy(rows[lane / 4 + 8 * (i % 2)].data() + factor_piece * (i / 2) + lane % 4 * 4,
                  &word, sizeof word);
    }
  }
}

}  // namespace warpstack::simt
