#pragma once

#include "memory/system/memory_system.h"

namespace warpstack::testing {

/// One SM; L1 has four sets of two lines. What a test is about, it changes.
inline memory::MemoryConfig small_memory() {
  memory::MemoryConfig result;
  result.sm.warps = 64;
  result.sm.threads = 2048;
  result.sm.blocks = 2;
  result.l1 = {.size_bytes = 1024,
               .ways = 2,
               .line_bytes = 128,
               .sector_bytes = 128,
               .write_policy = memory::WritePolicy::write_through,
               .write_miss = memory::WriteMiss::no_allocate};
  result.l2 = {.size_bytes = 1 << 16, .ways = 4, .line_bytes = 128, .sector_bytes = 128};
  return result;
}

}  // namespace warpstack::testing
