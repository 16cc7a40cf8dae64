// Any bytes, in any pieces, are launches or an InputError; whatever is accepted can be simulated in
// the caches.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "common/error.h"
#include "memory/system/memory_system.h"
#include "small_machine.h"
#include "trace/nvbit/mem_trace_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpstack;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t piece = size > 0 ? data[0] % 97 + 1 : 1;
  const std::uint64_t limit = size > 0 && data[0] % 2 == 0 ? 0 : std::uint64_t{1} << 30;
  try {
    trace::MemTraceReader reader("fuzz", std::make_shared<trace::StorageBudget>(limit, "/tmp"));
    for (std::size_t i = 0; i < size; i += piece) reader.feed(text.substr(i, piece));
    for (const trace::KernelTrace& trace : reader.finish()) {
      memory::MemorySystem(small_machine()).run(trace);
    }
  } catch (const InputError&) {
  }
  return 0;
}
