#include "ptx/lower/opcode.h"

#include <unordered_map>

#include "ptx/lower/instructions.h"

namespace warpstack::ptx {
namespace {

/// The names that the last columns of opcodes.inc use.
namespace row_classes {
constexpr RowClass by_type{.by_type = true};
constexpr RowClass by_form{};
constexpr RowClass barrier{OpClass::barrier};
constexpr RowClass control{OpClass::control};
constexpr RowClass integer{OpClass::integer};
constexpr RowClass memory{OpClass::memory};
constexpr RowClass sfu{OpClass::sfu};
constexpr RowClass shuffle{OpClass::shuffle};
constexpr RowClass tensor{OpClass::tensor};
constexpr RowClass texture{OpClass::texture};
constexpr RowClass uniform{OpClass::uniform};
}  // namespace row_classes
constexpr Expansion one_row = nullptr;

constexpr Opcode opcodes[] = {
#define PTX_LANES(mnemonic, handler, operation, signature, row_class, expansion) \
  {mnemonic, handlers::handler, row_classes::row_class, Operation::operation, signature, expansion},
#define PTX_STEPS(mnemonic, handler, row_class) \
  {mnemonic, handlers::handler, row_classes::row_class, Operation::mov, "", one_row},
#include "ptx/lower/opcodes.inc"
#undef PTX_LANES
#undef PTX_STEPS
};

}  // namespace

Type Signature::type(std::size_t i, Type first, Type second) const {
  switch (letters_[i]) {
    case 't':
      return first;
    case 's':
      return second;
    case 'u':
      return Type::u32;
    case 'i':
      return Type::s32;
    default:
      return Type::pred;
  }
}

std::span<const Opcode> all_opcodes() { return opcodes; }

const Opcode* find_opcode(std::string_view mnemonic) {
  static const auto table = [] {
    std::unordered_map<std::string_view, const Opcode*> result;
    for (const Opcode& opcode : opcodes) result.emplace(opcode.mnemonic, &opcode);
    return result;
  }();
  const auto found = table.find(mnemonic);
  return found == table.end() ? nullptr : found->second;
}

OpClass arithmetic_class(Type type) {
  switch (type) {
    case Type::f64:
      return OpClass::fp64;
    case Type::f32:
    case Type::f32x2:
    case Type::tf32:
      return OpClass::fp32;
    case Type::f16:
    case Type::f16x2:
    case Type::bf16:
    case Type::bf16x2:
      return OpClass::fp16;
    default:
      return OpClass::integer;
  }
}

}  // namespace warpstack::ptx
