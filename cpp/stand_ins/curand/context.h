#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "stand_ins/curand/abi.h"
#include "stand_ins/curand/generator.h"
#include "stand_ins/state/abi.h"

namespace warpstack::curand {

/// Makes a function return a status other than success.
class Failure : public std::runtime_error {
 public:
  /// An empty text means that the user has been told. `incomplete` says that cuRAND would do it, so
  /// that results or traces differ from a GPU's.
  Failure(Status status, const std::string& what, bool incomplete = false)
      : std::runtime_error(what), status_(status), incomplete_(incomplete) {}

  [[nodiscard]] Status status() const { return status_; }
  [[nodiscard]] bool incomplete() const { return incomplete_; }

 private:
  Status status_;
  bool incomplete_;
};

/// What a curandGenerator_t points to.
struct Context {
  Settings settings;
  bool on_host = false;
  cudart::StreamHandle stream = 0;
  /// Made when first needed, and again after a change of the settings.
  std::unique_ptr<Generator> generator;
};

/// Held while a function runs.
std::recursive_mutex& mutex();
/// Creates and destroys a context. The pointer is the program's handle.
Context* add_context();
void remove_context(Context* context);
/// Throws Failure(not_initialized) unless the program has created this handle.
Context& context_of(Context* handle);
/// Makes the generator unless it is there.
Generator& generator_of(Context& context);

/// Tells the user of an exception and returns its status.
Status note(const char* function, const std::exception& error);

/// Runs the body of a function and returns its status.
template <typename Body>
Status call(const char* function, Body body) noexcept {
  try {
    const std::lock_guard lock(mutex());
    body();
    return Status::success;
  } catch (const std::exception& error) {
    return note(function, error);
  }
}

/// The same with the context of a handle.
template <typename Body>
Status call(const char* function, Context* handle, Body body) noexcept {
  return call(function, [&] { body(context_of(handle)); });
}

/// Throws Failure unless `holds`.
inline void require(bool holds, Status status, const std::string& what) {
  if (!holds) throw Failure(status, what);
}

/// Throws Failure unless this call of the runtime, which has told the user, was successful.
void require_success(cudart::Error error);

}  // namespace warpstack::curand
