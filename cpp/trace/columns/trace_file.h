#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "trace/columns/trace_builder.h"

namespace warpstack::trace {

/// Version of the format below. Only this version is read, because files are not kept: they go from
/// one process to another of the same installation.
inline constexpr std::uint64_t trace_file_version = 10;

/// Writes a kernel to a file, in one piece of columns per several thread blocks. The file appears
/// complete or not at all. Throws InputError when it cannot be written.
///
/// All numbers are little-endian. The eight bytes "WSTRACE\n" and the version; name and source
/// (length, bytes); the other fields of the header; files of source and inlined calls; the
/// instruction table; then pieces: 1 (0: the
/// end), the number of warps, of instructions, memory instructions, sectors, stores, those of them
/// with lanes of atomics, passes, repeated blocks and shifts, and the columns of DistinctBatch;
/// last the digest of all bytes before it. Everything outside the columns is an unsigned 64-bit
/// number or text, and text and columns are filled up with zeros to a multiple of eight bytes.
void write_trace_file(const KernelTrace& trace, const std::string& path);

/// Reads the content of such a file. Throws InputError, with `file`, when it is cut or damaged; its
/// columns pass the checks of TraceBuilder::add_block.
KernelTrace read_trace(std::span<const std::byte> content, const std::string& file,
                       std::shared_ptr<StorageBudget> budget);

/// Reads such a file.
KernelTrace read_trace_file(const std::string& path, std::shared_ptr<StorageBudget> budget);

}  // namespace warpstack::trace
