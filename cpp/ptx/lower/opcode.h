#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "ptx/lower/expansion.h"
#include "simt/program/lane_form.h"
#include "trace/instructions/opcode.h"

namespace warpstack::ptx {

using simt::Operation;

class Emitter;
class Modifiers;

/// Types of the result and the sources of an instruction that is one step of the lanes, a letter
/// each: `t` the type that the instruction names, `s` its second type, `u` u32, `i` s32, `p` a
/// predicate. shl, whose count is a u32, has "ttu".
class Signature {
 public:
  consteval Signature(const char* letters) : letters_(letters) {
    for (const char letter : letters_) {
      if (std::string_view("tsuip").find(letter) == std::string_view::npos) {
        throw "a letter of a signature is one of t, s, u, i and p";
      }
    }
    if (letters_.size() > 5) throw "an instruction has four sources at most";
  }

  [[nodiscard]] std::size_t num_sources() const { return letters_.size() - 1; }
  /// Type of operand i (0: the result) of an instruction that names these types.
  [[nodiscard]] Type type(std::size_t i, Type first, Type second) const;

 private:
  std::string_view letters_;
};

/// The class of the trace's rows, which may depend on the type that the instruction names.
struct RowClass {
  OpClass op_class = OpClass::unknown;
  bool by_type = false;
};

/// An instruction: a row of opcodes.inc.
struct Opcode {
  std::string_view mnemonic;
  /// Emits the steps of the instruction.
  void (*handler)(Emitter&, Modifiers&) = nullptr;
  RowClass row_class;
  Operation operation = Operation::mov;  ///< of instructions with a signature
  Signature signature = "";
  Expansion expansion = nullptr;  ///< null: one row, named as in the text
};

/// All rows, in the order of the file.
std::span<const Opcode> all_opcodes();
/// Null when there is no such instruction.
const Opcode* find_opcode(std::string_view mnemonic);

/// Class of arithmetic on values of a type.
OpClass arithmetic_class(Type type);

}  // namespace warpstack::ptx
