#include "simt/state/launch.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "common/error.h"
#include "simt/run/grid_runner.h"
#include "simt/state/cluster.h"
#include "simt/state/execution.h"
#include "simt/units/constant_banks.h"

namespace warpstack::simt {
namespace {

/// The stack begins at a multiple of this, because functions store vectors at fixed distances from
/// it.
constexpr std::uint64_t stack_alignment = 16;

constexpr std::uint64_t max_shared_bytes = std::uint64_t{227} << 10;

void check_launch(const KernelProgram& program, std::span<const std::byte> parameters,
                  const DeviceMemory& memory, const LaunchOptions& options) {
  const auto fail = [&](const std::string& what) {
    throw InputError("kernel " + program.name + ": " + what);
  };
  trace::KernelHeader shape;
  shape.name = program.name;
  shape.grid = options.grid;
  shape.block = options.block;
  shape.validate();
  const std::uint64_t threads = shape.threads_per_block();
  if (threads > program.max_threads) {
    fail("a block of " + std::to_string(threads) + " threads is too large: at most " +
         std::to_string(program.max_threads));
  }
  try {
    check_cluster(options.grid, cluster_of(program, options));
  } catch (const InputError& error) {
    fail(error.what());
  }
  const std::uint64_t shared = shared_bytes_of(program, options);
  if (options.dynamic_shared_bytes > max_shared_bytes || shared > max_shared_bytes) {
    fail("a block needs " + std::to_string(shared) + " bytes of shared memory, at most " +
         std::to_string(max_shared_bytes) + " are possible");
  }
  const std::uint64_t blocks = options.grid[0] * options.grid[1] * options.grid[2];
  if (options.cooperative && blocks > max_resident_blocks) {
    fail("a cooperative launch of " + std::to_string(blocks) +
         " blocks is too large: they are resident at once, and no GPU holds more than " +
         std::to_string(max_resident_blocks));
  }
  // As on a GPU, local memory comes out of the device's memory.
  const std::uint64_t local = resident_local_bytes(program, options);
  if (const std::uint64_t free = memory.capacity() - memory.used(); local > free) {
    fail("the threads that run at once need " + std::to_string(local) + " bytes of local memory (" +
         std::to_string(local_bytes_of(program, options)) + " each), and the device has " +
         std::to_string(free) + " of " + std::to_string(memory.capacity()) +
         " bytes free; give it more memory or launch smaller thread blocks");
  }
  if (parameters.size() < program.parameter_bytes) {
    fail("its parameters take " + std::to_string(program.parameter_bytes) + " bytes, " +
         std::to_string(parameters.size()) + " are given");
  }
}

/// One in how many blocks a launch is to record.
std::uint64_t one_in(const LaunchOptions& options, std::uint64_t num_blocks) {
  if (options.sample_blocks != automatic_sample) return options.sample_blocks;
  constexpr std::uint64_t blocks = 1024;
  constexpr std::uint64_t most = 16;
  return std::clamp<std::uint64_t>((num_blocks - 1) / blocks + 1, 1, most);
}

/// The sample of a launch that is not cooperative.
trace::BlockSample sample_of(const KernelProgram& program, const LaunchOptions& options) {
  const std::uint64_t num_blocks = options.grid[0] * options.grid[1] * options.grid[2];
  // Who leaves out blocks of a small grid has long ones.
  const bool are_persistent =
      !options.run_others || (options.num_sms > 0 && num_blocks % options.num_sms == 0);
  return trace::BlockSample::one_in(
      num_blocks, one_in(options, num_blocks),
      trace::consecutive_blocks(options.grid, cluster_of(program, options)), are_persistent);
}

/// What a step does by which its block sees what other blocks have done; empty for most.
std::string_view tie_to_others(const KernelProgram& program, const Step& step) {
  constexpr std::string_view atomic = "an atomic operation on global memory";
  const auto is_global = [](AddressSpace space) {
    return space == AddressSpace::global || space == AddressSpace::generic;
  };
  switch (step.action) {
    case Action::atomic:
      // Others' shares of a count are known.
      return is_global(program.memory[step.detail].space) && !program.memory[step.detail].counts
                 ? atomic
                 : "";
    case Action::bulk_copy: {
      const BulkCopy& copy = program.bulk_copies[step.detail];
      return copy.reduction != nullptr && is_global(copy.to.space) ? atomic : "";
    }
    case Action::tensor_copy:
      return program.tensor_copies[step.detail].reduces ? atomic : "";
    case Action::call: {
      const Call& call = program.calls[step.detail];
      if (call.built_in != Call::BuiltIn::runtime) return "";
      const bool launches = call.runtime_function == RuntimeFunction::launch ||
                            call.runtime_function == RuntimeFunction::launch_v2;
      return launches ? "a launch of a kernel" : "";
    }
    default:
      return "";
  }
}

/// Throws InputError if the blocks that do not run may be missed by those that do.
void check_others(const KernelProgram& program, const LaunchOptions& options) {
  const trace::BlockSample sample = sample_of(program, options);
  if (options.run_others || sample.is_whole()) return;
  const std::string why = why_others_run(program, options);
  if (why.empty()) return;
  throw InputError("kernel " + program.name + ": run_others = False would leave out " +
                   std::to_string(sample.num_blocks() - sample.size()) + " of its " +
                   std::to_string(sample.num_blocks()) + " blocks, and " + why +
                   "; let all blocks run (run_others=True), which records no more of them");
}

/// The memory in which blocks of a cooperative launch count arrivals at the grid's barrier.
class GridWorkspace {
 public:
  explicit GridWorkspace(Execution& execution) : execution_(execution) {
    if (!execution.options.cooperative || !execution.program.synchronizes_grid) return;
    const std::array<std::byte, 64> zeros{};
    DeviceMemory& memory = execution.device.memory;
    execution.workspace_address =
        memory.allocate(zeros.size(), "(workspace of the cooperative launch)");
    memory.write(execution.workspace_address, zeros.data(), zeros.size());
  }
  ~GridWorkspace() {
    if (execution_.workspace_address == 0) return;
    execution_.device.memory.free(execution_.workspace_address);
  }
  GridWorkspace(const GridWorkspace&) = delete;
  GridWorkspace& operator=(const GridWorkspace&) = delete;

