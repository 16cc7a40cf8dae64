#pragma once

#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "stand_ins/library/runtime_calls.h"
#include "stand_ins/state/abi.h"

/// What the functions of all libraries do alike. A library says in a structure, below called
/// Library, what differs:
///
///     using Status = ...;  // success is 0
///     // Of exceptions that are no Failure.
///     static constexpr Status allocation_failed, internal_error;
///     static Context& context_of(Handle handle);  // throws Failure without one
namespace warpstack::library {

/// Makes a function return a status other than success.
template <typename Status>
class Failure : public std::runtime_error {
 public:
  /// An empty text means that the user has been told. `incomplete` says that NVIDIA's library would
  /// do it, so that results or traces differ from a GPU's.
  Failure(Status status, const std::string& what, bool incomplete = false)
      : std::runtime_error(what), status_(status), incomplete_(incomplete) {}

  [[nodiscard]] Status status() const { return status_; }
  [[nodiscard]] bool incomplete() const { return incomplete_; }

 private:
  Status status_;
  bool incomplete_;
};

/// Throws Failure unless `holds`.
template <typename Status>
void require(bool holds, Status status, const std::string& what) {
  if (!holds) throw Failure<Status>(status, what);
}

/// Throws Failure unless a call of the runtime, which has told the user, was successful: with
/// Library::allocation_failed or with `otherwise`.
template <typename Library>
void require_success(cudart::Error error, typename Library::Status otherwise) {
  using Status = typename Library::Status;
  if (error == cudart::Error::success) return;
  throw Failure<Status>(
      error == cudart::Error::memory_allocation ? Library::allocation_failed : otherwise, "");
}

/// Tells the user of an exception and returns its status.
template <typename Library>
typename Library::Status note(const char* function, const std::exception& error) {
  // Programs use the function's name without the header's suffix.
  std::string_view name = function;
  if (name.ends_with("_v2")) name.remove_suffix(3);
  const std::string what = std::string(name) + ": " + error.what();
  if (const auto* failure = dynamic_cast<const Failure<typename Library::Status>*>(&error)) {
    if (failure->incomplete()) {
      warpstack_cudart_report(what.c_str());
    } else if (*error.what() != '\0') {
      warpstack_cudart_note(what.c_str());
    }
    return failure->status();
  }
  warpstack_cudart_note(what.c_str());
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? Library::allocation_failed
                                                                : Library::internal_error;
}

/// Held while a function of the library runs.
template <typename Library>
std::recursive_mutex& mutex() {
  static auto* const lock = new std::recursive_mutex;  // programs may call at their exit
  return *lock;
}

/// Runs bodies of functions. A library has one object of it, `call`.
template <typename Library>
struct Call {
  using Status = typename Library::Status;

  /// Runs the body of a function and returns its status.
  template <typename Body>
  Status operator()(const char* function, Body body) const noexcept {
    try {
      const std::lock_guard lock(mutex<Library>());
      body();
      return Status::success;
    } catch (const std::exception& error) {
      return note<Library>(function, error);
    }
  }

  /// The same with the context of a handle.
  template <typename Handle, typename Body>
  Status operator()(const char* function, Handle handle, Body body) const noexcept {
    return (*this)(function, [&] { body(Library::context_of(handle)); });
  }
};

/// Makes a function report that the stand-in lacks it. `title` is the library's own name.
template <typename Status>
[[noreturn]] void refuse(Status status, const std::string& title) {
  throw Failure<Status>(
      status,
      "not supported by warpstack's stand-in for " + title + " (see docs/how-to/host-programs.md)",
      true);
}

/// While it exists, the thread computes in place of a GPU.
class WorkOfTheGpu {
 public:
  /// `title` is the library's own name; it has to stay.
  explicit WorkOfTheGpu(const char* title) : work_(warpstack_cudart_begin_work(title)) {}
  ~WorkOfTheGpu() { warpstack_cudart_end_work(work_); }
  WorkOfTheGpu(const WorkOfTheGpu&) = delete;
  WorkOfTheGpu& operator=(const WorkOfTheGpu&) = delete;

 private:
  void* work_;
};

}  // namespace warpstack::library
