#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/text/module.h"
#include "simt/program/program.h"

namespace warpstack::ptx {

using namespace simt;  // lowering writes programs of the execution engine

/// The address of a function; only indirect calls use it.
std::uint64_t function_address(const Module& module, const Function& function);

/// The addresses of variables of module scope, for lower().
struct SymbolTable {
  std::map<std::string, std::uint64_t, std::less<>> addresses;
  std::map<std::string, std::uint32_t, std::less<>> texture_references;
};

/// Makes a kernel ready to run. Throws InputError that names the first unsupported instruction,
/// with its line and the kernel; nothing has run then.
simt::KernelProgram lower(const Module& module, std::string_view kernel,
                          const SymbolTable& symbols);

/// Most bytes of local memory of a thread, as on every GPU (CUDA C++ Programming Guide).
inline constexpr std::uint64_t max_local_bytes = std::uint64_t{512} << 10;
/// Most bytes of a kernel's parameters (PTX ISA, Section 7.1).
inline constexpr std::uint64_t max_parameter_bytes = 32764;
/// Most bytes of the `.const` variables of a module.
inline constexpr std::uint64_t max_constant_bytes = std::uint64_t{64} << 10;

/// The offsets of a kernel's parameters (PTX ISA: each at a multiple of its alignment). Throws
/// InputError when there are too many of them.
std::vector<std::uint64_t> parameter_offsets(const Module& module, const Function& kernel);

}  // namespace warpstack::ptx