 private:
  Execution& execution_;
};

}  // namespace

Dim3 cluster_of(const KernelProgram& program, const LaunchOptions& options) {
  if (options.cluster[0] != 0) return options.cluster;
  return program.required_cluster[0] != 0 ? program.required_cluster : Dim3{1, 1, 1};
}

std::string why_others_run(const KernelProgram& program, const LaunchOptions& options) {
  if (options.cooperative) return "blocks of a cooperative launch wait for each other";
  if (program.synchronizes_grid) return "it synchronizes its grid";
  for (const ProgramFunction& function : program.functions) {
    for (const Step& step : function.steps) {
      const std::string_view tie = tie_to_others(program, step);
      if (tie.empty()) continue;
      const SourceInstruction& text = function.instructions[step.instruction];
      return "it has " + std::string(tie) + " (" + (text.source.empty() ? "" : text.source + ", ") +
             text.place + ", " + text.opcode + "), by which a block may see what others do";
    }
  }
  return "";
}

trace::BlockSample blocks_to_record(const KernelProgram& program, const LaunchOptions& options) {
  if (options.cooperative) {
    const std::uint64_t all = options.grid[0] * options.grid[1] * options.grid[2];
    return {all, all};
  }
  return sample_of(program, options);
}

std::uint64_t shared_bytes_of(const KernelProgram& program, const LaunchOptions& options) {
  return program.dynamic_shared_offset - program.reserved_shared_bytes +
         options.dynamic_shared_bytes;
}

std::uint64_t local_bytes_of(const KernelProgram& program, const LaunchOptions& options) {
  if (program.stack_top == none) return program.local_bytes;
  const std::uint64_t bytes =
      std::max(program.local_bytes, program.grows_stack ? options.stack_bytes : 0);
  return (bytes + stack_alignment - 1) / stack_alignment * stack_alignment;
}

std::uint64_t resident_local_bytes(const KernelProgram& program, const LaunchOptions& options) {
  const std::uint64_t threads = options.block[0] * options.block[1] * options.block[2];
  const std::uint64_t blocks =
      options.cooperative ? options.grid[0] * options.grid[1] * options.grid[2] : 1;
  return (threads + warp_size - 1) / warp_size * warp_size * blocks *
         local_bytes_of(program, options);
}

LaunchResult launch(Device& device, const KernelProgram& program,
                    std::span<const std::byte> parameters, const LaunchOptions& options,
                    std::span<const std::uint64_t> bound_textures) {
  check_launch(program, parameters, device.memory, options);
  check_others(program, options);
  Execution execution(device, program, parameters, options, bound_textures);
  const GridWorkspace workspace(execution);
  execution.constant_banks = constant_banks(execution);
  execution.first_frame = first_frame(execution);
  GridRunner grid(execution);
  const auto tell = [&] {
    if (!options.note) return;
    for (const Note& note : grid.notes()) options.note(note);
  };
  LaunchResult result;
  try {
    result.trace = grid.run();
  } catch (...) {
    tell();  // they may have led to the error
    throw;
  }
  tell();
  result.warp_instructions = execution.warp_instructions;
  result.thread_instructions = execution.thread_instructions;
  result.time = execution.time();
  return result;
}

}  // namespace warpstack::simt
