#include "sass/lower/handlers.h"

namespace warpstack::sass {
namespace {

constexpr Handler table[] = {
#define SASS_OPERATION(name, op_class, registers, handler) handlers::handler,
#define SASS_MEMORY(name, space, kind, registers, handler) handlers::handler,
#define SASS_MATRIX(name, factors, warps, handler) handlers::handler,
#include "trace/instructions/sass.inc"
};

}  // namespace

void handlers::not_executed(Lowerer& to, Form& /*form*/) {
  to.refuse("this opcode is not executed");
}

Handler handler_of(const trace::SassOpcode* opcode) {
  return opcode == nullptr ? handlers::not_executed : table[opcode->row];
}

}  // namespace warpstack::sass
