#pragma once

#include <memory>

#include "stand_ins/curand/abi.h"
#include "stand_ins/curand/generator.h"
#include "stand_ins/library/calls.h"
#include "stand_ins/library/handles.h"
#include "stand_ins/state/abi.h"

namespace warpstack::curand {

using Failure = library::Failure<Status>;
using library::require;

/// What a curandGenerator_t points to.
struct Context {
  Settings settings;
  bool on_host = false;
  cudart::StreamHandle stream = 0;
  /// Made when first needed, and again after a change of the settings.
  std::unique_ptr<Generator> generator;
};

using Handles = library::Handles<Context>;

/// What the functions of cuRAND have of their own.
struct Library {
  using Status = curand::Status;
  static constexpr Status allocation_failed = Status::allocation_failed;
  static constexpr Status internal_error = Status::internal_error;
  /// Throws Failure(not_initialized) unless the program has created this generator.
  static Context& context_of(Context* handle);
};
inline constexpr library::Call<Library> call;

/// Makes the generator unless it is there.
Generator& generator_of(Context& context);

/// Throws Failure unless this call of the runtime, which has told the user, was successful.
inline void require_success(cudart::Error error) {
  library::require_success<Library>(error, Status::launch_failure);
}

}  // namespace warpstack::curand
