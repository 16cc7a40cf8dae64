#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// What stand-ins for NVIDIA's libraries do on the host in place of kernels, which are not known
/// and so are in no trace.
namespace warpstack::cudart {

class Runtime;

/// Calls of a library that would have launched kernels, and the bytes that these would have
/// written.
struct LibraryCalls {
  std::uint64_t calls = 0;
  std::uint64_t bytes_written = 0;
};

/// Counts a call of this library ("cuRAND"), and says once that its kernels are in no trace.
/// Returns the counts so far. It is called with the runtime locked.
LibraryCalls note_library_call(const std::string& library, std::uint64_t bytes_written);

/// Copies `bytes` of the host to memory that kernels can write, as a call of this library. Throws
/// Failure if they cannot.
void write_for_library(Runtime& runtime, const char* library, void* target, const void* source,
                       std::size_t bytes);

}  // namespace warpstack::cudart
