// The CUDA runtime of kernels: dynamic parallelism.

#include "stand_ins/state/device_runtime.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "stand_ins/state/error_names.h"

namespace warpstack::cudart {

CUDART_EXPORT Error cudaDeviceGetAttribute(int* value, int attribute, int device);
CUDART_EXPORT Error cudaDeviceGetLimit(std::size_t* value, int limit);
CUDART_EXPORT Error cudaRuntimeGetVersion(int* version);

namespace {

using simt::RuntimeFault;
using simt::RuntimeFunction;

constexpr StreamHandle tail_launch = 3;      // cudaStreamTailLaunch
constexpr StreamHandle fire_and_forget = 4;  // cudaStreamFireAndForget
constexpr std::size_t pending_launches = 4;  // cudaLimitDevRuntimePendingLaunchCount

/// Argument `i` of a call. Structures have the layout of C.
template <class T>
T value_of(const simt::RuntimeCaller& caller, std::size_t i) {
  T value{};
  const std::span<const std::byte> bytes = caller.argument(i);
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

std::uint64_t word(const simt::RuntimeCaller& caller, std::size_t i) {
  return value_of<std::uint64_t>(caller, i);
}

/// Writes to the target of argument `i`.
template <class T>
void give(simt::RuntimeCaller& caller, std::size_t i, const T& value) {
  const std::uint64_t address = word(caller, i);
  require(address != 0, "nowhere to put the result");
  std::memcpy(caller.writable(address, sizeof value), &value, sizeof value);
}

std::uint64_t allocate(simt::RuntimeCaller& caller, std::uint64_t bytes) {
  try {
    return caller.allocate(bytes);
  } catch (const InputError&) {
    throw Failure(Error::memory_allocation, "the device has not enough memory");
  }
}

/// The result of a function of the host's runtime; the host's last error is kept.
template <class Function>
void ask(Function function) {
  const Error before = last_error();
  const Error error = function();
  last_error() = before;
  require(error == Error::success, "see the message before", error);
}

}  // namespace

KernelRuntime::KernelRuntime(Runtime& runtime, KernelEntry& kernel, StreamHandle stream,
                             std::uint64_t launch, std::uint32_t depth)
    : runtime_(runtime), kernel_(kernel), stream_(stream), launch_(launch), depth_(depth) {}

KernelRuntime::~KernelRuntime() {
  for (const auto& [address, buffer] : buffers_) runtime_.memory().free(address);
}

std::vector<DeviceWork> KernelRuntime::take() {
  std::vector<DeviceWork> all = std::exchange(work_, {});
  std::ranges::move(std::exchange(tail_, {}), std::back_inserter(all));
  return all;
}

std::uint64_t KernelRuntime::call(RuntimeFunction function, Caller& caller) {
  const std::pair thread(caller.block(), caller.thread());
  if (function == RuntimeFunction::get_last_error ||
      function == RuntimeFunction::peek_at_last_error) {
    const auto found = errors_.find(thread);
    if (found == errors_.end()) return 0;
    const Error error = found->second;
    if (function == RuntimeFunction::get_last_error) errors_.erase(found);
    return static_cast<std::uint64_t>(error);
  }
  const bool gives_pointer = function == RuntimeFunction::get_parameter_buffer ||
                             function == RuntimeFunction::get_parameter_buffer_v2 ||
                             function == RuntimeFunction::get_error_name ||
                             function == RuntimeFunction::get_error_string;
  try {
    if (gives_pointer) return answer_pointer(function, caller);
    answer(function, caller);
    return 0;
  } catch (const Failure& failure) {
    if (failure.code() == Error::invalid_ptx) throw RuntimeFault(failure.what());
    say("note",
        "kernel " + kernel_.name + ": " + failure.what() + " (" + name_of(failure.code()) + ")");
    errors_[thread] = failure.code();
    return gives_pointer ? 0 : static_cast<std::uint64_t>(failure.code());
  }
}

std::uint64_t KernelRuntime::answer_pointer(RuntimeFunction function, Caller& caller) {
  switch (function) {
    case RuntimeFunction::get_parameter_buffer:
      return make_buffer(caller, {.bytes = word(caller, 1), .kernel = nullptr, .call = {}});
    case RuntimeFunction::get_parameter_buffer_v2: {
      const Prepared prepared =
          prepare(caller, word(caller, 0), value_of<Dim3>(caller, 1), value_of<Dim3>(caller, 2),
                  value_of<std::uint32_t>(caller, 3));
      return make_buffer(caller, {prepared.parameter_bytes, prepared.kernel, prepared.call});
    }
    case RuntimeFunction::get_error_name:
      return runtime_.text_on_device(name_of(value_of<Error>(caller, 0)));
    default:
      return runtime_.text_on_device(description_of(value_of<Error>(caller, 0)));
  }
}

void KernelRuntime::answer(RuntimeFunction function, Caller& caller) {
  switch (function) {
    case RuntimeFunction::launch:
      launch(caller, word(caller, 1), word(caller, 5),
             prepare(caller, word(caller, 0), value_of<Dim3>(caller, 2), value_of<Dim3>(caller, 3),
                     value_of<std::uint32_t>(caller, 4)));
      return;
    case RuntimeFunction::launch_v2: {
      const auto found = buffers_.find(word(caller, 0));
      require(found != buffers_.end() && found->second.kernel != nullptr,
              "a launch without a parameter buffer of cudaGetParameterBufferV2");
      const Buffer buffer = found->second;
      launch(caller, found->first, word(caller, 1), {buffer.kernel, buffer.call, buffer.bytes});
      return;
    }
    case RuntimeFunction::get_device:
      return give(caller, 0, int{0});
    case RuntimeFunction::get_device_count:
      return give(caller, 0, int{1});
    case RuntimeFunction::device_get_attribute: {
      int value = 0;
      ask([&] {
        return cudaDeviceGetAttribute(&value, value_of<int>(caller, 1), value_of<int>(caller, 2));
      });
      return give(caller, 0, value);
    }
    case RuntimeFunction::device_get_limit: {
      std::size_t value = 0;
      ask([&] { return cudaDeviceGetLimit(&value, value_of<int>(caller, 1)); });
      return give(caller, 0, value);
    }
    case RuntimeFunction::runtime_get_version: {
      int value = 0;
      ask([&] { return cudaRuntimeGetVersion(&value); });
      return give(caller, 0, value);
    }
    case RuntimeFunction::occupancy: {
      KernelEntry& kernel = runtime_.kernel_at(*kernel_.module, word(caller, 1));
      return give(caller, 0,
                  runtime_.blocks_per_sm(kernel, value_of<int>(caller, 2), word(caller, 3)));
    }
    case RuntimeFunction::stream_create:
      require(value_of<unsigned>(caller, 1) == 1,
              "streams of kernels are made with cudaStreamNonBlocking");
      return give(caller, 0, *streams_.insert(next_handle_ += 16).first);
    case RuntimeFunction::stream_destroy:
      require(streams_.erase(word(caller, 0)) > 0, "the block has made no such stream",
              Error::invalid_resource_handle);
      return;
    case RuntimeFunction::event_create:
      require(value_of<unsigned>(caller, 1) == 2,
              "events of kernels are made with cudaEventDisableTiming");
      return give(caller, 0, *events_.insert(next_handle_ += 16).first);
    // Work runs in the order of the calls, which events allow.
    case RuntimeFunction::event_record:
      check_event(word(caller, 0));
      return check_stream(word(caller, 1));
    case RuntimeFunction::stream_wait_event:
      check_stream(word(caller, 0));
      return check_event(word(caller, 1));
    case RuntimeFunction::event_destroy:
      check_event(word(caller, 0));
      events_.erase(word(caller, 0));
      return;
    case RuntimeFunction::allocate: {
      const std::uint64_t bytes = word(caller, 1);
      return give(caller, 0, bytes == 0 ? std::uint64_t{0} : allocate(caller, bytes));
    }
    case RuntimeFunction::release:
      return release(caller, word(caller, 0));
    case RuntimeFunction::copy:
      return copy(word(caller, 4), {.target = word(caller, 0),
                                    .target_pitch = word(caller, 2),
                                    .source = word(caller, 1),
                                    .source_pitch = word(caller, 2),
                                    .width = word(caller, 2)});
    case RuntimeFunction::copy_2d:
      return copy(word(caller, 7), {word(caller, 0), word(caller, 1), word(caller, 2),
                                    word(caller, 3), word(caller, 4), word(caller, 5)});
    case RuntimeFunction::fill:
      return fill(word(caller, 3), {.target = word(caller, 0),
                                    .pitch = word(caller, 2),
                                    .value = value_of<int>(caller, 1),
                                    .width = word(caller, 2)});
    case RuntimeFunction::fill_2d:
      return fill(word(caller, 5), {word(caller, 0), word(caller, 1), value_of<int>(caller, 2),
                                    word(caller, 3), word(caller, 4)});
    default:
      throw RuntimeFault("it calls an unknown function of the CUDA runtime");
  }
}

// --- launches -----------------------------------------------------------------------------------

KernelRuntime::Prepared KernelRuntime::prepare(const Caller& caller, std::uint64_t function,
                                               const Dim3& grid, const Dim3& block,
                                               std::uint64_t shared_bytes) {
  Prepared prepared;
  prepared.kernel = &runtime_.kernel_at(*kernel_.module, function);
  prepared.call = {grid, block, shared_bytes, stream_};
  runtime_.check_launch(*prepared.kernel, prepared.call);
  prepared.parameter_bytes = runtime_.program(*prepared.kernel).parameter_bytes;
  const std::uint64_t most = runtime_.limits[pending_launches];
  std::uint64_t& pending = pending_[caller.block()];
  if (pending >= most) {
    throw Failure(Error::launch_pending_count_exceeded,
                  "a block launches more kernels than may wait, " + std::to_string(most) +
                      " (cudaDeviceSetLimit of cudaLimitDevRuntimePendingLaunchCount raises it)");
  }
  ++pending;
  return prepared;
}

std::uint64_t KernelRuntime::make_buffer(Caller& caller, const Buffer& buffer) {
  const std::uint64_t address = allocate(caller, std::max<std::uint64_t>(buffer.bytes, 1));
  buffers_.emplace(address, buffer);
  return address;
}

void KernelRuntime::launch(Caller& caller, std::uint64_t buffer, StreamHandle stream,
                           const Prepared& prepared) {
  const auto found = buffers_.find(buffer);
  // Tail launches have the same depth as this launch.
  const std::uint32_t depth = depth_ + (stream == tail_launch ? 0 : 1);
  std::vector<std::byte> parameters(prepared.parameter_bytes);
  try {
    require(found != buffers_.end() && found->second.bytes >= parameters.size(),
            "the parameter buffer is too small, or is not one");
    check_stream(stream);
    if (depth > max_launch_depth) {
      throw Failure(Error::launch_max_depth_exceeded, "kernels launch each other more than " +
                                                          std::to_string(max_launch_depth) +
                                                          " levels deep");
    }
    runtime_.memory().read(buffer, parameters.data(), parameters.size());
  } catch (const Failure&) {
    --pending_[caller.block()];
    if (found != buffers_.end()) drop(caller, buffer);
    throw;
  }
  drop(caller, buffer);
  add(stream,
      {DeviceWork::Kernel{prepared.kernel, prepared.call, std::move(parameters), launch_, depth}});
}

void KernelRuntime::drop(Caller& caller, std::uint64_t buffer) {
  buffers_.erase(buffer);
  caller.release(buffer);
}

void KernelRuntime::add(StreamHandle stream, DeviceWork work) {
  work.parent = launch_;
  (stream == tail_launch ? tail_ : work_).push_back(std::move(work));
}

// --- streams, events, memory --------------------------------------------------------------------

void KernelRuntime::check_stream(StreamHandle stream) const {
  require(stream <= fire_and_forget || streams_.contains(stream),
          "the launch has made no such stream", Error::invalid_resource_handle);
}

void KernelRuntime::check_event(EventHandle event) const {
  require(events_.contains(event), "the launch has made no such event",
          Error::invalid_resource_handle);
}

void KernelRuntime::release(Caller& caller, std::uint64_t address) {
  if (address == 0) return;
  const simt::Allocation* found =
      runtime_.on_device(address) ? runtime_.memory().find(address) : nullptr;
  require(found != nullptr && found->address == address && found->name.empty() &&
              !buffers_.contains(address),
          "cudaFree of what cudaMalloc has not returned");
  caller.release(address);
}

void KernelRuntime::copy(StreamHandle stream, const DeviceWork::Copy& copy) {
  check_stream(stream);
  require(runtime_.on_device(copy.target) && runtime_.on_device(copy.source),
          "kernels copy between places in global memory only");
  require(copy.width <= copy.target_pitch && copy.width <= copy.source_pitch,
          "rows are wider than their pitch");
  add(stream, {copy});
}

void KernelRuntime::fill(StreamHandle stream, const DeviceWork::Fill& fill) {
  check_stream(stream);
  require(runtime_.on_device(fill.target), "kernels fill global memory only");
  require(fill.width <= fill.pitch, "rows are wider than their pitch");
  add(stream, {fill});
}

}  // namespace warpstack::cudart
