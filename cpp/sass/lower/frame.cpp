#include "sass/lower/frame.h"

#include <algorithm>

#include "simt/program/registers.h"

namespace warpstack::sass {

Frame::Frame(const Kernel& kernel) {
  std::uint32_t registers = kernel.changes_registers ? zero_register : kernel.registers;
  std::uint32_t uniforms = 0;
  const auto count = [&](const Operand& operand) {
    if (operand.kind == Operand::Kind::reg && operand.index != zero_register) {
      registers = std::max(registers, operand.index + 1);
    }
    if (operand.kind == Operand::Kind::uniform && operand.index != zero_uniform) {
      uniforms = std::max(uniforms, operand.index + 1);
    }
    if (operand.uniform_base != Operand::no_base && operand.uniform_base != zero_uniform) {
      uniforms = std::max(uniforms, operand.uniform_base + 1);
    }
    if (operand.base != Operand::no_base && operand.base != zero_register) {
      registers = std::max(registers, operand.base + 1);
    }
  };
  for (const Instruction& instruction : kernel.code) {
    for (const Operand& operand : instruction.operands) count(operand);
    // Library functions find their arguments in registers that the code need not name.
    if (instruction.opcode.starts_with("CALL.ABS")) registers = std::max(registers, 16u);
  }
  take(7);
  filled_.emplace_back(truth, ~0u);
  num_registers_ = registers + 3;  // the last operand may be a tuple
  registers_ = take(num_registers_);
  uniforms_ = take(uniforms + 7);  // a tile of five dimensions has seven
}

Frame::Slot Frame::take(std::uint32_t slots) {
  const Slot first = end_;
  end_ += slots * slot_bytes;
  return first;
}

Frame::Slot Frame::predicate(std::uint32_t index, bool uniform) {
  if (index == true_predicate) return truth;
  const auto [found, is_new] = single_.try_emplace(index + (uniform ? 8 : 0), 0);
  if (is_new) found->second = take(1);
  return found->second;
}

Frame::Slot Frame::convergence(std::uint32_t index) {
  const auto [found, is_new] = single_.try_emplace(16 + index, 0);
  if (is_new) found->second = take(1);
  return found->second;
}

Frame::Slot Frame::barrier_result() {
  const auto [found, is_new] = single_.try_emplace(64, 0);
  if (is_new) found->second = take(1);
  return found->second;
}

Frame::Slot Frame::return_word(bool upper) {
  const auto [found, is_new] = single_.try_emplace(upper ? 66 : 65, 0);
  if (is_new) found->second = take(1);
  return found->second;
}

Frame::Slot Frame::literal(std::uint32_t word) {
  if (word == 0) return zero;
  const auto [found, is_new] = literals_.try_emplace(word, 0);
  if (is_new) {
    found->second = take(1);
    filled_.emplace_back(found->second, word);
  }
  return found->second;
}

Frame::Slot Frame::literal_pair(std::uint64_t value) {
  if (value == 0) return zero;
  const auto [found, is_new] = literal_pairs_.try_emplace(value, 0);
  if (is_new) {
    found->second = take(2);
    filled_.emplace_back(found->second, static_cast<std::uint32_t>(value));
    filled_.emplace_back(found->second + slot_bytes, static_cast<std::uint32_t>(value >> 32));
  }
  return found->second;
}

Frame::Slot Frame::constant(std::uint32_t bank, std::uint32_t offset) {
  const auto [found, is_new] = words_.try_emplace({bank, offset}, 0);
  if (is_new) {
    found->second = take(1);
    constants_.push_back({found->second, bank, offset});
  }
  return found->second;
}

Frame::Slot Frame::constant_pair(std::uint32_t bank, std::uint32_t offset) {
  const auto [found, is_new] = pairs_.try_emplace({bank, offset}, 0);
  if (is_new) {
    found->second = take(2);
    constants_.push_back({found->second, bank, offset});
    constants_.push_back({found->second + slot_bytes, bank, offset + 4});
  }
  return found->second;
}

Frame::Slot Frame::temporary() {
  if (used_temporaries_ == temporaries_.size()) temporaries_.push_back(take(2));
  return temporaries_[used_temporaries_++];
}

std::vector<std::byte> Frame::initial_bytes() const {
  std::vector<std::byte> bytes(end_);
  for (const auto& [slot, word] : filled_) {
    simt::broadcast(bytes.data(), slot, 4, simt::all_lanes, word);
  }
  return bytes;
}

}  // namespace warpstack::sass
