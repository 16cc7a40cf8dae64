#pragma once

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "stand_ins/library/calls.h"
#include "stand_ins/library/runtime_calls.h"
#include "stand_ins/state/abi.h"

/// Calls in a stream that captures a graph: what they do to the device's memory is done when the
/// graph is launched, with what they were given when they were captured.
///
/// The body of such a call runs twice. The first time its arguments are checked and what it takes
/// from the host is noted, until it wants the device's memory for the first time: there it stops.
/// At each launch it runs as a whole, and takes what was noted.
namespace warpstack::library {

/// What a body has taken from the host, in its order.
class Notes {
 public:
  /// The notes of the body that the thread runs, or null.
  static Notes*& of_thread() {
    static thread_local Notes* notes = nullptr;
    return notes;
  }

  /// Begins to give what was noted.
  void give() {
    gives_ = true;
    next_ = 0;
  }
  [[nodiscard]] bool gives() const { return gives_; }

  /// The next of what was noted, or null: everything has been given.
  template <typename T>
  T* next() {
    return next_ < things_.size() ? static_cast<T*>(things_[next_++].get()) : nullptr;
  }
  template <typename T>
  void add(const T& thing) {
    things_.push_back(std::make_shared<T>(thing));
  }

 private:
  std::vector<std::shared_ptr<void>> things_;
  std::size_t next_ = 0;
  bool gives_ = false;
};

/// What find() returns, or, at a launch, a copy of what it returned when the call was captured.
template <typename Find>
auto& taken(Find find) {
  using T = std::remove_reference_t<decltype(find())>;
  Notes* const notes = Notes::of_thread();
  if (notes != nullptr && notes->gives()) {
    if (T* const noted = notes->next<T>()) return *noted;
  }
  T& found = find();
  if (notes != nullptr && !notes->gives()) notes->add(found);
  return found;
}

/// A body has come to the device's memory, and a stream captures.
struct AtDevice {};

/// Bodies call it before they read or write the device's memory.
inline void reach_device() {
  const Notes* const notes = Notes::of_thread();
  if (notes != nullptr && !notes->gives()) throw AtDevice{};
}

/// Runs the body of a function that may be captured. It is copied: it holds its arguments by value.
template <typename Library>
struct StreamCall {
  using Status = typename Library::Status;

  template <typename Handle, typename Body>
  Status operator()(const char* function, Handle handle, const Body& body) const noexcept {
    return Call<Library>()(function, handle, [&](auto& context) {
      if (!warpstack_cudart_is_capturing(context.stream)) return body(context);
      defer(function, context, body);
    });
  }

 private:
  /// While it exists, the thread's body uses these notes.
  class Using {
   public:
    explicit Using(Notes& notes) : before_(std::exchange(Notes::of_thread(), &notes)) {}
    ~Using() { Notes::of_thread() = before_; }
    Using(const Using&) = delete;
    Using& operator=(const Using&) = delete;

   private:
    Notes* before_;
  };

  template <typename Context, typename Body>
  struct Deferred {
    const char* function;
    Context context;
    Body body;
    Notes notes;

    static bool run(void* data, cudart::StreamHandle stream) noexcept {
      auto& self = *static_cast<Deferred*>(data);
      return Call<Library>()(self.function, [&self, stream] {
               self.notes.give();
               const Using notes(self.notes);
               Context context = self.context;
               context.stream = stream;
               self.body(context);
             }) == Status::success;
    }
    static void destroy(void* data) { delete static_cast<Deferred*>(data); }
  };

  template <typename Context, typename Body>
  static void defer(const char* function, const Context& context, const Body& body) {
    using Kept = Deferred<Context, Body>;
    auto kept = std::make_unique<Kept>(Kept{function, context, body, {}});
    try {
      const Using notes(kept->notes);
      Context copy = context;
      kept->body(copy);
      return;  // it does nothing on the device
    } catch (const AtDevice&) {
    }
    require_success<Library>(warpstack_cudart_capture(Library::title, &Kept::run, kept.release(),
                                                      &Kept::destroy, context.stream),
                             Library::execution_failed);
  }
};

}  // namespace warpstack::library
