#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/error.h"
#include "stand_ins/log/operation_log.h"
#include "stand_ins/state/abi.h"
#include "stand_ins/state/device_description.h"
#include "stand_ins/state/fat_binary.h"
#include "stand_ins/state/program_module.h"
#include "stand_ins/state/registered_memory.h"
#include "stand_ins/state/spool.h"

namespace warpstack::cudart {

struct DeviceWork;
struct GraphState;
class MemoryPools;
struct Node;

/// Makes an API function return an error code.
class Failure : public std::runtime_error {
 public:
  /// `incomplete` says that the program's results or traces differ from a GPU's, which `warpstack
  /// trace` must report at the end.
  Failure(Error code, const std::string& what, bool incomplete = false)
      : std::runtime_error(what), code_(code), incomplete_(incomplete) {}

  [[nodiscard]] Error code() const { return code_; }
  [[nodiscard]] bool incomplete() const { return incomplete_; }

 private:
  Error code_;
  bool incomplete_;
};

/// cudaArrayLayered and cudaArrayCubemap.
inline constexpr unsigned array_layered = 1;
inline constexpr unsigned array_cubemap = 4;

/// cudaArray: texels in device memory, row after row.
struct Array {
  std::uint64_t address = 0;
  ChannelFormat format{};
  Extent extent;  ///< texels; height or depth 0: fewer dimensions
  std::uint32_t texel_bytes = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t slice_bytes = 0;
  unsigned flags = 0;
};

/// A module of PTX or machine code, read when first needed, from a fat binary that the program
/// registered or an image that it loaded itself.
struct FatModule {
  const std::byte* container = nullptr;
  /// The containers of the objects from which relocatable device code in `container` was linked.
  std::vector<const std::byte*> objects;
  std::optional<FatBinaryImage> image;  ///< instead of a container
  std::string name;                     ///< for messages
  std::unique_ptr<ProgramModule> loaded;
  std::string failure;    ///< why it cannot be loaded; empty: it can, or was not tried
  bool reported = false;  ///< the user knows of it
  /// `__managed__` variables: the places where the program keeps their addresses, and their names.
  std::vector<std::pair<void**, std::string>> managed;
};

/// A kernel by the address of its host stub.
struct KernelEntry {
  FatModule* module = nullptr;
  std::string name;
  std::uint64_t max_dynamic_shared_bytes = 0;  ///< set by cudaFuncSetAttribute; 0: the default
  bool allows_large_clusters = false;          ///< of more than 8 blocks
  bool reported = false;                       ///< the user knows that it cannot run
};

/// A device variable by the address of its host shadow.
struct VariableEntry {
  FatModule* module = nullptr;
  std::string name;
};

/// Least time of a launch or a copy, in nanoseconds.
inline constexpr std::uint64_t call_time = 1000;

/// The single simulated GPU of a process, and the program's view of it. All functions except get(),
/// mutex() and sticky() are called with mutex() held.
class Runtime {
 public:
  /// Never destroyed: static objects of the program may still call at exit.
  static Runtime& get();

  [[nodiscard]] std::recursive_mutex& mutex() { return mutex_; }
  [[nodiscard]] const DeviceDescription& description() const { return description_; }
  [[nodiscard]] Spool& spool() { return spool_; }
  [[nodiscard]] OperationLog& log() { return log_; }
  [[nodiscard]] simt::Device& device();
  [[nodiscard]] simt::DeviceMemory& memory() { return device().memory; }

