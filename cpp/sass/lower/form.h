#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "sass/text/module.h"

namespace warpstack::sass {

/// An instruction whose modifiers are taken one by one. Modifiers that are left at the end are not
/// understood.
class Form {
 public:
  explicit Form(const Instruction& instruction);

  [[nodiscard]] const Instruction& instruction() const { return *instruction_; }
  /// The opcode without modifiers.
  [[nodiscard]] std::string_view base() const { return base_; }
  /// Takes a modifier if it is there.
  bool take(std::string_view modifier);
  void take_all(std::initializer_list<std::string_view> modifiers);
  /// The first modifier that is not taken; empty when all are.
  [[nodiscard]] std::string_view left() const { return left_.empty() ? "" : left_.front(); }

  /// The next operand. `more()` says whether there is one.
  [[nodiscard]] bool more() const { return next_ < instruction_->operands.size(); }
  /// The next operand without moving on; an empty operand if there is none.
  [[nodiscard]] const Operand& peek() const {
    static const Operand nothing;
    return more() ? instruction_->operands[next_] : nothing;
  }
  const Operand& next();

 private:
  const Instruction* instruction_;
  std::string_view base_;
  std::vector<std::string_view> left_;
  std::size_t next_ = 0;
};

}  // namespace warpstack::sass
