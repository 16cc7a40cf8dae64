#include "stand_ins/state/host_memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace warpstack::cudart {
namespace {

// Since Linux 5.14; the headers may be older than the system.
constexpr int populate_read = 22;
constexpr int populate_write = 23;

/// Looks in the list of this process's mappings, which is slow but available on every Linux.
bool mapped(std::uint64_t begin, std::uint64_t end, char permission) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                             &std::fclose);
  if (maps == nullptr) return true;  // unknown; the copy will show it
  char* line = nullptr;
  std::size_t size = 0;
  while (begin < end && ::getline(&line, &size, maps.get()) > 0) {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    char permissions[8] = {};
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &first, &last, permissions) != 3) break;
    if (last <= begin) continue;
    if (first > begin || permissions[permission == 'r' ? 0 : 1] != permission) break;
    begin = last;
  }
  std::free(line);
  return begin >= end;
}

bool accessible(std::uint64_t address, std::uint64_t bytes, bool writes) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (bytes == 0) return true;
  const std::uint64_t last = ~std::uint64_t{0} - page;
  if (address > last || bytes > last - address) return false;
  const std::uint64_t begin = address / page * page;
  const std::uint64_t end = (address + bytes + page - 1) / page * page;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  void* const first = reinterpret_cast<void*>(begin);
  if (::madvise(first, end - begin, writes ? populate_write : populate_read) == 0) return true;
  // The pages are behind the end of a file, or damaged.
  if (errno == EFAULT || errno == EHWPOISON) return false;
  return mapped(begin, end, writes ? 'w' : 'r');
}

}  // namespace

bool host_readable(std::uint64_t address, std::uint64_t bytes) {
  return accessible(address, bytes, false);
}

bool host_writable(std::uint64_t address, std::uint64_t bytes) {
  return accessible(address, bytes, true);
}

}  // namespace warpstack::cudart
