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

/// What the address of a function reads as: only indirect calls use it.
std::uint64_t function_address(const Module& module, const Function& function);

/// Where variables of module scope lie, for lower().
struct SymbolTable {
  std::map<std::string, std::uint64_t, std::less<>> addresses;
  std::map<std::string, std::uint32_t, std::less<>> texture_references;
};

/// Makes a kernel ready to run. Throws InputError that names the first instruction which is not
/// supported, with its line and the kernel; nothing has run then.
simt::KernelProgram lower(const Module& module, std::string_view kernel,
                          const SymbolTable& symbols);

/// Bytes of local memory that a thread can have, as on every GPU (CUDA C++ Programming Guide).
inline constexpr std::uint64_t max_local_bytes = std::uint64_t{512} << 10;
/// Bytes of a kernel's parameters (PTX ISA, Section 7.1).
inline constexpr std::uint64_t max_parameter_bytes = 32764;
/// Bytes of the `.const` variables of a module.
inline constexpr std::uint64_t max_constant_bytes = std::uint64_t{64} << 10;

/// Where the parameters of a kernel lie (PTX ISA: each at a multiple of its alignment). Throws
/// InputError when there are too many of them.
std::vector<std::uint64_t> parameter_offsets(const Module& module, const Function& kernel);

}  // namespace warpstack::ptx
