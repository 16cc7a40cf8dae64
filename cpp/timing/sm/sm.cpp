#include "timing/sm/sm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "common/error.h"

namespace warpstack::timing {
namespace {

/// Groups of copies of instructions without control fields hold this barrier, as those of machine
/// code hold the one that they name.
constexpr std::uint32_t copy_barrier = 0;
/// Groups of products hold this one.
constexpr std::uint32_t product_barrier = num_barriers - 1;
constexpr auto tensor_unit = static_cast<std::uint8_t>(trace::OpClass::tensor);

}  // namespace

RowTable::RowTable(std::span<const trace::KernelTrace* const> kernels, const TimingConfig& config,
                   bool has_dependents) {
  const trace::KernelTrace* with = nullptr;
  const trace::KernelTrace* without = nullptr;
  for (const trace::KernelTrace* kernel : kernels) {
    if (has_dependents) std::ranges::copy(grid_steps(*kernel), std::back_inserter(grid_steps_));
    const std::size_t rows_before = rows_.size();
    const std::size_t control_before = control_.size();
    add(*kernel, config);
    if (rows_.size() == rows_before) continue;
    (control_.size() > control_before ? with : without) = kernel;
  }
  if (with != nullptr && without != nullptr) {
    const auto named = [](const trace::KernelTrace& kernel) {
      return "kernel " + std::to_string(kernel.header().launch_id) + " (" + kernel.header().name +
             ")";
    };
    throw InputError(named(*with) + " has the control fields of machine code and " +
                     named(*without) +
                     " has none: they cannot run on one SM at the same time; trace both alike, or "
                     "simulate one after the other");
  }
}

InstructionStream RowTable::stream(std::uint32_t grid, trace::WarpPosition position) const {
  // Local memory is each grid's own, whatever addresses the traces give it.
  constexpr std::uint64_t local_sectors = std::uint64_t{1} << 48;
  const Grid& of = grids_[grid];
  return {*of.trace, std::span(kinds_).subspan(of.first_row), position, of.first_row,
          grid * local_sectors};
}

void RowTable::add(const trace::KernelTrace& trace, const TimingConfig& config) {
  const Grid& grid =
      grids_.emplace_back(Grid{&trace, static_cast<std::uint32_t>(rows_.size()),
                               memory::CodeLines(trace, memory::CodeStorage::of(config.gpu))});
  num_registers_ = std::max<std::size_t>(num_registers_, trace.num_registers());
  const bool has_product_waits = trace::has_product_waits(trace.effects());
  for (std::size_t index = 0; index < trace.instructions().size(); ++index) {
    const trace::StaticInstruction& instruction = trace.instructions()[index];
    const trace::Effects& effects = trace.effects()[index];
    Row row;
    row.latency = whole_cycles(config.latency.of(instruction.op_class, effects.tensor));
    const auto unit = static_cast<std::uint8_t>(effects.unit);
    row.interval = instruction.is_memory() ? 0 : config.interval[unit];
    if (instruction.op_class == trace::OpClass::tensor) {
      row.interval = static_cast<std::uint32_t>(config.latency.tensor.cycles(effects.tensor));
    }
    row.unit = unit;
    row.is_memory = instruction.is_memory();
    row.uses_caches = instruction.uses_caches();
    row.stops_warp = config.gpu.atomic_wait == AtomicWait::until_done && row.uses_caches &&
                     (instruction.kind == trace::MemoryKind::atomic ||
                      instruction.kind == trace::MemoryKind::reduction);
    row.is_block_barrier = effects.is_block_barrier;
    row.arrives_at_barrier = effects.barrier.kind == trace::BarrierStep::Kind::arrive;
    row.is_async_copy = effects.is_grouped_copy;
    row.registers = static_cast<std::uint32_t>(registers_.size());
    row.is_async_product = has_product_waits && effects.is_async_product;
    const auto sources =
        row.is_async_product ? trace::awaited_by_product(instruction) : instruction.sources;
    row.num_sources = static_cast<std::uint16_t>(sources.size());
    registers_.insert(registers_.end(), sources.begin(), sources.end());
    if (!row.is_async_product) {
      row.num_destinations = static_cast<std::uint16_t>(instruction.destinations.size());
      registers_.insert(registers_.end(), instruction.destinations.begin(),
                        instruction.destinations.end());
    }
    instructions_.push_back(&instruction);
    effects_.push_back(&effects);
    kinds_.emplace_back(instruction);
    rows_.push_back(row);
    if (!instruction.control) continue;
    ControlRow& control = control_.emplace_back();
    control.control = *instruction.control;
    control.distance = control.control.issue_distance();
    control.awaits_copies = effects.awaits_copies;
  }
  read_waits(grid);
}

void RowTable::read_waits(const Grid& grid) {
  using Step = trace::CopyGroupStep;
  bool awaits_writes = false;
  bool has_bulk_groups = false;
  for (const trace::Effects& effects : grid.trace->effects()) {
    const Step& step = effects.groups;
    has_copy_groups_ = has_copy_groups_ || step.kind != Step::Kind::none;
    const bool awaits_bulk = step.kind == Step::Kind::wait && step.of == Step::Of::bulk_stores;
    has_bulk_groups = has_bulk_groups || awaits_bulk;
    awaits_writes = awaits_writes || (awaits_bulk && !step.for_reading);
    has_phases_ = has_phases_ || effects.phase.kind == trace::PhaseStep::Kind::wait;
  }
  if (!has_bulk_groups) return;
  has_bulk_groups_ = true;
  for (std::size_t row = grid.first_row; row < rows_.size(); ++row) {
    rows_[row].is_bulk_store = effects_[row]->is_bulk_store;
    rows_[row].awaits_write = rows_[row].is_bulk_store && awaits_writes;
  }
}

Sm::Sm(const TimingConfig& config, const RowTable& rows, const memory::CacheConfig& l1,
       const memory::Cache& l2, const Residency& most, std::uint32_t index)
    : rows_(rows),
      index_(index),
      issue_slots_(config.gpu.issue_width),
      slots_per_scheduler_(
          static_cast<std::uint32_t>(std::ceil(config.gpu.issue_width / config.schedulers_per_sm))),
      num_registers_(rows.num_registers()),
      has_control_(rows.has_control()),
      has_copy_groups_(rows.has_copy_groups()),
      has_bulk_groups_(rows.has_bulk_groups()),
      has_phases_(rows.has_phases()),
      has_dependents_(rows.has_dependents()),
      barrier_latency_(
          std::max<Cycle>(whole_cycles(config.latency.of(trace::OpClass::barrier)), 1)),
      warp_start_(to_ticks(config.gpu.warp_start_cycles)),
      lsu_(config, l1, l2, index),
      blocks_(most.blocks),
      free_slots_((most.warps + 63) / 64),
      grid_ends_(rows.grids().size()),
      released_(rows.grids().size(), -1),
      words_(std::max<std::size_t>((most.warps + 63) / 64, 1)),
      waiting_(words_),
      turns_(config.schedulers_per_sm * words_),
      units_(config.schedulers_per_sm),
      wheel_(most.warps),
      control_barriers_(has_control_ || has_copy_groups_ ? most.warps : 0),
      phases_(has_phases_ ? blocks_.size() : 0, has_phases_ ? most.warps : 0),
      bulk_groups_(has_bulk_groups_ ? most.warps : 0) {
  for (std::size_t b = blocks_.size(); b > 0; --b) {
    free_blocks_.push_back(static_cast<std::uint32_t>(b - 1));
  }
  const std::size_t slots = most.warps;
  for (std::uint32_t slot = 0; slot < slots; ++slot) free_slots_[slot / 64] |= bit_of(slot);
  warps_.resize(slots);
  candidates_.resize(words_);
  slot_of_.resize(words_ * 64);
  schedulers_.resize(config.schedulers_per_sm, WarpScheduler(config.gpu.scheduler, words_));
  shares_.emplace_back();
  for (std::size_t warps = 1; warps <= slots; ++warps) {
    const auto count = static_cast<std::int64_t>(warps);
    shares_.emplace_back(parts_per_slot / count, parts_per_slot % count);
  }
  for (std::size_t slot = 0; slot < slots; ++slot) {
    warps_[slot].scheduler = static_cast<std::uint32_t>(slot % schedulers_.size());
  }
  for (const RowTable::Grid& grid : rows.grids()) {
    instruction_caches_.emplace_back();
    if (grid.code.is_all_there()) continue;
    instruction_caches_.back().emplace(grid.code);
    waits_for_code_ = true;
  }
  if (has_control_) return;  // nobody looks up registers
  registers_.resize(slots * num_registers_);
  constexpr std::size_t near_cache_bytes = std::size_t{2} << 20;
  prefetches_ =
      registers_.size() * sizeof(RegisterState) * config.memory.num_sms > near_cache_bytes;
}

void Sm::take_slots(Block& block, std::size_t warps) {
  for (std::size_t word = 0; word < free_slots_.size() && block.slots.size() < warps; ++word) {
    while (free_slots_[word] != 0 && block.slots.size() < warps) {
      const auto bit = static_cast<std::uint32_t>(std::countr_zero(free_slots_[word]));
      free_slots_[word] &= free_slots_[word] - 1;
      block.slots.push_back(static_cast<std::uint32_t>(word * 64) + bit);
    }
  }
}

void Sm::launch(const BlockStart& start_of, Cycle now) {
  lose_until(now);
  come_to(now);
  const std::uint32_t block_slot = free_blocks_.back();
  free_blocks_.pop_back();
  const RowTable::Grid& grid = rows_.grids()[start_of.grid];
  Block& block = blocks_[block_slot];
  block = {};
  block.grid = start_of.grid;
  if (has_phases_) phases_.clear_block(block_slot);
  take_slots(block, grid.trace->header().warps_per_block());
  auto next_slot = block.slots.begin();
  const auto num_warps =
      static_cast<std::uint32_t>(grid.trace->blocks().warps(start_of.block).size());
  block.is_whole = num_warps == grid.trace->header().warps_per_block();
  for (std::uint32_t w = 0; w < num_warps; ++w) {
    InstructionStream stream = rows_.stream(start_of.grid, {start_of.block, w});
    if (stream.done()) {
      blocks_[block_slot].is_whole = false;
      continue;
    }
    next_warp_start_ = std::max(next_warp_start_, now * ticks_per_cycle);
    const Cycle start = cycle_at_or_after(next_warp_start_);
    next_warp_start_ += warp_start_;
    const std::uint32_t slot = *next_slot++;
    ResidentWarp& warp = warps_[slot];
    warp.stream = std::move(stream);
    warp.block = block_slot;
    warp.is_resident = true;
    warp.is_at_barrier = warp.has_exited = false;
    warp.barrier_until = start;
    warp.barrier_detail = StackDetail::starts;
    warp.finish = start;
    warp.code_line = grid.code.size();
    warp.code_ready = -1;
    ++warp.number;
    if (has_control_ || has_copy_groups_) control_barriers_.clear(slot);
    if (has_phases_) phases_.clear_warp(slot);
    if (has_bulk_groups_) bulk_groups_.clear(slot);
    warp.products_done = -1;
    if (has_control_) {
      warp.stalls_until = 0;
    } else {
      const auto first = static_cast<std::ptrdiff_t>(slot * num_registers_);
      std::fill_n(registers_.begin() + first, num_registers_, ready_at(0));
    }
    ++blocks_[block_slot].resident;
    ++blocks_[block_slot].unfinished;
    ++num_warps_;
    if (next_age_ == slot_of_.size()) renumber();
    warp.age = next_age_++;
    slot_of_[warp.age] = slot;
    by_age_.push_back(slot);
    schedulers_[warp.scheduler].add(warp.age);
    if (waits_for_code_) come_to_code(slot, start);
    look_ahead(slot);
  }
  next_ = std::min(next_, now);
}

void Sm::lose_until(Cycle now) {
  if (num_warps_ > 0 && now > last_ + 1) {
    lose(issue_slots_.before(now) - issue_slots_.before(last_ + 1), last_ + 1);
  }
  last_ = now - 1;
}

void Sm::step(BlockSource* dispatcher) {
  const Cycle now = next_;
  lose_until(now);
  come_to(now);
  deliver(now);
  if (!draining_.empty()) retire(now, dispatcher);
  if (num_warps_ > 0) issue(now);
  for (const std::uint32_t grid : triggered_) {
    if (dispatcher) dispatcher->trigger(grid, now);
  }
  triggered_.clear();
  if (lsu_.next(now) == now) {
    lsu_.step(now);
    if (has_control_ || has_bulk_groups_) free_readers(now);
    complete_loads(now);
  }
  last_ = now;

  next_ = lsu_.next(now + 1);
  if (next_ > now + 1) next_ = std::min(next_, next_issue(now));
  if (!arrivals_.empty()) {
    const Reply& first = arrivals_.front();
    next_ = std::min(next_, cycle_at_or_after(first.time));
    lsu_.prefetch(first.owner);
  }
  for (const std::uint32_t slot : draining_) {
    if (warps_[slot].loads.empty()) {
      next_ = std::min(next_, std::max(warps_[slot].finish, now + 1));
    }
  }
}

void Sm::deliver(Cycle now) {
  while (!arrivals_.empty() && arrivals_.front().time <= now * ticks_per_cycle) {
    lsu_.deliver(arrivals_.front(), now);
    arrivals_.pop();
  }
  complete_loads(now);
}

void Sm::complete_loads(Cycle now) {
  for (const std::uint32_t id : lsu_.completed()) {
    const Load& load = lsu_.load(id);
    const RowTable::Row& row = rows_[load.row];
    ResidentWarp& warp = warps_[load.warp];
    settle(load.warp);
    if (has_phases_) {  // other warps of the block may wait for it
      for (const std::uint32_t slot : blocks_[warp.block].slots) {
        if (warps_[slot].cause == first_load_cause + id) settle(slot);
      }
    }
    const StackDetail sender =
        row.uses_caches ? StackDetail::l1_latency : StackDetail::shared_memory;
    const auto cause = static_cast<std::uint32_t>(sender);
    if (load.lost_parts > 0) {
      CpiStack<std::int64_t> lost;
      if (load.latency.sum() > 0) {
        // As in the papers (GPUMech, Table III): a load that DRAM serves waits for DRAM alone.
        CpiStack<std::int64_t> latency = load.latency;
        if (latency[StackComponent::dram] > 0) {
          latency[StackComponent::dram] += latency[StackComponent::l2];
          latency[StackComponent::l2] = 0;
        }
        add_in_proportion(lost, load.lost_parts, latency);
      } else {
        lost[component_of(sender)] += load.lost_parts;
      }
      slots_.of_loads += lost;
      if (row_slots_) row_slots_->finish_load(id, load.row, lost);
    }
    const Cycle done = std::max(load.done, now);
    if (has_control_) {
      const std::uint8_t barrier = rows_.control(load.row).control.write_barrier;
      if (barrier != trace::no_control_barrier) {
        control_barriers_.load_is_done(load.warp, barrier, id, done, cause);
      }
    } else {
      const std::size_t first = load.warp * num_registers_;
      for (const std::uint16_t reg : rows_.destinations(row)) {
        registers_[first + reg] = ready_at(done, sender);
      }
    }
    if ((has_control_ || has_copy_groups_) && row.is_async_copy) {
      control_barriers_.copy_is_done(load.warp, id, done, cause);
    }
    if (row.is_bulk_store) bulk_groups_.is_written(load.warp, id, done);
    warp.finish = std::max(warp.finish, done);
    std::erase(warp.loads, id);
    if (warp.atomic == id) warp.atomic = LoadStoreUnit::no_load;
    if (warp.has_exited) {
      drain(load.warp);
    } else if (!warp.is_at_barrier) {
      look_ahead(load.warp);
    }
    if (has_phases_ && phases_.load_is_done(warp.block, id, done)) look_at_phases(warp.block);
    lsu_.release(id);
  }
  lsu_.completed().clear();
}

void Sm::retire(Cycle now, BlockSource* dispatcher) {
  bool has_retired = false;
  std::erase_if(draining_, [&](std::uint32_t slot) {
    ResidentWarp& warp = warps_[slot];
    if (!warp.loads.empty() || warp.finish > now) return false;
    warp.is_resident = false;
    wait_for_others(warp, slot);
    end_ = now;
    has_retired = true;
    --num_warps_;
    Block& block = blocks_[warp.block];
    if (--block.resident == 0) {
      free_blocks_.push_back(warp.block);
      std::ranges::sort(free_blocks_, std::greater<>());
      for (const std::uint32_t own : block.slots) free_slots_[own / 64] |= bit_of(own);
      grid_ends_[block.grid] = now;
      if (dispatcher) dispatcher->free_place(index_, block.grid, block.has_triggered, now);
    }
    return true;
  });
  if (!has_retired) return;
  std::erase_if(by_age_, [this](std::uint32_t slot) { return !warps_[slot].is_resident; });
  if (!dispatcher) return;
  // Whoever had a place before this cycle has its block already.
  while (const auto start = dispatcher->start_on(index_, now)) launch(*start, now);
}

void Sm::issue_from(std::uint32_t slot, std::uint32_t scheduler, Cycle now) {
  ResidentWarp& warp = warps_[slot];
  const std::uint32_t row_number = warp.stream.row();
  const RowTable::Row& row = rows_[row_number];
  const std::uint32_t block = warp.block;
  bool waits_at_barrier = false;
  bool arrives_at_barrier = false;
  ++instructions_;
  warp.finish = std::max(warp.finish, now + 1);
  // A unit takes an instruction whose guard is false everywhere like any other.
  if (row.interval > 0) {
    units_[scheduler].free[row.unit] = now + row.interval;
    units_[scheduler].busy |= 1u << row.unit;
  }
  if (row.unit == tensor_unit) tensor_cycles_ += row.interval;
  std::uint32_t load = LoadStoreUnit::no_load;
  if (warp.stream.mask() != 0) {
    const std::size_t first = slot * num_registers_;
    if (row.is_memory) {
      if (warp.stream.memory_count() > 0) {
        const trace::StaticInstruction& instruction = rows_.instruction(row_number);
        load = row.uses_caches
                   ? lsu_.issue(instruction, warp.stream.access(), slot, now,
                                row.awaits_write || row.stops_warp)
                   : lsu_.issue_shared(instruction, row_number, warp.stream.memory_count(),
                                       std::popcount(warp.stream.mask()), slot, now);
        if (row.stops_warp) warp.atomic = load;
        if (has_control_) hold_for_access(slot, row_number, load, now);
        if ((has_control_ || has_copy_groups_) && row.is_async_copy) {
          control_barriers_.add_copy(slot, load);
        }
        if (has_bulk_groups_) {
          if (!has_control_) {
            readers_.push() = {
                .slot = slot, .number = warp.number, .is_bulk_store = row.is_bulk_store};
          }
          if (row.is_bulk_store) bulk_groups_.add(slot, load, now);
        }
      }
      if (load != LoadStoreUnit::no_load) warp.loads.push_back(load);
      if (load != LoadStoreUnit::no_load && !has_control_) {
        for (const std::uint16_t reg : rows_.destinations(row)) {
          registers_[first + reg] = pending + load;
        }
      }
    } else {
      if (has_control_) {
        hold_for_operation(slot, row_number, now);
      } else {
        for (const std::uint16_t reg : rows_.destinations(row)) {
          registers_[first + reg] = ready_at(now + row.latency);
        }
      }
      if (row.num_destinations > 0 || row.is_async_product)
        warp.finish = std::max(warp.finish, now + row.latency);
      waits_at_barrier = row.is_block_barrier;
      arrives_at_barrier = row.arrives_at_barrier;
    }
    if (has_copy_groups_ || has_phases_) take_async_steps(slot, row_number, load, now);
    if (has_dependents_) take_grid_step(block, row_number);
  }
  if (has_control_) warp.stalls_until = now + rows_.control(row_number).distance;
  warp.stream.advance();
  if (waits_for_code_ && !warp.stream.done()) come_to_code(slot, now);
  if (warp.stream.done()) {
    warp.has_exited = true;
    schedulers_[scheduler].remove(warp.age);
    draining_.push_back(slot);
    drain(slot);
    --blocks_[block].unfinished;
    if (waits_at_barrier || arrives_at_barrier) {
      const trace::BarrierStep step = barrier_step(block, row_number);
      // At those of all threads it is not awaited any more.
      if (step.threads > 0) blocks_[block].barriers.arrive(step);
    }
    for (std::uint32_t number = 0; number < trace::num_block_barriers; ++number) {
      check_barrier(block, number, now);
    }
  } else if (waits_at_barrier) {
    const trace::BarrierStep step = barrier_step(block, row_number);
    warp.is_at_barrier = true;
    warp.barrier = step.number;
    wait_for_others(warp, slot);
    blocks_[block].barriers.arrive(step);
    check_barrier(block, step.number, now);
  } else {
    look_ahead(slot);
    if (!arrives_at_barrier || !blocks_[block].is_whole) return;
    const trace::BarrierStep step = barrier_step(block, row_number);
    blocks_[block].barriers.arrive(step);
    check_barrier(block, step.number, now);
  }
}

trace::BarrierStep Sm::barrier_step(std::uint32_t block, std::uint32_t row) const {
  const trace::BarrierStep& step = rows_.effects(row).barrier;
  return blocks_[block].is_whole ? step : trace::BarrierStep{.kind = step.kind};
}

void Sm::hold_for_access(std::uint32_t slot, std::uint32_t row, std::uint32_t load, Cycle now) {
  const trace::Control& control = rows_.control(row).control;
  Reader& reader = readers_.push();
  reader = {slot, warps_[slot].number, control.read_barrier, trace::no_control_barrier};
  reader.is_bulk_store = rows_[row].is_bulk_store;
  if (control.write_barrier != trace::no_control_barrier) {
    if (load != LoadStoreUnit::no_load) {
      control_barriers_.hold_for_load(slot, control.write_barrier, load, now);
    } else {
      reader.write_barrier = control.write_barrier;
      control_barriers_.hold_for_reading(slot, control.write_barrier, now);
    }
  }
  if (control.read_barrier != trace::no_control_barrier) {
    control_barriers_.hold_for_reading(slot, control.read_barrier, now);
  }
}

void Sm::hold_for_operation(std::uint32_t slot, std::uint32_t row_number, Cycle now) {
  const RowTable::ControlRow& control = rows_.control(row_number);
  const RowTable::Row& row = rows_[row_number];
  const std::uint8_t written = control.control.write_barrier;
  if (written != trace::no_control_barrier) {
    if (control.awaits_copies) {
      control_barriers_.hold_for_copies(slot, written, now);
    } else {
      control_barriers_.hold(slot, written, now + row.latency, now);
    }
  }
  const std::uint8_t read = control.control.read_barrier;
  if (read != trace::no_control_barrier) {
    control_barriers_.hold(slot, read, now + row.interval, now);
  }
}

void Sm::take_async_steps(std::uint32_t slot, std::uint32_t row_number, std::uint32_t load,
                          Cycle now) {
  ResidentWarp& warp = warps_[slot];
  const RowTable::Row& row = rows_[row_number];
  if (row.is_async_product) {
    warp.products_done = std::max(warp.products_done, now + row.latency);
  }
  if (has_copy_groups_) {
    const trace::CopyGroupStep& group = rows_.copy_step(row_number);
    if (group.kind == trace::CopyGroupStep::Kind::commit) {
      switch (group.of) {
        case trace::CopyGroupStep::Of::copies:
          control_barriers_.hold_for_copies(slot, copy_barrier, now);
          break;
        case trace::CopyGroupStep::Of::products:
          control_barriers_.hold(slot, product_barrier, std::max(warp.products_done, now + 1), now);
          break;
        case trace::CopyGroupStep::Of::bulk_stores:
          if (has_bulk_groups_) bulk_groups_.commit(slot);
          break;
      }
    }
  }
  if (!has_phases_) return;
  const trace::PhaseStep& phase = rows_.phase_step(row_number);
  if (phase.kind == trace::PhaseStep::Kind::none) return;
  if (phase.kind == trace::PhaseStep::Kind::wait) {
    phases_.pass(slot, phase.barrier, phase.count);
    return;
  }
  std::vector<std::uint32_t> loads;
  if (load != LoadStoreUnit::no_load) loads.push_back(load);
  for (const std::uint32_t other : warp.loads) {
    if (phase.is_after_copies && rows_[lsu_.load(other).row].is_async_copy) loads.push_back(other);
  }
  const Cycle latency = row.is_memory ? 1 : std::max<Cycle>(row.latency, 1);
  const Cycle products = phase.is_after_products ? warp.products_done : 0;
  phases_.complete(warp.block, phase.barrier, loads, std::max(now + latency, products));
  look_at_phases(warp.block);
}

void Sm::take_grid_step(std::uint32_t block, std::uint32_t row) {
  if (rows_.grid_step(row) != trace::GridStep::trigger || blocks_[block].has_triggered) return;
  blocks_[block].has_triggered = true;
  triggered_.push_back(blocks_[block].grid);
}

void Sm::release(std::uint32_t grid, Cycle cycle) {
  released_[grid] = cycle;
  for (const std::uint32_t slot : by_age_) {
    const ResidentWarp& warp = warps_[slot];
    if (blocks_[warp.block].grid != grid || warp.has_exited || warp.is_at_barrier) continue;
    if (rows_.grid_step(warp.stream.row()) != trace::GridStep::wait) continue;
    look_ahead(slot);
    next_ = std::min(next_, cycle);
  }
}

void Sm::look_at_phases(std::uint32_t block) {
  for (const std::uint32_t slot : blocks_[block].slots) {
    const ResidentWarp& warp = warps_[slot];
    if (!warp.is_resident || warp.has_exited || warp.is_at_barrier || warp.stream.done()) continue;
    if (rows_.phase_step(warp.stream.row()).kind == trace::PhaseStep::Kind::wait) look_ahead(slot);
  }
}

ControlBarriers::Wait Sm::copy_wait(std::uint32_t slot, std::uint32_t row) {
  using Kind = trace::CopyGroupStep::Kind;
  const trace::CopyGroupStep& step = rows_.copy_step(row);
  if (step.kind == Kind::wait_all) return control_barriers_.wait_for_copies(slot);
  if (step.kind != Kind::wait) return {};
  if (step.of == trace::CopyGroupStep::Of::bulk_stores) {
    return bulk_groups_.wait(slot, step.most, step.for_reading);
  }
  const bool is_of_products = step.of == trace::CopyGroupStep::Of::products;
  return control_barriers_.wait_for_most(slot, is_of_products ? product_barrier : copy_barrier,
                                         step.most);
}

void Sm::free_readers(Cycle now) {
  while (readers_.size() > lsu_.queued_instructions()) {
    const Reader reader = readers_.front();
    readers_.pop();
    const ResidentWarp& warp = warps_[reader.slot];
    if (warp.number != reader.number) continue;
    if (reader.is_bulk_store) {
      bulk_groups_.is_read(reader.slot, now + 1);
    } else if (!has_control_) {
      continue;
    }
    for (const std::uint8_t barrier : {reader.write_barrier, reader.barrier}) {
      if (barrier == trace::no_control_barrier) continue;
      control_barriers_.sources_are_read(reader.slot, barrier, now + 1);
    }
    if (warp.is_resident && !warp.has_exited && !warp.is_at_barrier) look_ahead(reader.slot);
  }
}

void Sm::check_barrier(std::uint32_t block, std::uint32_t number, Cycle now) {
  if (!blocks_[block].barriers.is_complete(number, blocks_[block].unfinished)) return;
  blocks_[block].barriers.clear(number);
  for (const std::uint32_t slot : blocks_[block].slots) {
    ResidentWarp& warp = warps_[slot];
    if (!warp.is_resident || !warp.is_at_barrier || warp.barrier != number) continue;
    warp.is_at_barrier = false;
    warp.barrier_until = now + barrier_latency_;
    warp.barrier_detail = StackDetail::barriers;
    look_ahead(slot);
  }
}

void Sm::come_to_code(std::uint32_t slot, Cycle now) {
  ResidentWarp& warp = warps_[slot];
  const std::uint32_t number = blocks_[warp.block].grid;
  if (!instruction_caches_[number]) return;
  const RowTable::Grid& grid = rows_.grids()[number];
  const std::uint32_t line = grid.code.of_row(warp.stream.row() - grid.first_row);
  if (line == warp.code_line) return;
  warp.code_line = line;
  warp.code_ready = instruction_caches_[number]->come_to(line, now);
}

void Sm::explain(std::string& text, std::size_t most) const {
  std::size_t lines = 0;
  for (const std::uint32_t slot : by_age_) {
    if (lines++ == most) {
      text += "\n  ...";
      return;
    }
    const ResidentWarp& warp = warps_[slot];
    const trace::WarpPosition position = warp.stream.position();
    text += "\n  SM " + std::to_string(index_) + ", block " + std::to_string(position.block) +
            ", warp " + std::to_string(position.warp) + ": ";
    if (warp.has_exited) {
      text += "has issued everything; loads in flight: " + std::to_string(warp.loads.size());
      continue;
    }
    const trace::StaticInstruction& next = rows_.instruction(warp.stream.row());
    text += "next " + next.opcode + " at pc " + std::to_string(next.pc) + ", ";
    if (warp.is_at_barrier) {
      const Block& block = blocks_[warp.block];
      text += "waits at " + block.barriers.describe(warp.barrier, block.unfinished);
    } else if (warp.cause >= first_load_cause && warp.ready == never) {
      const Load& load = lsu_.load(warp.cause - first_load_cause);
      text += "waits for " + rows_.instruction(load.row).opcode + " at pc " +
              std::to_string(rows_.instruction(load.row).pc) + ", " + std::to_string(load.fetches) +
              " requests of which are not there";
    } else if (has_dependents_ && warp.ready == never &&
               rows_.grid_step(warp.stream.row()) == trace::GridStep::wait) {
      text += "waits for the kernels that its own was launched behind";
    } else if (has_phases_ && warp.ready == never) {
      text += "waits at the mbarrier at " +
              std::to_string(rows_.phase_step(warp.stream.row()).barrier) + " of shared memory";
    } else if (warp.place == Place::at_load_store_unit ||
               (warp.need == Need::load_store_unit && !lsu_.is_idle())) {
      text += "waits for the load-store unit, whose time counts as " +
              std::string(name_of(component_of(lsu_.cause_of_waiting()))) + " in the CPI stack";
    } else {
      text += "ready";
    }
  }
}

}  // namespace warpstack::timing
