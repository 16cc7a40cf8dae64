#include "stand_ins/cudriver/driver.h"

#include <algorithm>
#include <utility>

namespace warpstack::cudriver {
namespace {

/// The stack of contexts of cuCtxPushCurrent, per thread.
std::vector<Context*>& stack() {
  static thread_local std::vector<Context*> contexts;
  return contexts;
}

}  // namespace

Driver& Driver::get() {
  static Driver* const driver = [] {
    auto* const made = new Driver;
    made->primary = {1, 0, 0};
    return made;
  }();
  return *driver;
}

Context* Driver::create(unsigned flags) {
  auto context = std::make_unique<Context>();
  context->number = ++last_number_;
  context->flags = flags;
  return contexts_.insert(std::move(context)).first->get();
}

Context& Driver::checked(Context* context) {
  const bool known =
      context == &primary ||
      std::ranges::any_of(contexts_, [context](const auto& one) { return one.get() == context; });
  if (!known) throw Failure(invalid_context, "there is no such context");
  return *context;
}

Context* Driver::current() {
  if (stack().empty()) {
    // The runtime's functions make the primary context current if there is none.
    return cudart::thread_state().uses_runtime ? &primary : nullptr;
  }
  Context* const top = stack().back();
  if (top == nullptr) return nullptr;
  try {
    return &checked(top);
  } catch (const Failure&) {
    throw Failure(context_is_destroyed, "the current context has been destroyed");
  }
}

void Driver::push(Context* context) { stack().push_back(&checked(context)); }

Context* Driver::pop() {
  Context* const top = stack().empty() ? current() : stack().back();
  if (top == nullptr) throw Failure(invalid_context, "the thread has no current context");
  if (stack().empty()) {
    stack().push_back(nullptr);  // no context, not even the one that the runtime has made current
  } else {
    stack().pop_back();
  }
  return top;
}

void Driver::set_current(Context* context) {
  if (context != nullptr) checked(context);
  if (stack().empty()) {
    stack().push_back(context);
  } else {
    stack().back() = context;
  }
}

void Driver::destroy(Context& context) {
  require(&context != &primary, "the primary context is released, not destroyed", invalid_context);
  unload_of(context);
  if (!stack().empty() && stack().back() == &context) stack().pop_back();
  std::erase_if(contexts_, [&](const auto& one) { return one.get() == &context; });
  reset_unless_used();
}

void Driver::release_primary() {
  require(primary.users > 0, "the primary context is not retained", invalid_context);
  if (--primary.users > 0) return;
  if (Runtime::get().is_used) return;  // the runtime uses it, too
  unload_of(primary);
  reset_unless_used();
}

void Driver::reset_primary() {
  unload_of(primary);
  // Other contexts share the memory of the primary one.
  if (contexts_.empty()) Runtime::get().reset();
}

bool Driver::is_primary_active() const { return primary.users > 0 || Runtime::get().is_used; }

Module& Driver::checked(FatModule* module) {
  const auto found = modules.find(module);
  if (found == modules.end()) {
    throw Failure(Error::invalid_resource_handle, "there is no such module");
  }
  return found->second;
}

LaunchSettings& Driver::settings_of(Function function) {
  for (const auto& [module, of] : modules) {
    for (const auto& [name, settings] : of.functions) {
      if (settings.get() == function) return *settings;
    }
  }
  throw Failure(Error::invalid_resource_handle, "there is no such kernel");
}

void Driver::unload(FatModule* module) {
  checked(module);
  modules.erase(module);
  Runtime::get().remove_module(module);
}

void Driver::unload_of(const Context& context) {
  std::vector<FatModule*> gone;
  for (const auto& [module, of] : modules) {
    if (of.context == &context) gone.push_back(module);
  }
  for (FatModule* const module : gone) unload(module);
}

void Driver::reset_unless_used() {
  if (contexts_.empty() && !is_primary_active()) Runtime::get().reset();
}

Error code_of(Error error) {
  const int number = static_cast<int>(error);
  if (error == Error::invalid_device_function) return Error::invalid_resource_handle;
  // Codes from 5 to 99 are for mistakes that only the runtime distinguishes.
  return number >= 5 && number < 100 ? Error::invalid_value : error;
}

Error check(const char* function, Needs needs) noexcept {
  try {
    const std::lock_guard lock(Runtime::get().mutex());
    Driver& driver = Driver::get();
    if (needs == Needs::nothing) return Error::success;
    if (!driver.initialized && !cudart::thread_state().uses_runtime) {
      throw Failure(not_initialized, "cuInit has not been called");
    }
    if (needs == Needs::context && driver.current() == nullptr) {
      throw Failure(invalid_context,
                    "the thread has no current context (cuCtxCreate or cuCtxSetCurrent gives it "
                    "one)");
    }
    return Error::success;
  } catch (const std::exception& error) {
    return cudart::note(function, error);
  }
}

}  // namespace warpstack::cudriver
