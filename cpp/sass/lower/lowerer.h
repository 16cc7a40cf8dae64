#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "sass/lower/form.h"
#include "sass/lower/frame.h"
#include "sass/lower/lower.h"
#include "simt/program/program.h"

namespace warpstack::sass {

using simt::Action;
using simt::LaneForm;
using simt::Operation;
using simt::Type;
using Slot = Frame::Slot;

/// A predicate operand: its slot, and whether it is negated.
struct Condition {
  Slot slot = Frame::truth;
  bool negated = false;

  [[nodiscard]] bool is_true() const { return slot == Frame::truth && !negated; }
  [[nodiscard]] bool is_false() const { return slot == Frame::truth && negated; }
};

/// Parts of an operand besides its value. The reader of the value applies them, or they are
/// refused.
enum Part : std::uint8_t { negation = 1, complement = 2, absolute = 4, suffix = 8 };
inline constexpr std::uint8_t all_parts = negation | complement | absolute | suffix;

/// Writes the program of a kernel, instruction after instruction. The handlers of instructions
/// (instructions.h) emit steps through it.
class Lowerer {
 public:
  /// `addresses` are those of the sections of variables.
  Lowerer(const Module& module, const Kernel& kernel, const SectionAddresses& addresses);

  /// The program, without constant banks.
  simt::KernelProgram run();

  // ---- sources ----

  /// A register, a constant or a number, without its sign.
  Slot word(const Operand& operand);
  /// The same with its sign: -a, ~a.
  Slot integer(const Operand& operand);
  /// Numbers are f32.
  Slot real_word(const Operand& operand);
  /// A float with its signs applied in separate steps, for operations without signs.
  Slot signed_real_word(const Operand& operand);
  /// A 64-bit operand; numbers are extended.
  Slot pair(const Operand& operand);
  /// A 64-bit operand of sm_120 instructions, in one slot. Numbers have 64 bits if `is_wide`;
  /// otherwise those whose extension is unknown are refused.
  Slot packed(const Operand& operand, bool is_wide = false);
  /// Numbers are f64, or the upper word of one.
  Slot real_pair(const Operand& operand);
  Condition condition(const Operand& operand);
  /// The slot of the predicate with its negation applied.
  Slot positive(const Operand& operand) { return positive(condition(operand)); }
  Slot positive(Condition condition);

  /// An operand of the instruction without some of its parts, which the caller applies.
  Operand without(const Operand& operand, std::uint8_t parts);
  /// Notes that the caller applies these parts of an operand of the instruction.
  void applies(const Operand& operand, std::uint8_t parts);
  /// Goes past an operand that changes no value.
  void skip(Form& form) { applies(form.next(), all_parts); }
  /// Throws unless the registers from an operand on are a tuple of 2 or 4, whose first register is
  /// a multiple of its size. RZ stands for all zeros.
  void check_tuple(const Operand& operand, std::uint32_t words) const;
  /// Throws if a constant is not aligned to its size.
  void check_place(const Operand& constant, std::uint32_t bytes) const;
  /// Throws if the architecture has no such uniform register.
  void check_uniform(const Operand& operand) const;
  /// A number that fits 32 bits, with or without a sign.
  std::int64_t number(const Operand& operand) const;

  // ---- targets ----

  /// The slot of a register; for RZ, one that is never read.
  Slot target(const Operand& operand) const;
  /// The first slot of a tuple of registers.
  Slot target(const Operand& operand, std::uint32_t words) const {
    check_tuple(operand, words);
    return target(operand);
  }
  Slot predicate_target(const Operand& operand);
  Slot temporary() { return frame_.temporary(); }
  Frame& frame() { return frame_; }

  // ---- steps ----

