#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>

namespace warpstack::simt {

/// Functions of the CUDA runtime that kernels call (libcudadevrt).
enum class RuntimeFunction : std::uint8_t {
  get_parameter_buffer,
  get_parameter_buffer_v2,
  launch,
  launch_v2,
  get_last_error,
  peek_at_last_error,
  get_error_name,
  get_error_string,
  get_device,
  get_device_count,
  device_get_attribute,
  device_get_limit,
  runtime_get_version,
  occupancy,
  stream_create,
  stream_destroy,
  stream_wait_event,
  event_create,
  event_record,
  event_destroy,
  allocate,
  release,
  copy,
  copy_2d,
  fill,
  fill_2d,
};

/// The function with this name in PTX: "__cudaCDP2LaunchDeviceV2" of CUDA 12 and later, or
/// "cudaLaunchDeviceV2". Empty for other names.
std::optional<RuntimeFunction> runtime_function_named(std::string_view name);

/// A thread that calls the runtime, and the memory that it sees.
class RuntimeCaller {
 public:
  virtual ~RuntimeCaller() = default;
  /// Number of the thread's block in the grid.
  [[nodiscard]] virtual std::uint64_t block() const = 0;
  /// Number of the thread in its block.
  [[nodiscard]] virtual std::uint64_t thread() const = 0;
  /// The bytes of argument `i`. Throws RuntimeFault when the call has fewer.
  [[nodiscard]] virtual std::span<const std::byte> argument(std::size_t i) const = 0;
  /// Host address of bytes that the thread may write at a generic address; a fault if it may not.
  virtual std::byte* writable(std::uint64_t address, std::uint32_t bytes) = 0;
  /// Allocates device memory. Throws InputError when the device is full.
  virtual std::uint64_t allocate(std::uint64_t bytes) = 0;
  /// Throws InputError when there is no such memory.
  virtual void release(std::uint64_t address) = 0;
};

/// Why a call cannot be answered, which becomes a fault of the thread.
class RuntimeFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Answers these calls during a launch.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;
  /// Calls a function for a thread and returns its result. Throws RuntimeFault.
  virtual std::uint64_t call(RuntimeFunction function, RuntimeCaller& caller) = 0;
};

}  // namespace warpstack::simt