  // --- registration ---
  FatModule* add_module(const FatBinaryWrapper* wrapper);
  /// A module that the program has in its memory or in a file; `name` is for messages.
  FatModule* add_module(FatBinaryImage image, std::string name);
  /// The image of a fat binary that runs: PTX if there is some, unless the user has chosen machine
  /// code. Throws InputError when there is none.
  [[nodiscard]] FatBinaryImage choose(std::span<const std::byte> container) const;
  void remove_module(FatModule* module);
  /// Loads the module, or throws Failure. An error is reported once.
  ProgramModule& load(FatModule& module);
  void add_kernel(const void* stub, FatModule* module, std::string name);
  void add_variable(const void* shadow, FatModule* module, std::string name);
  KernelEntry& kernel(const void* stub);
  /// Address and size of a device variable.
  ProgramModule::Variable symbol(const void* shadow);
  /// The `shadow` of a managed variable may also be its own address, by which programs name it.
  VariableEntry variable(const void* shadow);
  /// The kernel at an address of device code. Throws Failure when there is none.
  KernelEntry& kernel_at(FatModule& module, std::uint64_t address);

  // --- memory ---
  /// What cudaMalloc returns.
  std::uint64_t allocate(std::uint64_t bytes);
  /// Memory with the same address for host and device. Throws Failure if the arena is elsewhere.
  std::uint64_t allocate_shared(std::uint64_t bytes, PointerAttributes::Kind kind,
                                unsigned flags = 0);
  /// Frees memory of cudaMalloc and the like, including pools. Variables and arrays are not part of
  /// it.
  void free(std::uint64_t address);
  /// Frees memory of cudaHostAlloc.
  void free_host(std::uint64_t address);
  [[nodiscard]] bool on_device(std::uint64_t address);
  /// Whether a device address is also a host address.
  [[nodiscard]] bool unified();
  /// Memory that CUDA knows.
  struct KnownMemory {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    PointerAttributes::Kind kind = PointerAttributes::Kind::device;
    unsigned flags = 0;       ///< what it was allocated or registered with
    bool registered = false;  ///< host memory of cudaHostRegister
  };
  /// The memory that holds an address; empty: CUDA does not know it.
  [[nodiscard]] std::optional<KnownMemory> memory_at(std::uint64_t address);
  [[nodiscard]] PointerAttributes::Kind kind_of(std::uint64_t address);
  void register_host(std::uint64_t address, std::uint64_t bytes, unsigned flags);
  void unregister_host(std::uint64_t address);
  /// Throws Failure unless all of these bytes belong to one managed allocation or variable.
  void check_managed(std::uint64_t address, std::uint64_t bytes);
  /// Whether a range of host memory overlaps the device's, and so evades its bounds.
  [[nodiscard]] bool meets_device(std::uint64_t address, std::uint64_t bytes);
  /// Throws Failure if the program may not read, or write, all of these bytes of host memory.
  void check_host(std::uint64_t address, std::uint64_t bytes, bool writes);
  /// Copies between any two places.
  void copy(std::uint64_t target, std::uint64_t source, std::uint64_t bytes);
  /// The same without a check of the host's side.
  void copy_unchecked(std::uint64_t target, std::uint64_t source, std::uint64_t bytes);

  Array* add_array(const ChannelFormat& format, const Extent& extent, unsigned flags);
  Array& array(const Array* handle);
  void remove_array(Array* handle);

  // --- launches ---
  struct Call {
    Dim3 grid;
    Dim3 block;
    std::size_t dynamic_shared_bytes = 0;
    StreamHandle stream = 0;
    bool cooperative = false;
    Dim3 cluster{0, 0, 0};  ///< zeros: what the kernel asks for
    /// It may start once the kernel before it in its stream lets it.
    bool programmatic = false;
    EventHandle event = 0;  ///< recorded behind it; 0: none
  };
  /// A launch that can run, with the values of its arguments.
  struct Launch {
    const void* stub = nullptr;
    Call call;
    std::vector<std::byte> parameters;
  };
  Launch prepare(const void* stub, const Call& call, void** arguments);
  /// Runs a kernel, and then what its threads have launched.
  void run(const Launch& launch);
  /// Runs the kernel, or makes it a node of the graph that the stream captures.
  void launch(const void* stub, const Call& call, void** arguments);
  /// The same with all blocks resident at once. Throws Failure when they are too many.
  void launch_cooperative(const void* stub, Call call, void** arguments);
  /// Blocks of a cluster that every GPU with clusters runs; more must be allowed for the kernel.
  static constexpr std::uint64_t portable_cluster_blocks = 8;
  /// Blocks of a kernel that an SM holds at once, possibly 0.
  int blocks_per_sm(KernelEntry& entry, int threads, std::size_t dynamic_bytes);
  /// The kernel ready to run. Throws Failure. An error is reported once.
  const simt::KernelProgram& program(KernelEntry& kernel);
  /// Throws Failure if a kernel cannot be launched so.
  void check_launch(KernelEntry& kernel, const Call& call);
  /// The same for its clusters.
  void check_clusters(KernelEntry& kernel, const Call& call);
  /// The error of a fault, which every later call returns, as on a GPU.
  [[nodiscard]] Error sticky() const { return sticky_; }