  /// Emits arithmetic. Throws when the form does not exist.
  simt::Step& emit(const LaneForm& form, Slot target, std::initializer_list<Slot> sources,
                   std::uint32_t immediate = 0);
  simt::Step& emit(Operation operation, Type type, Slot target, std::initializer_list<Slot> sources,
                   std::uint32_t immediate = 0);
  /// Emits another action with its entry in its table.
  simt::Step& emit(Action action, std::uint32_t detail = simt::none);
  void move(Slot target, Slot source) { emit(Operation::mov, Type::b32, target, {source}); }
  /// Attaches the trace's row to the next step.
  void row_follows() { row_step_ = function_.steps.size(); }
  /// Makes further steps of the instruction run in all lanes of the path, or under another guard.
  void guard_off() { guard_ = {}; }
  void guard_by(Condition condition) { guard_ = condition; }
  /// Makes them run where a condition holds in addition to the guard.
  void require(Condition condition);
  /// Makes them run in the first of these lanes alone, for what a warp does once.
  void guard_by_first_lane();
  [[nodiscard]] Condition guard() const { return guard_; }
  /// Emits a jump to an address of the kernel.
  void jump(std::uint32_t address);

  /// Writes comparison results: `compare` emits one into a slot. P and Q are the result and its
  /// negation, each combined with `with` by and, or, xor.
  template <class F>
  void set_predicates(const Operand& p, const Operand& q, char combination, Condition with,
                      F compare) {
    const bool plain = combination == '&' && with.is_true() && is_unused(q);
    const Slot result = plain ? predicate_target(p) : temporary();
    compare(result);
    if (!plain) combine(p, q, combination, with, result);
  }
  /// The lop3 table of a function of three bits.
  template <class F>
  static std::uint32_t table_of(F f) {
    std::uint32_t table = 0;
    for (std::uint32_t row = 0; row < 8; ++row) {
      if (f((row & 4) != 0, (row & 2) != 0, (row & 1) != 0)) table |= 1u << row;
    }
    return table;
  }

  /// Whether a constant is a known word of bank 0 that the driver fills; `moved`: at a place
  /// computed from SR_CgaSize.
  bool reads_driver_word(const Operand& constant, bool moved);
  /// Bytes per lane for arguments of library functions.
  void reserve_arguments(std::uint32_t bytes) { function_.parameter_bytes = bytes; }
  [[nodiscard]] const Module& module() const { return module_; }
  [[nodiscard]] std::uint32_t arch() const { return module_.arch; }
  [[nodiscard]] const Kernel& kernel() const { return kernel_; }
  simt::KernelProgram& program() { return program_; }
  /// Throws: the instruction is not executed.
  [[noreturn]] void refuse(const std::string& what) const;
  /// The address of a jump's target: a number, or a function of the kernel.
  std::uint32_t address_of(const Operand& operand) const;
  /// Emits a jump to an address in a slot.
  void computed_jump(Slot index, std::int64_t offset);

  [[nodiscard]] static bool is_unused(const Operand& operand) {
    return operand.is_predicate() && operand.index == true_predicate;
  }

 private:
  void lower(const Instruction& instruction);
  /// Throws unless all modifiers, operands and parts of operands have been taken.
  void refuse_rest(const Form& form) const;
  /// What the opcode alone does not say of a row: bytes that a copy moves, registers of a product,
  /// and the groups that an instruction ends or waits for.
  void complete_row(const Instruction& instruction, const simt::Step& step,
                    trace::StaticInstruction& row);
  /// Whether the barrier that an instruction counts is one of bulk stores.
  [[nodiscard]] bool awaits_stores(const Control& control) const;
  /// The address of the parameters that c[0x0][0x198] has on sm_90: two slots.
  Slot parameter_address();
  void add_row(const Instruction& instruction, const trace::SassOpcode* opcode);
  /// The place in its bank of a constant without a register.
  std::uint32_t constant_offset(const Operand& operand);
  /// A word of the address of a variable or function: 32@lo(name), 32@hi((name+0x10)).
  std::uint32_t address_word(const Operand& operand) const;
  void combine(const Operand& p, const Operand& q, char combination, Condition with, Slot result);
  void link();

  const Module& module_;
  const Kernel& kernel_;
  const SectionAddresses& addresses_;
  simt::KernelProgram program_;
  simt::ProgramFunction function_;
  Frame frame_;
  const Instruction* instruction_ = nullptr;
  Condition guard_;
  std::vector<std::uint8_t> applied_;  ///< parts of each operand, then of the guard
  std::size_t row_step_ = 0;
  std::vector<std::uint32_t> first_steps_;                      ///< of each instruction
  std::vector<std::pair<std::uint32_t, std::uint32_t>> jumps_;  ///< step, address
};

}  // namespace warpstack::sass
