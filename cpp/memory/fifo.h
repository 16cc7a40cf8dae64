#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace warpstack::memory {

/// A queue in one piece of memory, which doubles when it is full.
template <typename Value>
class Fifo {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const Value& front() const { return values_[head_]; }
  void push_back(const Value& value) {
    if (size_ == values_.size()) grow();
    values_[(head_ + size_++) & (values_.size() - 1)] = value;
  }
  void pop_front() {
    head_ = (head_ + 1) & (values_.size() - 1);
    --size_;
  }

 private:
  void grow() {
    std::vector<Value> larger(2 * values_.size());
    for (std::size_t i = 0; i < size_; ++i) {
      larger[i] = values_[(head_ + i) & (values_.size() - 1)];
    }
    values_ = std::move(larger);
    head_ = 0;
  }

  std::vector<Value> values_ = std::vector<Value>(16);  ///< a power of two
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace warpstack::memory
