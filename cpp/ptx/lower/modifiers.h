#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/text/module.h"
#include "simt/program/lane_form.h"

namespace warpstack::ptx {

using simt::LaneForm;
using simt::Rounding;

/// The reason why an instruction cannot run; the emitter adds the instruction.
struct Unsupported {
  std::string reason;
};

/// The words of an opcode, taken one by one. Words that are left are not supported.
class Modifiers {
 public:
  explicit Modifiers(const Instruction& instruction)
      : words_(instruction.modifiers), taken_(instruction.modifiers.size(), false) {}

  /// Takes a word. Returns whether it was there.
  bool take(std::string_view word);
  /// Takes the first word of the list that is there and returns its index, if any.
  std::optional<std::size_t> take_one_of(std::initializer_list<std::string_view> list);
  /// Takes all words with this prefix.
  bool take_prefix(std::string_view prefix);
  /// The next type, or Type::none.
  Type take_type();
  /// The next type. Throws Unsupported when there is none.
  Type need_type();
  /// The first word that is left; empty when all are taken.
  std::string_view next();
  void take_all() { taken_.assign(taken_.size(), true); }
  /// Throws Unsupported when a word is left.
  void finish() const;

 private:
  const std::vector<std::string>& words_;
  std::vector<bool> taken_;
};

/// `.rn` (also without a word), `.rz`, `.rm` or `.rp`.
Rounding take_rounding(Modifiers& modifiers);
/// Modifiers of float arithmetic.
void take_float_modifiers(Modifiers& modifiers, LaneForm& form);

/// The untyped bits (b type) of this many bytes: 8, 4 or fewer.
Type bits_type(std::uint32_t bytes);

}  // namespace warpstack::ptx
