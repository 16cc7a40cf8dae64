#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace warpstack {

/// A queue in a ring that grows when it is full.
template <typename T>
class Fifo {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] T& front() { return ring_[first_]; }
  [[nodiscard]] const T& front() const { return ring_[first_]; }
  /// The i-th element from the front.
  [[nodiscard]] const T& operator[](std::size_t i) const {
    return ring_[(first_ + i) & (ring_.size() - 1)];
  }
  /// Appends an element and returns it; it may hold an old value, whose memory is used again.
  T& push() {
    if (size_ == ring_.size()) grow();
    return ring_[(first_ + size_++) & (ring_.size() - 1)];
  }
  void push(const T& value) { push() = value; }
  void pop() {
    first_ = (first_ + 1) & (ring_.size() - 1);
    --size_;
  }

 private:
  void grow() {
    std::vector<T> larger(ring_.empty() ? 4 : 2 * ring_.size());
    for (std::size_t i = 0; i < size_; ++i) {
      larger[i] = std::move(ring_[(first_ + i) & (ring_.size() - 1)]);
    }
    ring_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> ring_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace warpstack
