#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "simt/program/lane_form.h"
#include "simt/program/program.h"
#include "simt/program/registers.h"

namespace warpstack::simt::testing {

/// Writes a kernel of the execution engine step by step, without the text of any instruction set.
/// Registers are named by their slot. Each step is an instruction of its own.
class HandWritten {
 public:
  HandWritten() {
    program_.name = "by_hand";
    program_.source = "hand";
    program_.binary_version = 75;
    program_.registers_per_thread = 16;
    program_.functions.resize(1);
    kernel().name = "by_hand";
  }

  /// A new register of 4 or 8 bytes.
  std::uint32_t slot(std::uint32_t bytes = 4) {
    const std::uint32_t first = kernel().register_bytes;
    kernel().register_bytes += bytes * warp_size;
    return first;
  }

  /// A register that holds a value in all lanes. Constants come before other registers.
  std::uint32_t constant(std::uint64_t value, std::uint32_t bytes = 4) {
    const std::uint32_t first = slot(bytes);
    std::vector<std::byte>& initial = kernel().constants;
    EXPECT_EQ(initial.size(), first);
    initial.resize(first + bytes * warp_size);
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
      std::memcpy(initial.data() + first + bytes * lane, &value, bytes);
    }
    return first;
  }

  /// The number of the next step.
  [[nodiscard]] std::uint32_t here() { return static_cast<std::uint32_t>(kernel().steps.size()); }

  Step& step(Action action, std::uint32_t detail = none) {
    Step step;
    step.action = action;
    step.detail = detail;
    step.begins = true;
    step.instruction = here();
    kernel().instructions.push_back(
        {.source = {}, .place = "step " + std::to_string(here()), .opcode = "op"});
    kernel().steps.push_back(step);
    return kernel().steps.back();
  }

  Step& lanes(const LaneForm& form, std::uint32_t target,
              const std::vector<std::uint32_t>& sources) {
    Step& result = step(Action::lanes);
    result.function = find_lane_function(form);
    EXPECT_NE(result.function, nullptr);
    result.operands.target = target;
    for (std::size_t i = 0; i < sources.size(); ++i) result.operands.source[i] = sources[i];
    return result;
  }

  void special(Special special, std::uint32_t target) {
    program_.specials.push_back({special, 0});
    Step& read = step(Action::special, static_cast<std::uint32_t>(program_.specials.size() - 1));
    read.operands.target = target;
    read.operands.immediate = 4;
  }

  /// A load, store or atomic of 4 bytes, filled in by the caller.
  Step& access(Action action, AddressSpace space, std::uint32_t address, bool is_64_bits,
               std::uint32_t value) {
    MemoryAccess access;
    access.space = space;
    access.address = address;
    access.address_is_64_bits = is_64_bits;
    access.values[0] = value;
    access.value_bytes[0] = 4;
    program_.memory.push_back(access);
    return step(action, static_cast<std::uint32_t>(program_.memory.size() - 1));
  }

  /// Gives the last step a row of the trace.
  void row(const std::string& opcode) {
    Step& last = kernel().steps.back();
    last.first_row = static_cast<std::uint32_t>(program_.rows.size());
    last.num_rows = 1;
    program_.rows.push_back(trace::make_static_instruction(16 * last.first_row, opcode,
                                                           std::vector<std::uint16_t>{1}, {}));
  }

  [[nodiscard]] ProgramFunction& kernel() { return program_.functions[0]; }
  [[nodiscard]] KernelProgram& program() { return program_; }

 private:
  KernelProgram program_;
};

}  // namespace warpstack::simt::testing
