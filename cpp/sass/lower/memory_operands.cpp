#include "sass/lower/memory_operands.h"

#include <limits>

namespace warpstack::sass {
namespace {

Operand register_of(Operand::Kind kind, std::uint32_t index) {
  Operand operand;
  operand.kind = kind;
  operand.index = index;
  return operand;
}

/// Two slots with the sum of two pairs; the second may be a word.
Slot sum_of_pairs(Lowerer& to, Slot a, bool a_is_pair, Slot b) {
  const Slot sum = to.temporary();
  const Slot carry = to.temporary();
  constexpr std::uint32_t upper = Frame::slot_bytes;
  to.emit(Operation::add3_carry, Type::u32, sum, {a, b, Frame::zero, Frame::zero})
      .operands.target2 = carry;
  to.emit(Operation::add3_carry, Type::u32, sum + upper,
          {a_is_pair ? a + upper : Frame::zero, b + upper, Frame::zero, carry})
      .operands.target2 = Frame::sink;
  return sum;
}

}  // namespace

void set_address(Lowerer& to, simt::MemoryAccess& access, const Operand& operand, bool is_64_bits) {
  if (operand.kind != Operand::Kind::address) to.refuse(operand.text + " is not an address");
  access.address_is_64_bits = is_64_bits;
  to.applies(operand, suffix);
  access.offset = operand.integer;
  if (access.offset < std::numeric_limits<std::int32_t>::min() ||
      access.offset > std::numeric_limits<std::uint32_t>::max()) {
    to.refuse("address " + operand.text + ": its offset does not fit 32 bits");
  }
  const bool has_base = operand.base != Operand::no_base;
  const bool has_uniform =
      operand.uniform_base != Operand::no_base && operand.uniform_base != zero_uniform;
  if (is_64_bits) {
    if (has_base && operand.suffix != "U32") {
      to.check_tuple(register_of(Operand::Kind::reg, operand.base), 2);
    }
    if (has_uniform) to.check_tuple(register_of(Operand::Kind::uniform, operand.uniform_base), 2);
  }
  Slot base = has_base ? to.word(register_of(Operand::Kind::reg, operand.base)) : Frame::zero;
  bool base_is_pair = is_64_bits;
  if (operand.suffix == "U32") {
    base_is_pair = false;
  } else if (operand.suffix == "X4" || operand.suffix == "X8" || operand.suffix == "X16") {
    const std::uint32_t shift = operand.suffix == "X4" ? 2 : operand.suffix == "X8" ? 3 : 4;
    const Slot scaled = to.temporary();
    to.emit(Operation::shl, Type::b32, scaled, {base, to.frame().literal(shift)});
    base = scaled;
  } else if (!operand.suffix.empty() && operand.suffix != "64") {
    to.refuse("address " + operand.text + ": its suffix is not executed");
  }
  if (has_uniform) {
    const Slot uniform = to.word(register_of(Operand::Kind::uniform, operand.uniform_base));
    if (!has_base) {
      base = uniform;
    } else if (is_64_bits) {
      base = sum_of_pairs(to, base, base_is_pair, uniform);
    } else {
      const Slot sum = to.temporary();
      to.emit(Operation::add, Type::u32, sum, {base, uniform});
      base = sum;
    }
    base_is_pair = is_64_bits;
  }
  if (!has_base && !has_uniform) {  // the number alone
    access.offset &= 0xffffffff;
    return;
  }
  access.address = base;
  if (is_64_bits) access.address_high = base_is_pair ? base + Frame::slot_bytes : Frame::zero;
}

void take_order(Form& form, simt::MemoryAccess& access) {
  if (form.take("STRONG")) access.strong = true;
  if (form.take("MMIO")) access.strong = true;
  form.take_all({"CTA", "SM", "GPU", "SYS", "VC", "CONSTANT", "WEAK", "PRIVATE"});
  form.take_all({"EF", "EL", "LU", "EU", "NA", "LTC64B", "LTC128B", "LTC256B", "ZD"});
}

}  // namespace warpstack::sass
