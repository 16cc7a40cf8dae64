#include "stand_ins/cudart/library_calls.h"

#include <map>

#include "stand_ins/state/runtime.h"
#include "stand_ins/state/spool.h"

namespace warpstack::cudart {

LibraryCalls note_library_call(const std::string& library, std::uint64_t bytes_written) {
  static auto* const all = new std::map<std::string, LibraryCalls>;  // programs may call at exit
  LibraryCalls& counts = (*all)[library];
  counts.bytes_written += bytes_written;
  if (++counts.calls == 1) {
    say("note", library +
                    ": warpstack computes on the host what NVIDIA's kernels would; these are "
                    "not known, and no trace has them; timelines estimate their time by the bytes");
  }
  return counts;
}

void write_for_library(Runtime& runtime, const char* library, void* target, const void* source,
                       std::size_t bytes) {
  const std::uint64_t address = address_of(target);
  // Memory that the program has registered, managed and pinned memory are the device's, too.
  require(runtime.on_device(address) || runtime.memory_at(address).has_value(),
          "the memory for the results is not the device's", Error{700});
  runtime.copy(address, address_of(source), bytes);
  runtime.pass_time(call_time);
  note_library_call(library, bytes);
}

}  // namespace warpstack::cudart
