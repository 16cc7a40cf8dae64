#pragma once

#include <cstddef>
#include <string>

/// What stand-ins for NVIDIA's libraries do on the host in place of kernels, which are not known
/// and so are in no trace.
namespace warpstack::cudart {

class Runtime;

/// Says of a library ("cuRAND"), once, that its kernels are in no trace. It is called with the
/// runtime locked.
void note_library_call(const std::string& library);

/// Copies `bytes` of memory that kernels can read to the host, or back. They throw Failure if
/// kernels cannot use it.
void read_for_library(Runtime& runtime, void* target, const void* source, std::size_t bytes);
void write_for_library(Runtime& runtime, void* target, const void* source, std::size_t bytes);

}  // namespace warpstack::cudart
