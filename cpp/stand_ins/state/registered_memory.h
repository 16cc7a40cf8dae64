#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace warpstack::cudart {

/// Host memory that the program has registered (cudaHostRegister). Ranges do not overlap.
class RegisteredMemory {
 public:
  struct Range {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    unsigned flags = 0;
  };

  /// The range that holds an address, or null.
  [[nodiscard]] const Range* find(std::uint64_t address) const {
    const auto next = ranges_.upper_bound(address);
    if (next == ranges_.begin()) return nullptr;
    const Range& range = std::prev(next)->second;
    return address - range.address < range.bytes ? &range : nullptr;
  }
  /// Whether at least one of these bytes is registered.
  [[nodiscard]] bool meets(std::uint64_t address, std::uint64_t bytes) const {
    if (find(address) != nullptr) return true;
    const auto next = ranges_.upper_bound(address);
    return next != ranges_.end() && next->first - address < bytes;
  }
  void add(const Range& range) { ranges_[range.address] = range; }
  /// Returns false when no range begins at `address`.
  bool remove(std::uint64_t address) { return ranges_.erase(address) > 0; }
  void clear() { ranges_.clear(); }

 private:
  std::map<std::uint64_t, Range> ranges_;
};

}  // namespace warpstack::cudart
