#include "timing/sm/row_table.h"

namespace warpstack::timing {

RowTable::RowTable(const trace::KernelTrace& trace, const TimingConfig& config)
    : trace_(trace), flags_(trace.instructions()) {
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
    row.is_block_barrier = effects.is_block_barrier;
    row.is_async_copy = effects.is_grouped_copy(instruction);
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
    is_memory_.push_back(row.is_memory);
    rows_.push_back(row);
    if (!instruction.control) continue;
    ControlRow& control = control_.emplace_back();
    control.control = *instruction.control;
    control.distance = control.control.issue_distance();
    control.awaits_copies = effects.awaits_copies;
  }
  if (!has_control()) read_waits();
}

void RowTable::read_waits() {
  using Step = trace::CopyGroupStep;
  bool has_bulk_groups = false;
  bool awaits_writes = false;
  for (const trace::Effects& effects : trace_.effects()) {
    const Step& step = effects.groups;
    has_async_waits_ = has_async_waits_ || step.kind != Step::Kind::none ||
                       effects.phase.kind == trace::PhaseStep::Kind::wait;
    const bool awaits_bulk = step.kind == Step::Kind::wait && step.of == Step::Of::bulk_stores;
    has_bulk_groups = has_bulk_groups || awaits_bulk;
    awaits_writes = awaits_writes || (awaits_bulk && !step.for_reading);
  }
  if (!has_bulk_groups) return;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    rows_[row].is_bulk_store = trace_.effects()[row].is_bulk_store;
    rows_[row].awaits_write = rows_[row].is_bulk_store && awaits_writes;
  }
}

}  // namespace warpstack::timing
