#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

namespace warpstack {

/// Values that begin as zero bytes, aligned to cache lines. The operating system provides large
/// arrays page by page as they are touched, so unused parts cost nothing.
template <typename T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit ZeroedArray(std::size_t size = 0) : size_(size) {
    if (size == 0) return;
    if (size > (SIZE_MAX - alignment) / sizeof(T)) throw std::bad_alloc();
    memory_.reset(std::calloc(size * sizeof(T) + alignment, 1));
    if (!memory_) throw std::bad_alloc();
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    data_ = reinterpret_cast<T*>((address + alignment - 1) / alignment * alignment);
  }
  ZeroedArray(const ZeroedArray& other) : ZeroedArray(other.size_) {
    if (size_ > 0) std::memcpy(data_, other.data_, size_ * sizeof(T));
  }
  ZeroedArray& operator=(const ZeroedArray& other) {
    if (this != &other) *this = ZeroedArray(other);
    return *this;
  }
  ZeroedArray(ZeroedArray&&) = default;
  ZeroedArray& operator=(ZeroedArray&&) = default;
  ~ZeroedArray() = default;
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] const T* data() const { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  /// Makes all bytes zero: by writing small arrays, and by taking new memory for large ones, of
  /// which little may be in use.
  void clear() {
    if (size_ * sizeof(T) <= most_written) {
      if (size_ > 0) std::memset(static_cast<void*>(data_), 0, size_ * sizeof(T));
      return;
    }
    const std::size_t size = size_;
    *this = ZeroedArray();  // frees the old memory first
    *this = ZeroedArray(size);
  }

 private:
  static constexpr std::size_t alignment = 64;
  static constexpr std::size_t most_written = std::size_t{256} << 10;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  std::size_t size_;
  std::unique_ptr<void, Free> memory_;
  T* data_ = nullptr;
};

}  // namespace warpstack
