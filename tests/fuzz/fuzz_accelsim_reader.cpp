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
#include "memory/memory_system.h"
#include "trace/accelsim_reader.h"
#include "trace/accelsim_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpstack;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The first byte chooses the pieces and whether the columns live in a file.
  const std::size_t piece = size > 0 ? data[0] % 97 + 1 : 1;
  const std::uint64_t limit = size > 0 && data[0] % 2 == 0 ? 0 : std::uint64_t{1} << 30;
  try {
    AccelSimReader reader("fuzz", std::make_shared<StorageBudget>(limit, "/tmp"));
    for (std::size_t i = 0; i < size; i += piece) reader.feed(text.substr(i, piece));
    const KernelTrace trace = reader.finish();
    MemoryConfig config;
    config.num_sms = 2;
    config.sm.warps = 64;
    config.sm.threads = 2048;
    config.sm.blocks = 2;
    config.l1 = {.size_bytes = 4096, .ways = 2};
    config.l2 = {.size_bytes = 16384, .ways = 4};
    const MemoryProfile memory = MemorySystem(config).run(trace);
    const Latencies cycles = latencies(trace, memory, ClassLatencies{}, {25, 120, 220});
    group_warps(trace, cycles, 1.0);
    build_intervals(trace, {0, 0}, cycles, memory, IntervalOptions{});

    AccelSimWriter writer(trace, 0);
    const std::string body = writer.blocks(0, trace.blocks().size());
    AccelSimReader again("again", std::make_shared<StorageBudget>(limit, "/tmp"));
    again.feed(writer.header());
    again.feed(body);
    const KernelTrace same = again.finish();
    if (same.totals() != trace.totals() || same.num_warps() != trace.num_warps()) std::abort();
  } catch (const InputError&) {
  }
  return 0;
}
