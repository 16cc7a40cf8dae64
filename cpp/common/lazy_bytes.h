#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace warpstack {

/// Arrays from this size on are mapped page by page as they are touched, without a reservation;
/// smaller ones come from the heap.
inline constexpr std::size_t mapped_bytes = std::size_t{1} << 18;

/// Maps memory without reserving any: pages take memory when they are touched, and begin as zero.
/// Null when there is no address space left.
inline void* map_lazily(std::size_t bytes, void* wanted = nullptr, int more_flags = 0) {
  void* const place = ::mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | more_flags, -1, 0);
  return place == MAP_FAILED ? nullptr : place;
}

/// Makes bytes zero. Whole pages of a long range from map_lazily() are returned to the system, so
/// that the time depends on the touched pages and not on the length.
inline void zero_mapped(void* begin, std::size_t bytes) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  if (bytes >= mapped_bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    const std::size_t head = (page - address % page) % page;
    const std::size_t whole = (bytes - head) / page * page;
    auto* const first = static_cast<std::byte*>(begin) + head;
    if (::madvise(first, whole, MADV_DONTNEED) == 0) {
      std::memset(begin, 0, head);
      std::memset(first + whole, 0, bytes - head - whole);
      return;
    }
  }
  std::memset(begin, 0, bytes);
}

struct FreeLazyBytes {
  std::size_t size = 0;
  void operator()(std::uint8_t* bytes) const noexcept {
    if (size >= mapped_bytes) {
      ::munmap(bytes, size);
    } else {
      std::free(bytes);
    }
  }
};

/// Bytes that begin as zero and take memory when they are touched, however many they are.
using LazyBytes = std::unique_ptr<std::uint8_t[], FreeLazyBytes>;

/// Null when there are no bytes. Throws std::bad_alloc.
inline LazyBytes lazy_bytes(std::size_t size) {
  if (size == 0) return {};
  void* const memory = size >= mapped_bytes ? map_lazily(size) : std::calloc(size, 1);
  if (memory == nullptr) throw std::bad_alloc();
  return {static_cast<std::uint8_t*>(memory), FreeLazyBytes{size}};
}

/// Makes `bytes` an array of `size` zeros. Keeps its memory if the size is the same.
inline void assign_zeros(LazyBytes& bytes, std::size_t size) {
  if (bytes == nullptr || bytes.get_deleter().size != size) {
    bytes.reset();  // frees the old memory first
    bytes = lazy_bytes(size);
  } else if (size >= mapped_bytes) {
    zero_mapped(bytes.get(), size);
  } else {
    std::memset(bytes.get(), 0, size);
  }
}

}  // namespace warpstack
