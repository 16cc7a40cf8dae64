#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "sass/text/module.h"
#include "simt/program/program.h"

namespace warpstack::sass {

/// The addresses of a module's sections in device memory, by name.
using SectionAddresses = std::map<std::string, std::uint64_t, std::less<>>;

/// Makes a kernel ready to run. `addresses` are those of memory and of the writable constant banks.
/// Throws InputError that names the first instruction that is not executed, with its place and the
/// kernel; nothing has run then.
simt::KernelProgram lower(const Module& module, std::string_view kernel,
                          const SectionAddresses& addresses);

/// The bytes of a section, with addresses filled in. Missing functions get the address 0, and calls
/// of them are refused.
std::vector<std::byte> contents_of(const Module& module, const Section& section,
                                   const SectionAddresses& addresses);

/// Why an instruction's opcode with modifiers ("IADD3.X") is not executed with operands like these;
/// empty if it is.
std::string problem_of(const Instruction& instruction, std::uint32_t arch);

}  // namespace warpstack::sass
