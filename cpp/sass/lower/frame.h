#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sass/text/module.h"
#include "simt/program/program.h"

namespace warpstack::sass {

/// The slots of a kernel's registers, predicates, constants and intermediate values in the frame of
/// a warp, of 32 words each. A 64-bit value takes two consecutive slots.
class Frame {
 public:
  using Slot = std::uint32_t;
  static constexpr std::uint32_t slot_bytes = 128;

  explicit Frame(const Kernel& kernel);

  // Two slots of zeros (RZ, URZ), one of true predicates (PT), and four that are written but never
  // read.
  static constexpr Slot zero = 0;
  static constexpr Slot truth = 2 * slot_bytes;
  static constexpr Slot sink = 3 * slot_bytes;

  [[nodiscard]] Slot reg(std::uint32_t index) const { return registers_ + index * slot_bytes; }
  [[nodiscard]] Slot uniform(std::uint32_t index) const { return uniforms_ + index * slot_bytes; }
  [[nodiscard]] bool has_register(std::uint32_t index) const { return index < num_registers_; }
  Slot predicate(std::uint32_t index, bool uniform);
  Slot convergence(std::uint32_t index);
  /// The result of a bar.red, which B2R reads.
  Slot barrier_result();
  /// A word of Rpc, the register of return addresses, in which sm_100 also saves words.
  Slot return_word(bool upper);
  Slot literal(std::uint32_t word);
  Slot literal_pair(std::uint64_t value);
  Slot constant(std::uint32_t bank, std::uint32_t offset);
  Slot constant_pair(std::uint32_t bank, std::uint32_t offset);
  /// Two slots for a value that lives only within an instruction.
  Slot temporary();
  void end_instruction() { used_temporaries_ = 0; }

  /// Size of the frame, and its initial bytes.
  [[nodiscard]] std::uint32_t bytes() const { return end_; }
  [[nodiscard]] std::vector<std::byte> initial_bytes() const;
  [[nodiscard]] const std::vector<simt::FrameConstant>& constants() const { return constants_; }

 private:
  Slot take(std::uint32_t slots);

  std::uint32_t end_ = 0;
  Slot registers_ = 0;
  Slot uniforms_ = 0;
  std::uint32_t num_registers_ = 0;
  std::map<std::uint32_t, Slot> single_;  ///< predicates, convergence barriers, by a number of ours
  std::map<std::uint32_t, Slot> literals_;
  std::map<std::uint64_t, Slot> literal_pairs_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Slot> words_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Slot> pairs_;
  std::vector<Slot> temporaries_;
  std::size_t used_temporaries_ = 0;
  std::vector<std::pair<Slot, std::uint32_t>> filled_;
  std::vector<simt::FrameConstant> constants_;
};

}  // namespace warpstack::sass
