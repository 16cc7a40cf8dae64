#include "sass/lower/form.h"

#include <algorithm>

#include "common/error.h"

namespace warpstack::sass {

Form::Form(const Instruction& instruction) : instruction_(&instruction) {
  const std::string_view opcode = instruction.opcode;
  std::size_t dot = opcode.find('.');
  base_ = opcode.substr(0, dot);
  while (dot != std::string_view::npos) {
    const std::size_t next = opcode.find('.', dot + 1);
    left_.push_back(opcode.substr(dot + 1, next == std::string_view::npos ? next : next - dot - 1));
    dot = next;
  }
}

bool Form::take(std::string_view modifier) {
  const auto found = std::ranges::find(left_, modifier);
  if (found == left_.end()) return false;
  left_.erase(found);
  return true;
}

void Form::take_all(std::initializer_list<std::string_view> modifiers) {
  for (const std::string_view modifier : modifiers) take(modifier);
}

const Operand& Form::next() {
  if (!more()) throw InputError("an operand is missing");
  return instruction_->operands[next_++];
}

}  // namespace warpstack::sass
