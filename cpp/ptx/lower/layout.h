#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ptx/lower/lower.h"

namespace warpstack::ptx {

/// The functions that a kernel reaches, and the places of its shared variables.
struct KernelLayout {
  std::vector<const Function*> functions;  ///< 0: the kernel
  std::map<std::string, std::uint32_t, std::less<>> function_numbers;
  std::map<std::pair<const Function*, std::string>, std::uint64_t> shared;  ///< null: of the module
  /// Bytes at the start of a thread's local memory for `alloca`; 0: no function uses it. The number
  /// of bytes in use is a value of each function, and calls pass it as a further argument.
  std::uint32_t stack_bytes = 0;
};

/// The functions that a kernel can reach: by calls, and, when it takes addresses of functions or
/// calls through registers, all functions whose address is taken.
void find_functions(const Module& module, const Function& kernel, KernelLayout& layout);

/// The usual value of cudaLimitStackSize.
inline constexpr std::uint32_t usual_stack_bytes = 1024;

/// Reserves the stack of the threads if one of the functions allocates on it.
void reserve_stack(KernelLayout& layout);

/// Lays out the shared variables that the kernel's functions own or name.
void place_shared(const Module& module, KernelLayout& layout, KernelProgram& program);

/// Local memory and registers that a thread needs.
struct ThreadNeeds {
  std::uint64_t local_bytes = 0;
  std::uint32_t registers = 0;
};

/// The needs of the deepest chain of calls. Sets KernelProgram::recursive.
ThreadNeeds needs_of_calls(KernelProgram& program);

/// Throws the InputError of a function that needs too much local memory.
[[noreturn]] void fail_local(const Module& module, const Function& function, std::uint32_t line,
                             const std::string& what);

}  // namespace warpstack::ptx
