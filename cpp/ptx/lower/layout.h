#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ptx/lower/lower.h"

namespace warpstack::ptx {

/// Which functions a kernel reaches, and where its shared variables lie.
struct KernelLayout {
  std::vector<const Function*> functions;  ///< 0: the kernel
  std::map<std::string, std::uint32_t, std::less<>> function_numbers;
  std::map<std::pair<const Function*, std::string>, std::uint64_t> shared;  ///< null: of the module
  /// Bytes at the beginning of a thread's local memory for what `alloca` gives; 0: no function has
  /// it. How much of them is in use is a value of each function; calls have it as a further
  /// argument.
  std::uint32_t stack_bytes = 0;
};

/// The functions that a kernel can reach: by calls, and, when it takes addresses of functions or
/// calls through registers, all functions whose address is taken.
void find_functions(const Module& module, const Function& kernel, KernelLayout& layout);

/// What cudaLimitStackSize usually is.
inline constexpr std::uint32_t usual_stack_bytes = 1024;

/// Reserves the stack of the threads where one of the functions allocates on it.
void reserve_stack(KernelLayout& layout);

/// Lays out the shared variables that the kernel's functions own or name.
void place_shared(const Module& module, KernelLayout& layout, KernelProgram& program);

/// Local memory and registers that a thread needs.
struct ThreadNeeds {
  std::uint64_t local_bytes = 0;
  std::uint32_t registers = 0;
};

/// Needs of the deepest chain of calls; sets KernelProgram::recursive.
ThreadNeeds needs_of_calls(KernelProgram& program);

/// Throws the InputError of a function that needs too much local memory.
[[noreturn]] void fail_local(const Module& module, const Function& function, std::uint32_t line,
                             const std::string& what);

}  // namespace warpstack::ptx
