#include "timing/sm/control_waits.h"

namespace warpstack::timing {

void ControlWaits::start_warp(std::uint32_t warp, Cycle start) {
  stalls_until_[warp] = start;
  barriers_.clear(warp);
  readers_.start_warp(warp);
}

Wait ControlWaits::wait(std::uint32_t warp, std::uint32_t /*block*/, std::uint32_t row) {
  Wait result = barriers_.wait(warp, rows_.control(row).control);
  result.take({stalls_until_[warp], dep_cause});
  return result;
}

bool ControlWaits::issue(const Issue& issue) {
  if (issue.accesses) {
    hold_for_access(issue);
    if (rows_[issue.row].is_async_copy) barriers_.add_copy(issue.warp, issue.load);
  } else if (issue.is_active && !rows_[issue.row].is_memory) {
    hold_for_operation(issue);
  }
  stalls_until_[issue.warp] = issue.now + rows_.control(issue.row).distance;
  return false;
}

void ControlWaits::hold_for_access(const Issue& issue) {
  const trace::Control& control = rows_.control(issue.row).control;
  Held held{.read = control.read_barrier};
  if (control.write_barrier != trace::no_control_barrier) {
    if (issue.load != LoadStoreUnit::no_load) {
      barriers_.hold_for_load(issue.warp, control.write_barrier, issue.load, issue.now);
    } else {
      held.write = control.write_barrier;
      barriers_.hold_for_reading(issue.warp, control.write_barrier, issue.now);
    }
  }
  if (control.read_barrier != trace::no_control_barrier) {
    barriers_.hold_for_reading(issue.warp, control.read_barrier, issue.now);
  }
  readers_.push(issue.warp, held);
}

void ControlWaits::hold_for_operation(const Issue& issue) {
  const RowTable::ControlRow& control = rows_.control(issue.row);
  const RowTable::Row& row = rows_[issue.row];
  const std::uint8_t written = control.control.write_barrier;
  if (written != trace::no_control_barrier) {
    if (control.awaits_copies) {
      barriers_.hold_for_copies(issue.warp, written, issue.now);
    } else {
      barriers_.hold(issue.warp, written, issue.now + row.latency, issue.now);
    }
  }
  const std::uint8_t read = control.control.read_barrier;
  if (read != trace::no_control_barrier) {
    barriers_.hold(issue.warp, read, issue.now + row.interval, issue.now);
  }
}

bool ControlWaits::finish(const Done& load) {
  const std::uint8_t barrier = rows_.control(load.row).control.write_barrier;
  if (barrier != trace::no_control_barrier) {
    barriers_.load_is_done(load.warp, barrier, load.load, load.at, load.cause);
  }
  if (rows_[load.row].is_async_copy) {
    barriers_.copy_is_done(load.warp, load.load, load.at, load.cause);
  }
  return false;
}

void ControlWaits::free_readers(Cycle now, std::vector<std::uint32_t>& warps) {
  readers_.pop_sent([&](std::uint32_t warp, const Held& held) {
    for (const std::uint8_t barrier : {held.write, held.read}) {
      if (barrier == trace::no_control_barrier) continue;
      barriers_.sources_are_read(warp, barrier, now + 1);
    }
    warps.push_back(warp);
  });
}

}  // namespace warpstack::timing
