#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/interrupt.h"
#include "ptx/module.h"
#include "simt/device_memory.h"
#include "simt/diagnosis.h"
#include "simt/texture.h"
#include "trace/block_storage.h"
#include "trace/kernel_trace.h"

namespace warpstack::ptx {

struct SymbolTable;
struct KernelProgram;  // program.h: a kernel made ready to run

/// A device: memory, textures, and what its kernels print.
struct Device {
  explicit Device(std::uint64_t memory_bytes) : memory(memory_bytes) {}

  DeviceMemory memory;
  TextureTable textures;
  /// Receives what kernels print, line by line or in part; null: standard output.
  std::function<void(std::string_view)> print;
};

/// A module loaded onto a device: its variables have addresses and their initial values.
class LoadedModule {
 public:
  /// Throws InputError when the device is full, a variable's initial value names nothing, or there
  /// are more constants than a GPU has room for.
  LoadedModule(std::shared_ptr<const Module> module, Device& device);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  [[nodiscard]] const Module& module() const { return *module_; }
  [[nodiscard]] Device& device() const { return device_; }
  /// A kernel made ready to run, at the first call. Throws InputError when there is no such kernel,
  /// and when an instruction is not supported: it names the instruction, its line and the kernel.
  const KernelProgram& program(std::string_view kernel);

  /// Address and bytes of a `.global` or `.const` variable. Throws InputError for others.
  struct Symbol {
    std::uint64_t address;
    std::uint64_t bytes;
  };
  [[nodiscard]] Symbol symbol(std::string_view name) const;
  /// Binds a `.texref` or `.surfref` variable. Throws InputError for others.
  void bind_texture(std::string_view name, std::uint64_t texture_object);
  /// What the texture reference of this number is bound to; 0: nothing.
  [[nodiscard]] std::uint64_t bound_texture(std::uint32_t number) const {
    return bound_textures_[number];
  }

 private:
  void place_variables();
  /// Writes the addresses that initial values contain.
  void set_addresses();
  void free_variables();

  std::shared_ptr<const Module> module_;
  Device& device_;
  std::unique_ptr<SymbolTable> symbols_;
  std::vector<std::uint64_t> allocations_;
  std::vector<std::uint64_t> bound_textures_;
  std::map<std::string, std::unique_ptr<const KernelProgram>, std::less<>> programs_;
};

struct LaunchOptions {
  Dim3 grid{1, 1, 1};
  Dim3 block{1, 1, 1};
  std::uint64_t dynamic_shared_bytes = 0;
  bool trace = true;
  /// All blocks are resident and take turns, so that the grid can synchronize.
  bool cooperative = false;
  /// Warp instructions after which the launch is abandoned as endless.
  std::uint64_t step_limit = 10'000'000'000;
  /// A load of bytes that nobody wrote is an error.
  bool check_uninitialized = true;
  /// At out-of-bounds and uninitialised accesses, divergent barriers, wrong member masks.
  OnFault on_fault = OnFault::stop;
  /// Two accesses of different warps of a block to one address, one of them a write, without a
  /// barrier between them are a fault.
  bool check_races = false;
  /// What limits occupancy; 0: what the program's live registers need.
  std::uint64_t registers_per_thread = 0;
  std::uint64_t launch_id = 0;
  std::uint64_t stream = 0;
  std::shared_ptr<StorageBudget> storage;  ///< of the trace; not needed without one
  InterruptCheck interrupt;
  /// Called now and then with the blocks done and the blocks of the grid; may be empty.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
  /// Receives the faults that OnFault::proceed let pass, when the launch ends, also by an error;
  /// may be empty.
  std::function<void(const Note&)> note;
};

/// One parameter of a kernel: where it lies in the parameter buffer.
struct ParameterSlot {
  std::string name;
  Type type = Type::none;
  bool is_array = false;  ///< a structure passed by value
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Parameters of a kernel, in order. Throws InputError when the module has no kernel of that name.
std::vector<ParameterSlot> parameters_of(const Module& module, std::string_view kernel);

/// What ran.
struct LaunchResult {
  std::optional<KernelTrace> trace;
  std::uint64_t warp_instructions = 0;    ///< executed PTX instructions, also those the trace folds
  std::uint64_t thread_instructions = 0;  ///< the same, times the active lanes
};

/// Blocks that a cooperative launch may have here; no GPU holds more at once.
inline constexpr std::uint64_t max_resident_blocks = 8192;

/// Bytes of local memory of the blocks that are there at once. The launch must be possible
/// otherwise.
std::uint64_t resident_local_bytes(const KernelProgram& program, const LaunchOptions& options);

/// Runs a kernel to its end, block after block; those of a cooperative launch take turns at places
/// where they may wait for each other. `parameters` is the parameter buffer, laid out by
/// parameters_of(). Memory of the device changes as the kernel writes it.
///
/// Throws InputError: no such kernel, impossible launch (too many threads or too much shared
/// memory, wrong parameter size), or a fault of the kernel (out-of-bounds, misaligned or
/// uninitialised access, divergent barrier, deadlock, step limit, failed assertion, trap): it names
/// kernel, source line, block, thread and address. What the kernel wrote before a fault stays.
/// LaunchOptions::on_fault turns some of the faults into notes.
LaunchResult launch(LoadedModule& module, std::string_view kernel,
                    std::span<const std::byte> parameters, const LaunchOptions& options);

}  // namespace warpstack::ptx
