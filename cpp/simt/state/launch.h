#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/interrupt.h"
#include "simt/device/device.h"
#include "simt/device/fault_notes.h"
#include "simt/program/program.h"
#include "trace/columns/block_sample.h"
#include "trace/columns/block_storage.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::simt {

using trace::Dim3;
using trace::KernelTrace;
using trace::StorageBudget;

/// In which order the blocks of a launch run: all of one before the next begins, or those that a
/// GPU holds beside each other, by an estimate of the time that each has taken.
enum class BlockOrder : std::uint8_t {
  automatic,  ///< `time` where the kernel reads what other blocks write, see watches_others()
  blocks,
  time
};

struct LaunchOptions {
  Dim3 grid{1, 1, 1};
  Dim3 block{1, 1, 1};
  /// Blocks of a cluster, which are resident together; zeros: what the kernel asks for, or no
  /// clusters.
  Dim3 cluster{0, 0, 0};
  std::uint64_t dynamic_shared_bytes = 0;
  /// Local memory of a thread if the kernel does not say how much it needs (cudaLimitStackSize).
  std::uint64_t stack_bytes = 1024;
  bool trace = true;
  /// About one in so many blocks is recorded, see blocks_to_record(); 1: all, automatic_sample: as
  /// many as make a trace of some 1,024.
  std::uint64_t sample_blocks = 1;
  /// Blocks that are not in the sample run, too, so that memory has their results.
  bool run_others = true;
  /// All blocks are resident and take turns, so that the grid can synchronize.
  bool cooperative = false;
  /// Blocks of a plain launch that the GPU holds at once, which may wait for each other; 0: as many
  /// as the largest GPUs hold.
  std::uint64_t resident_blocks = 0;
  std::uint64_t num_sms = 0;  ///< of the GPU that holds them; 0: as many as the largest have
  BlockOrder order = BlockOrder::automatic;
  /// Warp instructions after which the launch is abandoned as endless.
  std::uint64_t step_limit = 10'000'000'000;
  /// A load of bytes that were never written is an error.
  bool check_uninitialized = true;
  /// How a user turns this check off.
  std::string_view without_check = "launch with check_uninitialized off";
  /// What happens at out-of-bounds and uninitialised accesses, divergent barriers and wrong member
  /// masks.
  OnFault on_fault = OnFault::stop;
  /// Two accesses of different warps of a block to one address, of which one is a write, without a
  /// barrier between them, are a fault.
  bool check_races = false;
  /// Registers that limit occupancy; 0: as many as the program has live.
  std::uint64_t registers_per_thread = 0;
  std::uint64_t launch_id = 0;
  std::uint64_t parent = 0;  ///< the launch whose kernel launched this one; 0: the host did
  std::uint64_t stream = 0;
  std::uint64_t begin_time = 0;  ///< nanoseconds of the device's timer
  /// Answers calls of the CUDA runtime; null: such calls are faults.
  DeviceRuntime* runtime = nullptr;
  /// Threads that run independent blocks, with the same outcome as one thread; 0: as many as the
  /// machine runs at once.
  unsigned num_threads = 1;
  /// Traced warp instructions that a thread runs at a time and keeps until it is their turn;
  /// without a trace, four times as many.
  std::uint64_t instructions_ahead = std::uint64_t{1} << 16;
  std::shared_ptr<StorageBudget> storage;  ///< of the trace; not needed without one
  InterruptCheck interrupt;
  /// Called now and then with the blocks done and the blocks that run; may be empty.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
  /// Receives the faults that OnFault::proceed let pass when the launch ends, even by an error; may
  /// be empty.
  std::function<void(const Note&)> note;
};

/// What ran.
struct LaunchResult {
  std::optional<KernelTrace> trace;
  std::uint64_t warp_instructions = 0;    ///< executed, including those the trace folds
  std::uint64_t thread_instructions = 0;  ///< sum of their active lanes
  std::uint64_t time =
      0;  ///< what clocks showed at the end: a tick per warp instruction, and waits
};

/// LaunchOptions::sample_blocks that follows the size of the launch: one in num_blocks / 1024
/// rounded up, and at most 16.
inline constexpr std::uint64_t automatic_sample = 0;

/// Most blocks of a cooperative launch here; no GPU holds more at once.
inline constexpr std::uint64_t max_resident_blocks = 8192;

/// Bytes of shared memory of a block, without what is reserved for the system.
std::uint64_t shared_bytes_of(const KernelProgram& program, const LaunchOptions& options);

/// Bytes of local memory of a thread.
std::uint64_t local_bytes_of(const KernelProgram& program, const LaunchOptions& options);

/// Bytes of local memory of the resident blocks. The launch must be possible otherwise.
std::uint64_t resident_local_bytes(const KernelProgram& program, const LaunchOptions& options);

/// Blocks of a cluster along each dimension, from the launch or else the kernel; all 1 without
/// clusters.
[[nodiscard]] Dim3 cluster_of(const KernelProgram& program, const LaunchOptions& options);

/// The blocks that a launch records: a trace::BlockSample of one in LaunchOptions::sample_blocks;
/// whole clusters; all of a cooperative launch, whose blocks depend on each other, and of a launch
/// of fewer than 256 unless its number is a multiple of the GPU's SMs or others do not run.
[[nodiscard]] trace::BlockSample blocks_to_record(const KernelProgram& program,
                                                  const LaunchOptions& options);

/// Why blocks that are not recorded must run, too: "it synchronizes its grid"; empty: they need
/// not.
[[nodiscard]] std::string why_others_run(const KernelProgram& program,
                                         const LaunchOptions& options);

/// Runs a kernel to its end, block after block, or in the order of time (LaunchOptions::order). If
/// a block only waits for memory to change, as many blocks take turns as are resident at once;
/// those of a cooperative launch do so from the start, at places where they may wait for each
/// other. `parameters` is the parameter buffer; `bound_textures` are the handles that texture
/// references are bound to, by number. Memory of the device changes as the kernel writes it.
///
/// Throws InputError: impossible launch (too many threads or too much shared memory, wrong
/// parameter size), or a fault of the kernel (out-of-bounds, misaligned or uninitialised access,
/// divergent barrier, deadlock, step limit, failed assertion, trap): the message names kernel,
/// source line, block, thread and address. What the kernel wrote before a fault stays.
/// LaunchOptions::on_fault turns some of the faults into notes.
///
/// Without LaunchOptions::run_others only the recorded blocks run, and memory has only what these
/// wrote. Throws InputError if the kernel has an instruction by which blocks see each other's work
/// (an atomic operation on global memory that is no count, grid synchronization, a launch), or
/// blocks would be left out of a cooperative launch. To what a block counts (MemoryAccess::counts)
/// those that do not run have added, too.
LaunchResult launch(Device& device, const KernelProgram& program,
                    std::span<const std::byte> parameters, const LaunchOptions& options,
                    std::span<const std::uint64_t> bound_textures = {});

}  // namespace warpstack::simt
