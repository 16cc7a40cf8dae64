#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stand_ins/curand/distributions.h"
#include "stand_ins/curand/generator.h"

namespace warpstack::curand {

/// A sequence of raw results, of which each number of any distribution takes one: the Mersenne
/// twisters.
class Buffered : public Generator {
 public:
  void bits(std::uint32_t* out, std::size_t count) override {
    each(out, count, [](std::uint32_t x) { return x; });
  }
  void open_uniform(double* out, std::size_t count) override { each(out, count, middle_of); }

 protected:
  /// The next results, as many as lie together.
  virtual std::span<const std::uint32_t> more() = 0;

  template <typename T, typename Convert>
  void each(T* out, std::size_t count, Convert convert) {
    while (count != 0) {
      if (ready_.empty()) ready_ = more();
      const std::size_t part = std::min(count, ready_.size());
      out = std::transform(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(part), out,
                           convert);
      ready_ = ready_.subspan(part);
      count -= part;
    }
  }

 private:
  std::span<const std::uint32_t> ready_;
};

}  // namespace warpstack::curand
