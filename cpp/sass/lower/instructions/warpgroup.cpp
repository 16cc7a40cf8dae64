#include <string>
#include <string_view>
#include <utility>

#include "sass/lower/handlers.h"

// Products of matrices by four warps: HGMMA and its kin, and their waits.

namespace warpstack::sass {
namespace {

using simt::FactorElement;
using simt::WarpgroupMultiply;

/// N of `64x128x16`, whose K is the number of elements in 32 bytes.
std::uint32_t take_columns(Lowerer& to, Form& form, FactorElement element) {
  const std::uint32_t bits = element == FactorElement::b1 ? 1 : bits_of(element);
  const std::string depth = "x" + std::to_string(256 / bits);
  for (std::uint32_t n = 8; n <= 256; n += 8) {
    if (form.take("64x" + std::to_string(n) + depth)) return n;
  }
  to.refuse("matrices of this shape and these elements are not executed");
}

/// Takes the types of both factors, of two that are possible, in order; one may be there twice.
void take_factors(Lowerer& to, Form& form, WarpgroupMultiply& multiply,
                  std::pair<std::string_view, FactorElement> one,
                  std::pair<std::string_view, FactorElement> other) {
  const std::string_view opcode = form.instruction().opcode;
  if (opcode.find("." + std::string(other.first)) < opcode.find("." + std::string(one.first))) {
    std::swap(one, other);
  }
  if (!form.take(one.first)) to.refuse("it does not name the types of its factors");
  multiply.a = multiply.b = one.second;
  if (form.take(one.first)) return;
  if (!form.take(other.first)) to.refuse("it does not name the types of both factors");
  multiply.b = other.second;
}

/// A descriptor of 64 bits in one slot, from two uniform registers.
Slot descriptor_of(Lowerer& to, const Operand& operand, std::uint32_t first) {
  if (operand.uniform_base == Operand::no_base) to.refuse("its descriptors are not in registers");
  Operand words;
  words.kind = Operand::Kind::uniform;
  words.index = operand.uniform_base == zero_uniform ? zero_uniform : operand.uniform_base + first;
  words.text = operand.text;
  const Slot descriptor = to.temporary();
  to.emit(Operation::pack, Type::b64, descriptor, {to.word(words)});
  return descriptor;
}

/// `.negA.tnspB` behind the descriptors.
void take_orders(Lowerer& to, const Operand& operand, WarpgroupMultiply& multiply) {
  std::string_view rest = operand.suffix;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find('.'));
    rest = word.size() == rest.size() ? std::string_view{} : rest.substr(word.size() + 1);
    if (word == "negA") {
      multiply.negate_a = true;
    } else if (word == "negB") {
      multiply.negate_b = true;
    } else if (word == "tnspA") {
      multiply.transpose_a = true;
    } else if (word == "tnspB") {
      multiply.transpose_b = true;
    } else {
      to.refuse("operand " + operand.text + ": ." + std::string(word) + " is not executed");
    }
  }
  to.applies(operand, suffix);
}

