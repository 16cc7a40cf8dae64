// Functions for the stand-ins of libraries above the runtime, besides CUDA's own.

#include <memory>

#include "stand_ins/cudart/library_calls.h"
#include "stand_ins/log/operation_log.h"
#include "stand_ins/state/abi.h"
#include "stand_ins/state/capture.h"
#include "stand_ins/state/graph.h"
#include "stand_ins/state/recording.h"
#include "stand_ins/state/runtime.h"
#include "stand_ins/state/spool.h"

namespace {

void check_not_captured(warpstack::cudart::Runtime& runtime,
                        warpstack::cudart::StreamHandle stream) {
  if (warpstack::cudart::capture_of(runtime, stream) == nullptr) return;
  throw warpstack::cudart::Failure(warpstack::cudart::Error::capture_unsupported,
                                   "warpstack's stand-in cannot be captured in a graph", true);
}

}  // namespace

CUDART_EXPORT void warpstack_cudart_note(const char* message) {
  warpstack::cudart::say("note", message);
}

CUDART_EXPORT void warpstack_cudart_report(const char* message) {
  warpstack::cudart::report(message);
}

CUDART_EXPORT void* warpstack_cudart_begin_work(const char* library) {
  return std::make_unique<warpstack::cudart::ApiCall>(library).release();
}

CUDART_EXPORT void warpstack_cudart_end_work(void* work) {
  const std::unique_ptr<warpstack::cudart::ApiCall> ended(
      static_cast<warpstack::cudart::ApiCall*>(work));
}

CUDART_EXPORT warpstack::cudart::Error warpstack_cudart_read(
    const char* library, void* target, const void* source, std::size_t bytes,
    warpstack::cudart::StreamHandle stream) {
  return warpstack::cudart::call(library, [&](warpstack::cudart::Runtime& runtime) {
    check_not_captured(runtime, stream);
    warpstack::cudart::read_for_library(runtime, target, source, bytes);
  });
}

CUDART_EXPORT warpstack::cudart::Error warpstack_cudart_write(
    const char* library, void* target, const void* source, std::size_t bytes, std::size_t moved,
    const warpstack::cudart::Computation& computation, warpstack::cudart::StreamHandle stream) {
  return warpstack::cudart::call(library, [&](warpstack::cudart::Runtime& runtime) {
    check_not_captured(runtime, stream);
    warpstack::cudart::write_for_library(runtime, target, source, bytes);
    if (moved == 0) return;
    runtime.pass_time(warpstack::cudart::call_time);
    warpstack::cudart::note_library_call(library);
    warpstack::cudart::record_library(runtime, library, stream, moved, computation);
  });
}

CUDART_EXPORT bool warpstack_cudart_is_capturing(warpstack::cudart::StreamHandle stream) {
  bool found = false;
  warpstack::cudart::call(__func__, [&](warpstack::cudart::Runtime& runtime) {
    found = runtime.graphs().captures.of(stream) != nullptr;
  });
  return found;
}

CUDART_EXPORT warpstack::cudart::Error warpstack_cudart_capture(
    const char* library, bool (*run)(void* data, warpstack::cudart::StreamHandle stream),
    void* data, void (*destroy)(void* data), warpstack::cudart::StreamHandle stream) {
  const std::shared_ptr<void> held(data, destroy);
  return warpstack::cudart::call(library, [&](warpstack::cudart::Runtime& runtime) {
    warpstack::cudart::capture(runtime, stream, warpstack::cudart::LibraryWork{run, held});
  });
}
