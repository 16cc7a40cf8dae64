// Damaged words are a memory profile, which gives the same words again, or an InputError.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "common/error.h"
#include "memory/system/profile_words.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpstack;
  std::vector<std::uint64_t> words(size / sizeof(std::uint64_t));
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * sizeof(std::uint64_t));
  try {
    if (memory::words_of(memory::memory_profile_of(words)) != words) std::abort();
  } catch (const InputError&) {
  }
  return 0;
}
