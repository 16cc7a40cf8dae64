// What the stand-ins for libraries above the runtime need beside CUDA's own functions.

#include "cudart/abi.h"
#include "cudart/spool.h"

CUDART_EXPORT void warpstack_cudart_note(const char* message) {
  warpstack::cudart::say("note", message);
}

CUDART_EXPORT void warpstack_cudart_report(const char* message) {
  warpstack::cudart::report(message);
}
