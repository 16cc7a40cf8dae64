#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "sass/text/module.h"
#include "simt/program/program.h"

namespace warpstack::sass {

/// Where the sections of a module lie in the memory of the device, by name.
using SectionAddresses = std::map<std::string, std::uint64_t, std::less<>>;

/// Makes a kernel ready to run. `addresses` are those of memory and of the constant banks that can
/// be written. Throws InputError that names the first instruction which is not executed, with its
/// place and the kernel; nothing has run then.
simt::KernelProgram lower(const Module& module, std::string_view kernel,
                          const SectionAddresses& addresses);

/// The bytes of a section with the addresses that it holds. Functions that are not there have the
/// address 0: calls of them are refused.
std::vector<std::byte> contents_of(const Module& module, const Section& section,
                                   const SectionAddresses& addresses);

/// Whether the opcode of an instruction (its form, "IADD3.X") is executed with operands like these.
/// Returns what is wrong; empty: nothing.
std::string problem_of(const Instruction& instruction, std::uint32_t arch);

}  // namespace warpstack::sass
