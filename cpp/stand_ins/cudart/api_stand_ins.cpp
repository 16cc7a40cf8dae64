// What the stand-ins for libraries above the runtime need beside CUDA's own functions.

#include "stand_ins/state/abi.h"
#include "stand_ins/state/spool.h"

CUDART_EXPORT void warpstack_cudart_note(const char* message) {
  warpstack::cudart::say("note", message);
}

CUDART_EXPORT void warpstack_cudart_report(const char* message) {
  warpstack::cudart::report(message);
}
