// Any bytes, in any pieces, are a kernel or an InputError; whatever is accepted can be simulated,
// and written and read again.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "common/error.h"
#include "interval/interval.h"
#include "memory/system/memory_system.h"
#include "small_machine.h"
#include "trace/accelsim/reader.h"
#include "trace/accelsim/writer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpstack;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The first byte chooses the pieces and whether the columns live in a file.
  const std::size_t piece = size > 0 ? data[0] % 97 + 1 : 1;
  const std::uint64_t limit = size > 0 && data[0] % 2 == 0 ? 0 : std::uint64_t{1} << 30;
  try {
    trace::AccelSimReader reader("fuzz", std::make_shared<trace::StorageBudget>(limit, "/tmp"), 2);
    for (std::size_t i = 0; i < size; i += piece) reader.feed(text.substr(i, piece));
    const trace::KernelTrace trace = reader.finish();
    const memory::MemoryProfile memory = memory::MemorySystem(small_machine()).run(trace);
    const interval::Latencies cycles =
        interval::latencies(trace, memory, gpu::ClassLatencies{}, {25, 120, 220});
    interval::group_warps(trace, cycles, 1.0);
    interval::build_intervals(trace, {0, 0}, cycles, memory, interval::IntervalOptions{});

    trace::AccelSimWriter writer(trace, 0);
    const std::string body = writer.blocks(0, trace.blocks().size());
    trace::AccelSimReader again("again", std::make_shared<trace::StorageBudget>(limit, "/tmp"));
    again.feed(writer.header());
    again.feed(body);
    const trace::KernelTrace same = again.finish();
    if (same.totals() != trace.totals() || same.num_warps() != trace.num_warps()) std::abort();
  } catch (const InputError&) {
  }
  return 0;
}