  // --- streams and events ---
  /// Nanoseconds of simulated time: one per executed warp instruction and what kernels
  /// sleep and wait for their clocks, a microsecond per call that
  /// occupies the device. It is the same in every run and does not measure
  /// performance.
  [[nodiscard]] std::uint64_t now() const { return now_; }
  void pass_time(std::uint64_t nanoseconds) { now_ += nanoseconds; }
  /// Of streams: lower numbers come first. Turing and later GPUs have these.
  static constexpr int least_priority = 0;
  static constexpr int greatest_priority = -5;
  /// A priority beyond these is the nearest one.
  StreamHandle add_stream(unsigned flags, int priority);
  struct Stream {
    std::uint64_t number = 0;
    unsigned flags = 0;
    int priority = 0;
  };
  /// Default streams have number 0.
  Stream stream(StreamHandle handle);
  void remove_stream(StreamHandle handle);
  /// The same stream for the log. A default stream of a thread gets its number here.
  StreamOfOperation stream_of_operation(StreamHandle handle);
  struct Event {
    std::uint64_t time = 0;
    bool recorded = false;
    /// The capture in which the event was last recorded (0: none), and the nodes before it.
    std::uint64_t capture = 0;
    std::vector<Node*> captured;
    /// Whether the time between this and another event can be asked for.
    bool is_timed = true;
    std::int64_t number = 0;  ///< in order of creation
  };
  EventHandle add_event(bool is_timed = true);
  Event& event(EventHandle handle);
  /// Records an event in a stream, or in what the stream captures.
  void record(EventHandle handle, StreamHandle stream, unsigned flags);
  void remove_event(EventHandle handle);

  // --- graphs and memory pools ---
  [[nodiscard]] GraphState& graphs() { return *graphs_; }
  [[nodiscard]] MemoryPools& pools() { return *pools_; }

  /// Address of a zero-terminated copy of a text in device memory, which stays there.
  std::uint64_t text_on_device(const std::string& text);
  /// By number of cudaLimit, CUDA's usual values. Of them, the simulator observes the number of
  /// pending launches of kernels.
  static constexpr std::array<std::size_t, 8> usual_limits{1024, 1 << 20, 8 << 20, 2,
                                                           2048, 128,     0,       0};
  std::array<std::size_t, 8> limits = usual_limits;

  /// Textures of `texture<>` variables, by the address of the host variable.
  std::map<const void*, VariableEntry> texture_references;

  /// Whether the program has called a function of this interface, and not only the driver's.
  bool is_used = false;

  /// cudaDeviceReset.
  void reset();

 private:
  Runtime();
  ~Runtime();

  /// Reads a module in the form that the user has chosen.
  std::unique_ptr<ProgramModule> read(const FatModule& module);
  [[nodiscard]] std::vector<std::byte> parameter_buffer(const ProgramModule& module,
                                                        const KernelEntry& kernel,
                                                        void** arguments);
  /// Runs a kernel, launched by launch `parent` (0: the host), `depth` levels below the host's.
  /// Returns the work that its threads have asked for.
  std::vector<DeviceWork> execute(KernelEntry& entry, const Call& call,
                                  const std::vector<std::byte>& parameters, std::uint64_t parent,
                                  std::uint32_t depth);
  /// The same for any work from a kernel.
  std::vector<DeviceWork> perform(const DeviceWork& work);
  simt::LaunchOptions options_for(KernelEntry& entry, const Call& call);

