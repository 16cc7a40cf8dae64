#include "stand_ins/curand/context.h"

#include <new>
#include <set>

#include "stand_ins/curand/runtime_calls.h"

namespace warpstack::curand {
namespace {

std::set<Context*>& contexts() {
  static auto* const all = new std::set<Context*>;  // programs may call at their exit
  return *all;
}

}  // namespace

std::recursive_mutex& mutex() {
  static auto* const lock = new std::recursive_mutex;
  return *lock;
}

Context* add_context() { return *contexts().insert(new Context).first; }

void remove_context(Context* context) {
  contexts().erase(context);
  delete context;
}

Context& context_of(Context* handle) {
  require(contexts().count(handle) != 0, Status::not_initialized,
          handle == nullptr ? "the generator is null: curandCreateGenerator makes one"
                            : "there is no such generator: it was destroyed, or never created");
  return *handle;
}

Generator& generator_of(Context& context) {
  if (context.generator == nullptr) context.generator = make_generator(context.settings);
  return *context.generator;
}

Status note(const char* function, const std::exception& error) {
  const std::string what = std::string(function) + ": " + error.what();
  if (const auto* failure = dynamic_cast<const Failure*>(&error)) {
    if (failure->incomplete()) {
      warpstack_cudart_report(what.c_str());
    } else if (*error.what() != '\0') {
      warpstack_cudart_note(what.c_str());
    }
    return failure->status();
  }
  warpstack_cudart_note(what.c_str());
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? Status::allocation_failed
                                                                : Status::internal_error;
}

void require_success(cudart::Error error) {
  if (error == cudart::Error::success) return;
  throw Failure(error == cudart::Error::memory_allocation ? Status::allocation_failed
                                                          : Status::launch_failure,
                "");
}

}  // namespace warpstack::curand
