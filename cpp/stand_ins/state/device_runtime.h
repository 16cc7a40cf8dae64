#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "simt/program/device_runtime.h"
#include "stand_ins/state/runtime.h"

namespace warpstack::cudart {

/// Most levels of kernels below the one that the host has launched.
inline constexpr std::uint32_t max_launch_depth = 24;

/// Work that a thread of a kernel has put into a stream; it runs after the kernel.
struct DeviceWork {
  struct Kernel {
    KernelEntry* entry = nullptr;
    Runtime::Call call;
    std::vector<std::byte> parameters;
    std::uint64_t parent = 0;  ///< number of the launch
    std::uint32_t depth = 0;   ///< 1 below a kernel that the host has launched
  };
  struct Copy {
    std::uint64_t target = 0;
    std::uint64_t target_pitch = 0;
    std::uint64_t source = 0;
    std::uint64_t source_pitch = 0;
    std::uint64_t width = 0;  ///< bytes
    std::uint64_t height = 1;
  };
  struct Fill {
    std::uint64_t target = 0;
    std::uint64_t pitch = 0;
    int value = 0;
    std::uint64_t width = 0;  ///< bytes
    std::uint64_t height = 1;
  };
  std::variant<Kernel, Copy, Fill> what;
  std::uint64_t parent = 0;  ///< number of the launch
};

/// The CUDA runtime for the threads of one launch (CUDA C++ Programming Guide, CUDA Dynamic
/// Parallelism). Their launches, copies and fills are collected and run when the kernel has ended,
/// in the order of the calls; those in cudaStreamTailLaunch run last. A mistake gives the thread
/// CUDA's error code, and prints a line on standard error.
class KernelRuntime final : public simt::DeviceRuntime {
 public:
  /// `launch` is the number of the launch, `depth` its depth.
  KernelRuntime(Runtime& runtime, KernelEntry& kernel, StreamHandle stream, std::uint64_t launch,
                std::uint32_t depth);
  ~KernelRuntime() override;
  KernelRuntime(const KernelRuntime&) = delete;
  KernelRuntime& operator=(const KernelRuntime&) = delete;

  std::uint64_t call(simt::RuntimeFunction function, simt::RuntimeCaller& caller) override;
  /// The collected work, in the order in which it runs.
  std::vector<DeviceWork> take();

 private:
  using Caller = simt::RuntimeCaller;
  /// A parameter buffer that a thread fills for a launch.
  struct Buffer {
    std::uint64_t bytes = 0;
    KernelEntry* kernel = nullptr;  ///< for the second version of the functions
    Runtime::Call call;
  };
  /// A launch without its stream.
  struct Prepared {
    KernelEntry* kernel = nullptr;
    Runtime::Call call;
    std::uint64_t parameter_bytes = 0;
  };

  void answer(simt::RuntimeFunction function, Caller& caller);
  std::uint64_t answer_pointer(simt::RuntimeFunction function, Caller& caller);
  /// Throws Failure, with CUDA's code, if a kernel cannot be launched so.
  Prepared prepare(const Caller& caller, std::uint64_t function, const Dim3& grid,
                   const Dim3& block, std::uint64_t shared_bytes);
  std::uint64_t make_buffer(Caller& caller, const Buffer& buffer);
  void drop(Caller& caller, std::uint64_t buffer);
  void launch(Caller& caller, std::uint64_t buffer, StreamHandle stream, const Prepared& prepared);
  void add(StreamHandle stream, DeviceWork work);
  void check_stream(StreamHandle stream) const;
  void check_event(EventHandle event) const;
  void release(Caller& caller, std::uint64_t address);
  void copy(StreamHandle stream, const DeviceWork::Copy& copy);
  void fill(StreamHandle stream, const DeviceWork::Fill& fill);

  Runtime& runtime_;
  KernelEntry& kernel_;
  StreamHandle stream_;
  std::uint64_t launch_;
  std::uint32_t depth_;
  std::vector<DeviceWork> work_;
  std::vector<DeviceWork> tail_;
  std::map<std::uint64_t, Buffer> buffers_;  ///< by address
  /// Launches of each block that wait for its end.
  std::map<std::uint64_t, std::uint64_t> pending_;
  /// cudaGetLastError of threads that have made a mistake, by block and thread.
  std::map<std::pair<std::uint64_t, std::uint64_t>, Error> errors_;
  std::set<StreamHandle> streams_;
  std::set<EventHandle> events_;
  std::uintptr_t next_handle_ = 0x1000;
};

}  // namespace warpstack::cudart