  std::recursive_mutex mutex_;
  DeviceDescription description_;
  Spool spool_;
  OperationLog log_;
  std::unique_ptr<simt::Device> device_;
  std::set<std::unique_ptr<FatModule>> modules_;
  std::unordered_map<const void*, KernelEntry> kernels_;
  /// Kernels that only kernels launch, by name.
  std::map<std::pair<const FatModule*, std::string>, KernelEntry> inner_kernels_;
  std::unordered_map<const void*, VariableEntry> variables_;
  struct SharedAllocation {
    PointerAttributes::Kind kind;
    unsigned flags;
  };
  std::map<std::uint64_t, SharedAllocation> shared_allocations_;
  RegisteredMemory registered_;
  std::map<const Array*, std::unique_ptr<Array>> arrays_;
  std::map<std::string, std::uint64_t> device_texts_;
  std::map<StreamHandle, Stream> streams_;
  std::map<EventHandle, Event> events_;
  std::unique_ptr<GraphState> graphs_;
  std::unique_ptr<MemoryPools> pools_;
  std::uintptr_t next_handle_ = 0x1000;
  std::uint64_t next_stream_ = 1;
  std::int64_t next_event_ = 0;
  std::uint64_t now_ = 0;
  std::atomic<Error> sticky_ = Error::success;
  /// 80 for sm_80: the machine code of fat binaries that is run; empty: their PTX.
  std::optional<std::uint32_t> machine_code_;
};

/// The interface's state per thread.
struct ThreadState {
  Error last_error = Error::success;  ///< what cudaGetLastError returns
  bool uses_runtime = false;          ///< it has called a function of the runtime
  /// The function that the program called, if another one does its work; else null.
  const char* called = nullptr;
};
ThreadState& thread_state();

inline Error& last_error() { return thread_state().last_error; }
/// Handles an exception of an API function: prints the reason and sets the last error.
Error note(const char* function, const std::exception& error);

/// Runs the body of an API function with the runtime locked and returns its error code.
template <typename Body>
Error call(const char* function, Body body) noexcept {
  const ApiCall api_call(function);
  try {
    Runtime& runtime = Runtime::get();
    const std::lock_guard lock(runtime.mutex());
    if (ThreadState& thread = thread_state(); thread.called == nullptr) {
      thread.uses_runtime = runtime.is_used = true;
    }
    if (runtime.sticky() != Error::success) return last_error() = runtime.sticky();
    body(runtime);
    return Error::success;
  } catch (const std::exception& error) {
    return note(function, error);
  }
}

/// Throws Failure(invalid_value) unless `holds`.
inline void require(bool holds, const char* what, Error code = Error::invalid_value) {
  if (!holds) throw Failure(code, what);
}

inline std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

inline void* pointer_to(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace warpstack::cudart

/// Defines another exported name of a function in the same file.
#define CUDART_ALIAS(other, function)                                        \
  extern "C" __attribute__((visibility("default"))) decltype(function) other \
      __attribute__((alias(#function)))

/// The same for a name that ends in _ptsz or _ptds: the default stream is that of the thread. (A
/// friend that a template defines has the parameters of the function, whatever they are.)
#define CUDART_PER_THREAD(other, function)                                    \
  extern "C" __attribute__((visibility("default"))) decltype(function) other; \
  template <typename Function>                                                \
  struct PerThread_##other;                                                   \
  template <typename Result, typename... Arguments>                           \
  struct PerThread_##other<Result(Arguments...)> {                            \
    friend Result other(Arguments... arguments) {                             \
      const warpstack::cudart::PerThreadDefault per_thread;                   \
      return function(arguments...);                                          \
    }                                                                         \
  };                                                                          \
  template struct PerThread_##other<decltype(function)>;                      \
  static const auto kept_##other __attribute__((used)) = &other
