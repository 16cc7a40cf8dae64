#include "timing/sm/register_waits.h"

#include <algorithm>

namespace warpstack::timing {

RegisterWaits::RegisterWaits(const RowTable& rows, std::size_t num_warps)
    : rows_(rows),
      num_registers_(std::max<std::size_t>(rows.trace().num_registers(), 1)),
      registers_(num_warps * num_registers_) {}

void RegisterWaits::start_warp(std::uint32_t warp, Cycle start) {
  const auto first = static_cast<std::ptrdiff_t>(warp * num_registers_);
  std::fill_n(registers_.begin() + first, num_registers_, Wait{start, dep_cause});
}

Wait RegisterWaits::wait(std::uint32_t warp, std::uint32_t /*block*/, std::uint32_t row) {
  const Wait* registers = registers_.data() + warp * num_registers_;
  Wait result;
  for (const std::uint16_t reg : rows_.registers(rows_[row])) result.take(registers[reg]);
  return result;
}

bool RegisterWaits::issue(const Issue& issue) {
  if (!issue.is_active) return false;
  const RowTable::Row& row = rows_[issue.row];
  if (!row.is_memory) {
    write(issue.warp, row, {issue.now + row.latency, dep_cause});
  } else if (issue.load != LoadStoreUnit::no_load) {
    write(issue.warp, row, {never, first_load_cause + issue.load});
  }
  return false;
}

bool RegisterWaits::finish(const Done& load) {
  write(load.warp, rows_[load.row], {load.at, load.cause});
  return false;
}

void RegisterWaits::write(std::uint32_t warp, const RowTable::Row& row, const Wait& wait) {
  Wait* registers = registers_.data() + warp * num_registers_;
  for (const std::uint16_t reg : rows_.destinations(row)) registers[reg] = wait;
}

}  // namespace warpstack::timing
