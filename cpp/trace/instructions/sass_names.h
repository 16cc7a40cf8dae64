#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trace/instructions/static_instruction.h"

namespace warpstack::trace {

/// Binary versions (SM versions of machine code) that PTX operations can be named for.
std::span<const std::uint64_t> sass_versions();

/// What a `ret` of PTX does: end its thread, or return to a caller.
enum class ReturnKind : std::uint8_t { exit, from_function };

/// Whether `opcode`, read as a SASS opcode, gives the class, space, kind, cache operator and width
/// of the instruction. A generic opcode stands for each space that it can resolve to.
bool sass_opcode_describes(const std::string& opcode, const StaticInstruction& instruction);

/// The SASS opcode for an instruction of any origin: its own when that describes it, otherwise the
/// nearest of the same class that exists in `binary_version`, with modifiers for width and cache
/// operator. The table is in sass_names.cpp. Throws InputError when the version has
/// none.
std::string sass_opcode(const StaticInstruction& instruction, std::uint64_t binary_version,
                        ReturnKind returns);

}  // namespace warpstack::trace
