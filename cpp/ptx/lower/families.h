#pragma once

/// The families of instructions: the functions that opcodes.inc names, in families/.
namespace warpstack::ptx {

class Emitter;
class Modifiers;

namespace families {

#define PTX_LANES(mnemonic, handler, operation, signature, row_class, expansion) \
  void handler(Emitter&, Modifiers&);
#define PTX_STEPS(mnemonic, handler, row_class) void handler(Emitter&, Modifiers&);
#include "ptx/lower/opcodes.inc"
#undef PTX_LANES
#undef PTX_STEPS

}  // namespace families
}  // namespace warpstack::ptx
