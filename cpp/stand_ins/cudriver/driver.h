#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "stand_ins/cudriver/abi.h"
#include "stand_ins/state/runtime.h"

/// The stand-in for the parts of NVIDIA's driver (libcuda) that programs call. It shares the state
/// of the stand-in for libcudart: one device, the same memory, streams, launches and traces.
namespace warpstack::cudriver {

using cudart::address_of;
using cudart::Failure;
using cudart::FatModule;
using cudart::pointer_to;
using cudart::require;
using cudart::Runtime;

/// CUcontext. All contexts share the memory of the device.
struct Context {
  std::uint64_t number = 0;
  unsigned flags = 0;
  unsigned users = 1;  ///< cuCtxAttach; of the primary one: cuDevicePrimaryCtxRetain
};

/// Settings for later launches of a kernel, from functions of before CUDA 4.
struct LaunchSettings {
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  std::vector<std::byte> parameters;
};

/// A module or a library that the program has loaded.
struct Module {
  const Context* context = nullptr;  ///< null for a library, which has none
  /// Kernels by name. The address of a kernel's settings is its handle.
  std::map<std::string, std::unique_ptr<LaunchSettings>> functions;
};

/// The driver's state in a process. Functions are called with the runtime locked.
class Driver {
 public:
  /// Never destroyed, like Runtime.
  static Driver& get();

  bool initialized = false;
  /// The context of the runtime's functions, too.
  Context primary;
  std::map<FatModule*, Module> modules;

  Context* create(unsigned flags);
  /// The context of a handle. Throws Failure when there is none.
  Context& checked(Context* context);
  /// The context of the calling thread, or null. Throws Failure when it has been destroyed.
  Context* current();
  void push(Context* context);
  Context* pop();
  void set_current(Context* context);
  /// Ends a context made by cuCtxCreate. The last one takes all contents of the device with it.
  void destroy(Context& context);
  /// Gives up one use of the primary context.
  void release_primary();
  /// Ends the primary context, whoever uses it.
  void reset_primary();
  [[nodiscard]] bool is_primary_active() const;

  Module& checked(FatModule* module);
  /// Throws Failure when the handle is not that of a kernel of a loaded module.
  LaunchSettings& settings_of(Function function);
  void unload(FatModule* module);

 private:
  void unload_of(const Context& context);
  /// Frees the memory of contexts if none is left.
  void reset_unless_used();

  std::set<std::unique_ptr<Context>> contexts_;
  std::uint64_t last_number_ = 1;
};

/// The calls that a function needs before it.
enum class Needs { nothing, initialization, context };

/// While it exists, messages name this function of the driver, whatever does its work, and the
/// thread's last error of the runtime is kept.
class CallName {
 public:
  explicit CallName(const char* function) : api_call_(function), before_(cudart::thread_state()) {
    // The program called the outermost function.
    if (before_.called == nullptr) cudart::thread_state().called = function;
  }
  ~CallName() { cudart::thread_state() = before_; }
  CallName(const CallName&) = delete;
  CallName& operator=(const CallName&) = delete;

 private:
  cudart::ApiCall api_call_;
  cudart::ThreadState before_;
};

/// The driver's code for an error of the runtime.
Error code_of(Error error);
/// The code for a function that is called too early; success otherwise.
Error check(const char* function, Needs needs) noexcept;

/// Lets a function of the runtime do the work of one of the driver.
template <typename Call>
Error forward(const char* function, Call call, Needs needs = Needs::context) noexcept {
  const CallName name(function);
  const Error error = check(function, needs);
  return error != Error::success ? error : code_of(call());
}

/// Explains a mistake within forward(), and returns its code.
inline Error mistake(const char* what) {
  return cudart::note(cudart::thread_state().called, Failure(Error::invalid_value, what));
}

/// Runs the body of a function of the driver with the runtime locked.
template <typename Body>
Error drive(const char* function, Body body, Needs needs = Needs::context) noexcept {
  return forward(function, [&] { return cudart::call(function, body); }, needs);
}

/// The same for functions that work although a kernel has failed.
template <typename Body>
Error manage(const char* function, Body body, Needs needs = Needs::initialization) noexcept {
  return forward(
      function,
      [&] {
        try {
          const std::lock_guard lock(Runtime::get().mutex());
          body(Driver::get());
          return Error::success;
        } catch (const std::exception& error) {
          return cudart::note(function, error);
        }
      },
      needs);
}

}  // namespace warpstack::cudriver
