#include "simt/recorder.h"

#include "simt/device_memory.h"

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
  header.shared_memory_bytes = program.dynamic_shared_offset + options.dynamic_shared_bytes;
  header.registers_per_thread = options.registers_per_thread != 0 ? options.registers_per_thread
                                                                  : program.registers_per_thread;
  header.binary_version = program.binary_version;
  header.parent = options.parent;
  header.stream = options.stream;
  header.shared_window = shared_window;
  header.local_window = local_window;
  header.source = program.source;
  return header;
}

}  // namespace

Recorder::Recorder(const Execution& execution) : execution_(execution) {
  if (!execution.options.trace) return;
  builder_.emplace(header_of(execution), execution.options.storage);
  for (const trace::StaticInstruction& row : execution.program.rows) {
    rows_.push_back(builder_->intern(row));
  }
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

void Recorder::store_block() {
  if (!builder_) return;
  builder_->begin_block(execution_.block.number);
  for (const Warp& warp : execution_.block.warps) {
    builder_->begin_warp(warp.number);
    builder_->append_columns(warp.columns.view());
  }
  builder_->end_block();
}

std::optional<KernelTrace> Recorder::finish() {
  if (!builder_) return std::nullopt;
  return builder_->finish();
}

}  // namespace warpstack::simt
