#pragma once

#include <cmath>
#include <cstdint>

namespace warpstack::memory {

/// Which of the lines that a cache held before an application were written to. They are the oldest
/// ones, and no request finds them: a way that holds one is an empty way that costs a write-back
/// when it is filled. An unwritten one is an empty way.
class Strangers {
 public:
  /// `share` from 0 to 1: of the lines.
  explicit Strangers(double share)
      : step_(static_cast<std::uint64_t>(std::llround(share * static_cast<double>(whole)))) {}

  [[nodiscard]] bool have_written() const { return step_ > 0; }
  /// Whether the line that makes room as the `turn`-th of a set was written to. Written ones are
  /// spread evenly over the turns of a set, from a phase of its own.
  [[nodiscard]] bool have_written(std::uint64_t set, std::uint32_t turn) const {
    const std::uint64_t phase = set * golden_ratio + turn * step_;
    return phase % whole + step_ >= whole;
  }

 private:
  static constexpr std::uint64_t whole = std::uint64_t{1} << 32;
  static constexpr std::uint64_t golden_ratio = 0x9e3779b9;  ///< its fraction, of `whole`

  std::uint64_t step_;
};

}  // namespace warpstack::memory
