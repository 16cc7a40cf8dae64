#include <array>
#include <utility>

#include "sass/lower/handlers.h"

// FADD2, FMUL2 and FFMA2: two values of single precision in a pair of registers.

namespace warpstack::sass {
namespace {

using simt::Rounding;

/// A source: the slots of the values for the lower and upper result, and their signs.
struct Halves {
  std::array<Slot, 2> slots{};
  std::array<bool, 2> negated{};
  bool absolute = false;
};

/// R2.F32x2.HI_LO is a pair, LO_HI the exchanged pair; R2.F32 or a number stands for both halves. A
/// sign applies to both; with .NP the upper half has the opposite sign.
Halves halves_of(Lowerer& to, const Operand& operand) {
  Halves result;
  if (operand.kind == Operand::Kind::real || operand.kind == Operand::Kind::integer) {
    result.slots.fill(to.real_word(operand));
    return result;
  }
  Operand bare = to.without(operand, negation | absolute | suffix);
  result.absolute = operand.absolute;
  result.negated.fill(operand.negated);
  std::string_view form = operand.suffix;
  if (form.ends_with(".NP")) {
    result.negated[1] = !operand.negated;
    form.remove_suffix(3);
  }
  if (form == "F32") {
    result.slots.fill(to.word(bare));
    return result;
  }
  const bool is_swapped = form == "F32x2.LO_HI";
  if (!is_swapped && form != "F32x2.HI_LO") {
    to.refuse("operand " + operand.text + ": its suffix is not executed");
  }
  const Slot low = to.pair(bare);
  const bool is_zero = low == Frame::zero;
  result.slots = {low, is_zero ? low : low + Frame::slot_bytes};
  if (is_swapped) std::swap(result.slots[0], result.slots[1]);
  return result;
}

template <Operation operation, std::uint32_t operands>
void arithmetic(Lowerer& to, Form& form) {
  const bool flush = form.take("FTZ");
  form.take("RN");
  Rounding rounding = Rounding::nearest;
  if (form.take("RZ")) rounding = Rounding::zero;
  if (form.take("RM")) rounding = Rounding::down;
  if (form.take("RP")) rounding = Rounding::up;
  const Slot target = to.target(form.next(), 2);
  std::array<Halves, 3> sources;
  for (std::uint32_t i = 0; i < operands; ++i) sources[i] = halves_of(to, form.next());
  // The target may be a source of either half.
  std::array<Slot, 2> results{};
  for (std::size_t half = 0; half < 2; ++half) {
    simt::OperandSigns signs;
    signs.set_rounding(rounding);
    for (std::uint32_t i = 0; i < operands; ++i) {
      if (sources[i].absolute) signs.take_absolute(i);
      if (sources[i].negated[half]) signs.negate(i);
    }
    const LaneForm lane{
        .operation = operation, .type = Type::f32, .flush = flush, .signs = signs.bits != 0};
    results[half] = to.temporary();
    const Slot a = sources[0].slots[half];
    const Slot b = sources[1].slots[half];
    if constexpr (operands == 2) {
      to.emit(lane, results[half], {a, b}, signs.bits);
    } else {
      to.emit(lane, results[half], {a, b, sources[2].slots[half]}, signs.bits);
    }
  }
  to.move(target, results[0]);
  if (target != Frame::sink) to.move(target + Frame::slot_bytes, results[1]);
}

}  // namespace

void handlers::fadd2(Lowerer& to, Form& form) { arithmetic<Operation::add, 2>(to, form); }
void handlers::fmul2(Lowerer& to, Form& form) { arithmetic<Operation::mul_lo, 2>(to, form); }
void handlers::ffma2(Lowerer& to, Form& form) { arithmetic<Operation::fma, 3>(to, form); }

}  // namespace warpstack::sass
