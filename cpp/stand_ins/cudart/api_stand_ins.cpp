// Functions for the stand-ins of libraries above the runtime, besides CUDA's own.

#include "stand_ins/state/abi.h"
#include "stand_ins/state/spool.h"

CUDART_EXPORT void warpstack_cudart_note(const char* message) {
  warpstack::cudart::say("note", message);
}

CUDART_EXPORT void warpstack_cudart_report(const char* message) {
  warpstack::cudart::report(message);
}
