#pragma once

#include "memory/order/memory_config.h"

/// Caches so small that short inputs fill them.
inline warpstack::memory::MemoryConfig small_machine() {
  warpstack::memory::MemoryConfig config;
  config.num_sms = 2;
  config.sm.warps = 64;
  config.sm.threads = 2048;
  config.sm.blocks = 2;
  config.l1 = {.size_bytes = 4096, .ways = 2};
  config.l2 = {.size_bytes = 16384, .ways = 4};
  return config;
}
