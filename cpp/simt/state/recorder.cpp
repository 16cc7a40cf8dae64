#include "simt/state/recorder.h"

#include <algorithm>
#include <bit>

#include "simt/device/device_memory.h"
#include "simt/state/launch.h"

namespace warpstack::simt {
namespace {

trace::KernelHeader header_of(const Execution& execution) {
  const KernelProgram& program = execution.program;
  const LaunchOptions& options = execution.options;
  trace::KernelHeader header;
  header.name = program.name;
  header.launch_id = options.launch_id;
  header.grid = options.grid;
  header.block = options.block;
  header.cluster = execution.cluster;
  header.shared_memory_bytes = shared_bytes_of(program, options);
  header.registers_per_thread = options.registers_per_thread != 0 ? options.registers_per_thread
                                                                  : program.registers_per_thread;
  header.binary_version = program.binary_version;
  header.parent = options.parent;
  header.stream = options.stream;
  header.shared_window = shared_window;
  header.local_window = local_window;
  header.source = program.source;
  header.sources = program.sources;
  return header;
}

}  // namespace

void RecordedBlocks::clear() {
  blocks.clear();
  warps.clear();
  columns.clear();
  counts.clear();
}

Recorder::Recorder(const Execution& execution)
    : execution_(execution),
      memory_(execution.device.memory),
      moves_addresses_(!execution.device.records_gaps) {
  if (!execution.options.trace) return;
  builder_.emplace(header_of(execution), execution.options.storage);
  log_of_launch_ = log_ = &*builder_;
  for (const trace::StaticInstruction& row : execution.program.rows) {
    rows_.push_back(builder_->intern(row));
  }
}

Recorder::Recorder(const Execution& execution, const Recorder& trunk)
    : execution_(execution),
      memory_(trunk.memory_),
      moves_addresses_(trunk.moves_addresses_),
      rows_(trunk.rows_) {
  if (!trunk.builder_) return;
  branch_.emplace(*trunk.builder_);
  log_of_launch_ = log_ = &*branch_;
}

void Recorder::record_idle_access(Warp& warp, const Step& step) {
  if (is_matrix_access(step.action) || is_async_access(step.action)) {
    for (std::uint32_t row = 0; row < step.num_rows; ++row) {
      record_access(warp, step, 0, nullptr, row);
    }
  } else if (!is_texel_access(step.action) && execution_.program.memory[step.detail].constant) {
    record(warp, step, 0);
  } else {
    record_access(warp, step, 0, nullptr);
  }
}

void Recorder::find_move(std::uint64_t address) {
  known_ = {.begin = address, .bytes = 1, .by = 0, .changes = memory_.changes()};
  if (address < device_base) {  // shared or local memory
    known_.begin = 0;
    known_.bytes = device_base;
  } else if (const Allocation* const found = memory_.find(address)) {
    known_.begin = found->address;
    known_.bytes = found->bytes;
    known_.by = found->address - found->packed;
  } else {
    known_.by = address - memory_.packed(address);
  }
}

const LaneAddresses* Recorder::without_gaps(const LaneAddresses& lanes) {
  if (lanes.mask == 0) return &lanes;
  std::uint64_t least = ~std::uint64_t{0};
  std::uint64_t greatest = 0;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const std::uint64_t address = lanes.address[static_cast<std::size_t>(std::countr_zero(rest))];
    least = std::min(least, address);
    greatest = std::max(greatest, address);
  }
  const std::uint64_t by = moved_by(least);
  if (greatest - known_.begin < known_.bytes) {  // as a rule
    if (by == 0) return &lanes;
    moved_lanes_.mask = lanes.mask;
    for (std::size_t lane = 0; lane < trace::warp_size; ++lane) {
      moved_lanes_.address[lane] = lanes.address[lane] - by;
    }
    return &moved_lanes_;
  }
  moved_lanes_.mask = lanes.mask;
  for (std::uint32_t rest = lanes.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    moved_lanes_.address[lane] = lanes.address[lane] - moved_by(lanes.address[lane]);
  }
  return &moved_lanes_;
}

std::span<const std::uint64_t> Recorder::without_gaps(std::span<const std::uint64_t> addresses) {
  moved_words_.clear();
  for (const std::uint64_t address : addresses) {
    moved_words_.push_back(address - moved_by(address));
  }
  return moved_words_;
}

std::span<const MovedBytes> Recorder::without_gaps(std::span<const MovedBytes> moved) {
  moved_ranges_.clear();
  for (const MovedBytes& range : moved) {
    moved_ranges_.push_back({range.address - moved_by(range.address), range.bytes});
  }
  return moved_ranges_;
}

void Recorder::store_block() {
  if (!builder_ || !execution_.block.is_recorded) return;
  const std::uint64_t number = execution_.block.number;
  warps_.clear();
  columns_.clear();
  for (const Warp& warp : execution_.block.warps) {
    warps_.push_back(trace::TraceBuilder::entry_of(number, warp.number, warp.columns.counts()));
    columns_.push_back(warp.columns.view());
  }
  builder_->add_recorded(number, warps_, columns_);
}

void Recorder::begin_ahead() {
  if (branch_) branch_->begin();
}

void Recorder::keep_block(RecordedBlocks& kept) const {
  if (!branch_ || !execution_.block.is_recorded) return;
  const std::uint64_t number = execution_.block.number;
  for (const Warp& warp : execution_.block.warps) {
    kept.warps.push_back(trace::TraceBuilder::entry_of(number, warp.number, warp.columns.counts()));
    kept.columns.append(warp.columns.view());
  }
  kept.blocks.push_back({number, kept.warps.size()});
}

void Recorder::keep_counts(RecordedBlocks& kept) const {
  if (branch_ && !kept.blocks.empty()) kept.counts = branch_->row_counts();
}

void Recorder::store(const RecordedBlocks& kept) {
  if (!builder_) return;
  builder_->add_counts(kept.counts);
  const std::span warps(kept.warps);
  trace::ColumnCounts begin;
  std::size_t first = 0;
  for (const RecordedBlocks::Entry& block : kept.blocks) {
    const auto of_block = warps.subspan(first, block.end - first);
    trace::ColumnCounts end = begin;
    for (const trace::WarpEntry& warp : of_block) end += warp.counts();
    const trace::ColumnView columns = kept.columns.view(begin, end);
    builder_->add_recorded(block.number, of_block, {&columns, 1});
    begin = end;
    first = block.end;
  }
}

std::optional<KernelTrace> Recorder::finish() {
  if (!builder_) return std::nullopt;
  // Blocks that did not run wait as those that did.
  const auto of_grid = [this](trace::AwaitedTicks ticks) {
    const double share = static_cast<double>(execution_.recorded.num_blocks()) /
                         static_cast<double>(std::max<std::uint64_t>(execution_.num_blocks, 1));
    ticks.total = static_cast<std::uint64_t>(static_cast<double>(ticks.total) * share);
    return ticks;
  };
  builder_->set_awaited(of_grid(execution_.awaited_cycles), of_grid(execution_.awaited_ns));
  return builder_->finish();
}

}  // namespace warpstack::simt
