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

/// The reason why an instruction cannot run; the emitter adds which one it is.
struct Unsupported {
  std::string reason;
};

/// The words of an opcode, ticked off one by one; what stays is not supported.
class Modifiers {
 public:
  explicit Modifiers(const Instruction& instruction)
      : words_(instruction.modifiers), taken_(instruction.modifiers.size(), false) {}

  /// True when the word is there.
  bool take(std::string_view word);
  /// The number of the first word of the list that is there, or nothing.
  std::optional<std::size_t> take_one_of(std::initializer_list<std::string_view> list);
  /// Ticks off all words that begin so.
  bool take_prefix(std::string_view prefix);
  /// The next type, or Type::none.
  Type take_type();
  /// The next type. Throws Unsupported when there is not one.
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

/// The type of bare bits of this many bytes: 8, 4 or fewer.
Type bits_type(std::uint32_t bytes);

}  // namespace warpstack::ptx
