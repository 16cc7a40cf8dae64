// A damaged trace file is a trace or an InputError.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/error.h"
#include "trace/columns/trace_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpstack;
  const auto budget = std::make_shared<trace::StorageBudget>(std::uint64_t{1} << 30, "/tmp");
  try {
    read_trace(std::as_bytes(std::span(data, size)), "fuzz", budget);
  } catch (const InputError&) {
  }
  return 0;
}
