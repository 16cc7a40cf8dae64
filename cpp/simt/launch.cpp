#include "simt/launch.h"

#include <string>

#include "common/error.h"
#include "simt/cluster.h"
#include "simt/constant_banks.h"
#include "simt/execution.h"
#include "simt/grid_runner.h"

namespace warpstack::simt {
namespace {

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
  const std::uint64_t shared = program.dynamic_shared_offset + options.dynamic_shared_bytes;
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
         std::to_string(program.local_bytes) + " each), and the device has " +
         std::to_string(free) + " of " + std::to_string(memory.capacity()) +
         " bytes free; give it more memory or launch smaller thread blocks");
  }
  if (parameters.size() < program.parameter_bytes) {
    fail("its parameters take " + std::to_string(program.parameter_bytes) + " bytes, " +
         std::to_string(parameters.size()) + " are given");
  }
}

}  // namespace

Dim3 cluster_of(const KernelProgram& program, const LaunchOptions& options) {
  if (options.cluster[0] != 0) return options.cluster;
  return program.required_cluster[0] != 0 ? program.required_cluster : Dim3{1, 1, 1};
}

std::uint64_t resident_local_bytes(const KernelProgram& program, const LaunchOptions& options) {
  const std::uint64_t threads = options.block[0] * options.block[1] * options.block[2];
  const std::uint64_t blocks =
      options.cooperative ? options.grid[0] * options.grid[1] * options.grid[2] : 1;
  return (threads + warp_size - 1) / warp_size * warp_size * blocks * program.local_bytes;
}

LaunchResult launch(Device& device, const KernelProgram& program,
                    std::span<const std::byte> parameters, const LaunchOptions& options,
                    std::span<const std::uint64_t> bound_textures) {
  check_launch(program, parameters, device.memory, options);
  Execution execution(device, program, parameters, options, bound_textures);
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
    tell();  // they may be what led to the error
    throw;
  }
  tell();
  result.warp_instructions = execution.warp_instructions;
  result.thread_instructions = execution.thread_instructions;
  result.time = execution.time();
  return result;
}

}  // namespace warpstack::simt