/// The number of registers of each operand is that of PTX, and so is what they hold. A last operand
/// gsb0 says that the products since the last one are a group (`wgmma.commit_group`).
void multiply(Lowerer& to, Form& form, WarpgroupMultiply multiply) {
  multiply.columns = take_columns(to, form, multiply.a);
  const Operand& d = form.next();
  if (!form.more()) to.refuse("its factors are missing");
  const bool has_registers = form.peek().is_register();
  if (has_registers) {
    const Operand& a = form.next();
    multiply.negate_a = a.negated;
    const Slot first = to.word(to.without(a, negation));
    for (std::uint32_t i = 0; i < multiply.a_values.size(); ++i) {
      const bool is_zero = a.index == zero_register;
      multiply.a_values[i] = is_zero ? first : first + i * Frame::slot_bytes;
    }
  }

  const Operand& factors = form.next();
  if (factors.kind != Operand::Kind::descriptors) {
    to.refuse("operand " + factors.text + " is not like gdesc[UR4]");
  }
  take_orders(to, factors, multiply);
  const Operand& c = form.next();
  const bool adds_nothing = c.index == zero_register;
  if (!c.is_register() || (!adds_nothing && c.index != d.index)) {
    to.refuse("sums in other registers than its result are not executed");
  }
  bool is_committed = false;
  multiply.accumulates = adds_nothing ? Slot{Frame::zero} : simt::none;
  if (form.more() && form.peek().is_predicate()) {
    const Condition counts = to.condition(form.next());
    if (!adds_nothing && !counts.is_true()) multiply.accumulates = to.positive(counts);
  }
  if (form.more()) {
    is_committed = form.next().text == "gsb0";
    if (!is_committed) to.refuse("its last operand is not gsb0");
  }
  if (d.index == zero_register) {  // a product that nobody reads only ends a group
    to.emit(Action::nothing);
  } else {
    if (!has_registers) multiply.a_descriptor = descriptor_of(to, factors, 0);
    multiply.b_descriptor = descriptor_of(to, factors, 2);
    const Slot first = to.target(d);
    const std::uint32_t words = multiply.columns / (multiply.d == FactorElement::f16 ? 4 : 2);
    if (!to.frame().has_register(d.index + words - 1)) {
      to.refuse("operand " + d.text + ": its " + std::to_string(words) +
                " registers are more than the kernel has");
    }
    for (std::uint32_t i = 0; i < words; ++i) {
      multiply.d_values.push_back(first + i * Frame::slot_bytes);
    }
    to.row_follows();
    to.emit(Action::warpgroup_multiply,
            static_cast<std::uint32_t>(to.program().warpgroup_multiplications.size()));
    to.program().warpgroup_multiplications.push_back(std::move(multiply));
  }
  if (is_committed) to.emit(Action::warpgroup_commit);
}

/// Sums of halves, or of floats.
FactorElement take_float_sums(Form& form) {
  if (form.take("F32")) return FactorElement::f32;
  form.take("F16");
  return FactorElement::f16;
}

}  // namespace

void handlers::hgmma(Lowerer& to, Form& form) {
  WarpgroupMultiply product;
  product.d = take_float_sums(form);
  product.a = product.b = form.take("BF16")   ? FactorElement::bf16
                          : form.take("TF32") ? FactorElement::tf32
                                              : FactorElement::f16;
  multiply(to, form, std::move(product));
}

void handlers::qgmma(Lowerer& to, Form& form) {
  WarpgroupMultiply product;
  product.d = take_float_sums(form);
  take_factors(to, form, product, {"E4M3", FactorElement::e4m3}, {"E5M2", FactorElement::e5m2});
  multiply(to, form, std::move(product));
}

void handlers::igmma(Lowerer& to, Form& form) {
  WarpgroupMultiply product;
  product.d = FactorElement::s32;
  take_factors(to, form, product, {"S8", FactorElement::s8}, {"U8", FactorElement::u8});
  product.saturate = form.take("SAT");
  multiply(to, form, std::move(product));
}

void handlers::bgmma(Lowerer& to, Form& form) {
  WarpgroupMultiply product;
  product.a = product.b = FactorElement::b1;
  product.d = FactorElement::s32;
  if (!form.take("AND") || !form.take("POPC")) to.refuse("only AND.POPC is executed");
  multiply(to, form, std::move(product));
}

/// ARRIVE orders registers before products; DEPBAR waits for groups.
void handlers::warpgroup(Lowerer& to, Form& form) {
  if (form.take("ARRIVE")) return;
  if (!form.take("DEPBAR") || !form.take("LE")) to.refuse("this form is not executed");
  if (form.next().text != "gsb0") to.refuse("it does not wait for gsb0");
  const std::int64_t most = to.number(form.next());
  if (most < 0) to.refuse("it waits for a negative number of groups");
  to.emit(Action::warpgroup_wait, static_cast<std::uint32_t>(to.program().warpgroup_waits.size()));
  to.program().warpgroup_waits.push_back({static_cast<std::uint64_t>(most)});
}

}  // namespace warpstack::sass
