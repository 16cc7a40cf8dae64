#include "stand_ins/cudart/library_calls.h"

#include <set>

#include "stand_ins/state/runtime.h"
#include "stand_ins/state/spool.h"

namespace warpstack::cudart {
namespace {

/// Memory that the program has registered, managed and pinned memory are the device's, too.
void check_memory(Runtime& runtime, std::uint64_t address, const char* what) {
  require(runtime.on_device(address) || runtime.memory_at(address).has_value(), what, Error{700});
}

}  // namespace

void note_library_call(const std::string& library) {
  static auto* const said = new std::set<std::string>;  // programs may call at exit
  if (!said->insert(library).second) return;
  say("note", library +
                  ": warpstack computes on the host what NVIDIA's kernels would; these are "
                  "not known, and no trace has them; timelines estimate their time by bytes and "
                  "arithmetic");
}

void read_for_library(Runtime& runtime, void* target, const void* source, std::size_t bytes) {
  const std::uint64_t address = address_of(source);
  check_memory(runtime, address, "the memory for the input is not the device's");
  runtime.copy(address_of(target), address, bytes);
}

void write_for_library(Runtime& runtime, void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  const std::uint64_t address = address_of(target);
  check_memory(runtime, address, "the memory for the results is not the device's");
  runtime.copy(address, address_of(source), bytes);
}

}  // namespace warpstack::cudart
