#pragma once

// PTX texts around what a test is about, and what the parser says of wrong ones.

#include <string>

#include "common/error.h"
#include "ptx/text/module.h"

namespace warpstack::ptx::testing {

inline const std::string header = ".version 8.5\n.target sm_80\n.address_size 64\n";

/// The function k with a body, whose first line is line 10 of the file.
inline std::string kernel_text(const std::string& body) {
  return header + R"(.global .align 4 .b8 data[64];
.visible .entry k(
  .param .u64 k_param_0,
  .param .u32 k_param_1)
{
.reg .pred %p<8>; .reg .b16 %rs<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .f64 %fd<4>;
)" + body +
         "\n}\n";
}

/// The message of the InputError that the parser throws, or what it says of the first instruction
/// that it cannot read.
inline std::string error_in(const std::string& text) {
  try {
    const Module module = parse(text, "k.ptx");
    for (const Function& function : module.functions) {
      for (const Instruction& instruction : function.body) {
        if (instruction.problem.empty()) continue;
        return "k.ptx:" + std::to_string(instruction.line) + ": " + instruction.problem;
      }
    }
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

inline std::string module_error(const std::string& text) { return error_in(header + text); }
inline std::string body_error(const std::string& body) { return error_in(kernel_text(body)); }

}  // namespace warpstack::ptx::testing
