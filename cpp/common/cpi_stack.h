#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/enum_names.h"

namespace warpstack {

/// Components of a CPI stack from the bottom (GPUMech, Table III; MDM, Figure 14): what an issue
/// slot was used for or lost to, why a warp stalled, and what a miss waited for.
enum class StackComponent : std::uint8_t { base, dep, l1, l2, dram, mshr, noc, queue };
constexpr auto names_of(StackComponent) {
  return enum_names("component of a CPI stack", "base", "dep", "l1", "l2", "dram", "mshr", "noc",
                    "queue");
}

/// An amount per component: cycles per instruction, cycles or issue slots.
template <typename T>
class CpiStack {
 public:
  T& operator[](StackComponent component) { return values_[static_cast<std::size_t>(component)]; }
  const T& operator[](StackComponent component) const {
    return values_[static_cast<std::size_t>(component)];
  }
  CpiStack& operator+=(const CpiStack& other) {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
    return *this;
  }
  /// The sum from the bottom up.
  [[nodiscard]] T sum() const {
    T result{};
    for (const T& value : values_) result += value;
    return result;
  }
  [[nodiscard]] auto begin() { return values_.begin(); }
  [[nodiscard]] auto end() { return values_.end(); }
  [[nodiscard]] auto begin() const { return values_.begin(); }
  [[nodiscard]] auto end() const { return values_.end(); }

 private:
  std::array<T, num_values<StackComponent>> values_{};
};

}  // namespace warpstack
