#include <optional>
#include <utility>

#include "sass/lower/handlers.h"
#include "simt/program/address_space.h"
#include "simt/program/special_register.h"

namespace warpstack::sass {
namespace {

using simt::Special;

struct SpecialName {
  std::string_view name;
  Special special;
  std::uint8_t component = 0;
};

constexpr SpecialName special_names[] = {
    {"SR_TID.X", Special::tid, 0},
    {"SR_TID.Y", Special::tid, 1},
    {"SR_TID.Z", Special::tid, 2},
    {"SR_CTAID.X", Special::ctaid, 0},
    {"SR_CTAID.Y", Special::ctaid, 1},
    {"SR_CTAID.Z", Special::ctaid, 2},
    {"SR_NTID.X", Special::ntid, 0},
    {"SR_NTID.Y", Special::ntid, 1},
    {"SR_NTID.Z", Special::ntid, 2},
    {"SR_LANEID", Special::laneid},
    {"SR_EQMASK", Special::lanemask_eq},
    {"SR_LTMASK", Special::lanemask_lt},
    {"SR_LEMASK", Special::lanemask_le},
    {"SR_GTMASK", Special::lanemask_gt},
    {"SR_GEMASK", Special::lanemask_ge},
    {"SR_CLOCKLO", Special::clock},
    {"SR_CLOCKHI", Special::clock_hi},
    {"SR_GLOBALTIMERLO", Special::globaltimer_lo},
    {"SR_GLOBALTIMERHI", Special::globaltimer_hi},
    {"SR_VIRTUALSMID", Special::smid},
    {"SR_NWARPID", Special::nwarpid},
    {"SR_WARPID", Special::warpid},
    {"SR_CgaCtaId", Special::cluster_ctarank},
    {"SR_SWINHI", Special::shared_window_high},
    {"SR_SMEMSZ", Special::total_smem_size},
};

void read_special(Lowerer& to, Special special, std::uint8_t component, Slot target) {
  auto& specials = to.program().specials;
  simt::Step& step = to.emit(Action::special, static_cast<std::uint32_t>(specials.size()));
  step.operands.target = target;
  step.operands.immediate = 4;
  specials.push_back({special, component});
}

const SpecialName& special_in(Lowerer& to, const Operand& operand) {
  for (const SpecialName& known : special_names) {
    if (operand.kind == Operand::Kind::special && known.name == operand.text) return known;
  }
  to.refuse("the special register " + operand.text + " is not known");
}

}  // namespace

void handlers::mov(Lowerer& to, Form& form) {
  const bool is_pair = form.take("64");
  form.take("SPILL");
  const Slot target = to.target(form.next(), is_pair ? 2 : 1);
  if (is_pair) {
    to.emit(Operation::unpack, Type::b64, target, {to.packed(form.next(), true)});
    return;
  }
  to.move(target, to.integer(form.next()));
  // The mask of bytes must have all of them.
  if (form.more() && to.number(form.next()) != 0xf) to.refuse("a mask of bytes is not executed");
}

void handlers::s2r(Lowerer& to, Form& form) {
  const Slot target = to.target(form.next());
  const Operand& source = form.next();
  // Without clusters each has one block, and words of constant bank 0 lie where those for the
  // smallest cluster do.
  if (source.text == "SRZ" || source.text == "SR_CgaSize") return to.move(target, Frame::zero);
  // The lowest address that the stack may reach, which debug code checks.
  if (source.text == "SR_LMEMHIOFF") return to.move(target, Frame::zero);
  if (source.text == "SR_VIRTID") {  // the number of the warp is in bits 8 to 14
    const Slot number = to.temporary();
    read_special(to, Special::warpid, 0, number);
    to.emit(Operation::shl, Type::b32, target, {number, to.frame().literal(8)});
    return;
  }
  const SpecialName& special = special_in(to, source);
  read_special(to, special.special, special.component, target);
}

void handlers::cs2r(Lowerer& to, Form& form) {
  const bool is_word = form.take("32");
  const Slot target = to.target(form.next(), is_word ? 1 : 2);
  const Operand& source = form.next();
  if (source.text == "SRZ" || source.text == "SR_CgaSize") {
    to.move(target, Frame::zero);
    if (!is_word) to.move(target + Frame::slot_bytes, Frame::zero);
    return;
  }
  const SpecialName& special = special_in(to, source);
  read_special(to, special.special, special.component, target);
  if (is_word) return;
  if (special.special != Special::clock && special.special != Special::globaltimer_lo) {
    to.refuse("its special register does not have 64 bits");
  }
  read_special(to, special.special == Special::clock ? Special::clock_hi : Special::globaltimer_hi,
               0, target + Frame::slot_bytes);
}

/// To or from a word of Rpc.
void handlers::rpcmov(Lowerer& to, Form& form) {
  if (!form.take("32")) to.refuse("only RPCMOV.32 is executed");
  const auto is_return = [](const Operand& operand) {
    return operand.text == "Rpc.LO" || operand.text == "Rpc.HI";
  };
  const Operand& d = form.next();
  const Operand& s = form.next();
  const Slot value = is_return(s) ? to.frame().return_word(s.text == "Rpc.HI") : to.integer(s);
  to.move(is_return(d) ? to.frame().return_word(d.text == "Rpc.HI") : to.target(d), value);
}

/// Copies the value of the first lane whose guard holds to all lanes of the path, because uniform
/// instructions that follow have no guard. Returns its slot.
static Slot copy_from_first(Lowerer& to, Slot target, Slot source) {
  const Condition guard = to.guard();
  if (!guard.is_true()) to.emit(Action::nothing);
  to.guard_off();
  simt::Collective vote;
  vote.mode = static_cast<std::uint8_t>(simt::VoteMode::ballot);
  vote.a = to.positive(guard);
  vote.result = to.temporary();
  to.emit(Action::vote, static_cast<std::uint32_t>(to.program().collectives.size()));
  to.program().collectives.push_back(vote);
  const Slot there = to.temporary();
  to.emit({.operation = Operation::setp, .type = Type::u32, .comparison = simt::Comparison::ne},
          there, {vote.result, Frame::zero});
  to.guard_by({there, false});
  const Slot first = to.temporary();
  to.emit(Operation::brev, Type::b32, first, {vote.result});
  to.emit(Operation::clz, Type::b32, first, {first});
  simt::Collective value;
  value.mode = static_cast<std::uint8_t>(simt::ShuffleMode::index);
  value.result = to.temporary();
  value.a = source;
  value.b = first;
  value.c = to.frame().literal(31);
  to.emit(Action::shuffle, static_cast<std::uint32_t>(to.program().collectives.size()));
  to.program().collectives.push_back(value);
  to.move(target, value.result);
  to.guard_by(guard);
  return value.result;
}

/// Copies a vector register to a uniform one. With a predicate the lanes may differ: the first
/// one's value is taken, and the predicate becomes true in lanes with another value; with .OR it
/// also stays true. ptxas uses this to go through the values of lanes one by one:
///
///     again: @P1 R2UR P0,UR6,R2    // P1: lanes that are left
///            @!P0 …                // for the lanes that have this value
///            @P1 BRA.U.ANY again   // after P1 = P1 and P0
void handlers::r2ur(Lowerer& to, Form& form) {
  const Operand* differs = form.peek().is_predicate() ? &form.next() : nullptr;
  const Slot target = to.target(form.next());
  const Slot source = to.integer(form.next());
  form.take_all({"BROADCAST", "FILL"});
  const bool has_predicate = differs != nullptr && !Lowerer::is_unused(*differs);
  if (!has_predicate && to.guard().is_true()) return to.move(target, source);
  const bool joined = has_predicate && form.take("OR");
  const Slot value = copy_from_first(to, target, source);
  if (!has_predicate) return;
  const Slot predicate = to.predicate_target(*differs);
  const Slot other = to.temporary();
  to.emit({.operation = Operation::setp, .type = Type::u32, .comparison = simt::Comparison::ne},
          other, {source, value});
  if (joined) to.emit(Operation::bit_or, Type::b32, other, {other, predicate});
  to.move(predicate, other);
}

/// Loads from constant banks, with a computed place or without.
void handlers::ldc(Lowerer& to, Form& form) {
  simt::ParameterAccess access;
  for (const auto& [name, bytes, is_signed] :
       {std::tuple{"U8", 1, false}, {"S8", 1, true}, {"U16", 2, false}, {"S16", 2, true}}) {
    if (access.bytes != 4 || !form.take(name)) continue;
    access.bytes = static_cast<std::uint8_t>(bytes);
    access.sign_extend = is_signed;
  }
  if (access.bytes == 4) access.elements = form.take("64") ? 2 : form.take("128") ? 4 : 1;
  form.take("IL");  // how it is indexed
  const Slot target = to.target(form.next(), access.elements);
  const Operand& source = form.next();
  if (source.kind != Operand::Kind::constant) to.refuse("its source is not a constant");
  // RZ and URZ add nothing.
  const bool has_base = source.base != Operand::no_base && source.base != zero_register;
  const bool has_uniform =
      source.uniform_base != Operand::no_base && source.uniform_base != zero_uniform;
  const bool is_computed = has_base || has_uniform;
  if (!is_computed) to.check_place(source, std::uint32_t{access.bytes} * access.elements);
  if (!is_computed && access.bytes == 4) {
    Operand word = source;
    word.base = word.uniform_base = Operand::no_base;
    for (std::uint32_t e = 0; e < access.elements; ++e, word.integer += 4) {
      to.move(target + e * Frame::slot_bytes, to.word(word));
    }
    return;
  }
  access.bank = source.bank;
  access.offset = static_cast<std::uint64_t>(source.integer);
  if (source.bank == 0 && source.integer < to.kernel().parameter_base &&
      !to.reads_driver_word(source, is_computed)) {
    to.refuse(is_computed ? "a computed place of what the driver puts there is not executed"
                          : "what the driver puts at " + source.text + " is not known");
  }
  if (has_base && has_uniform) to.refuse("a place of two registers is not executed");
  Operand base;
  base.kind = has_base ? Operand::Kind::reg : Operand::Kind::uniform;
  base.index = has_base ? source.base : source.uniform_base;
  if (is_computed) access.address = to.word(base);
  for (std::uint32_t e = 0; e < access.elements; ++e) {
    access.values[e] = target + e * Frame::slot_bytes;
    access.value_bytes[e] = 4;
  }
  auto& accesses = to.program().parameter_accesses;
  to.emit(Action::bank_load, static_cast<std::uint32_t>(accesses.size()));
  accesses.push_back(access);
}

}  // namespace warpstack::sass
