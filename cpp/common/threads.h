#pragma once

#include <algorithm>
#include <thread>

namespace warpstack {

/// The number of threads that a caller asks for; 0 stands for as many as the machine runs at once.
inline unsigned threads_asked_for(unsigned num_threads) {
  return num_threads != 0 ? num_threads : std::max(std::thread::hardware_concurrency(), 1u);
}

}  // namespace warpstack
