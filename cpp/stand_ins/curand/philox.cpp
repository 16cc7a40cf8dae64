// Philox4x32 with ten rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011).
// Lane i of 65,536 counts in the first two words of the counter, and i is the third. A turn of a
// lane is four results, of one block of four draws, or of two for doubles.

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "stand_ins/curand/distributions.h"
#include "stand_ins/curand/generator.h"

namespace warpstack::curand {
namespace {

constexpr std::size_t philox_width = 65536;
constexpr std::size_t turn_results = 4;

using Block = std::array<std::uint32_t, turn_results>;

class Philox : public Generator {
 public:
  Philox(std::uint64_t seed, std::uint64_t offset)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        blocks_(philox_width, offset / (philox_width * turn_results)) {
    const std::uint64_t rest = offset % (philox_width * turn_results);
    lane_ = static_cast<std::size_t>(rest / turn_results);
    inside_ = static_cast<std::size_t>(rest % turn_results);
    for (std::size_t i = 0; i < lane_; ++i) ++blocks_[i];
  }

  void bits(std::uint32_t* out, std::size_t count) override {
    turns(out, count, 1, [](const Block& x, const Block&) { return x; });
  }
  void uniform(float* out, std::size_t count) override {
    turns(out, count, 1, [](const Block& x, const Block&) { return each<float>(x, uniform_of); });
  }
  void uniform(double* out, std::size_t count) override {
    turns(out, count, 2, [](const Block& x, const Block& y) {
      return std::array<double, 4>{middle53(bits53(x[0], x[1])), middle53(bits53(x[2], x[3])),
                                   middle53(bits53(y[0], y[1])), middle53(bits53(y[2], y[3]))};
    });
  }
  void normal(float* out, std::size_t count) override {
    turns(out, count, 1, [](const Block& x, const Block&) {
      std::array<float, 4> result{};
      std::tie(result[0], result[1]) = box_muller(x[0], x[1]);
      std::tie(result[2], result[3]) = box_muller(x[2], x[3]);
      return result;
    });
  }
  void normal(double* out, std::size_t count) override {
    turns(out, count, 2, [](const Block& x, const Block& y) {
      std::array<double, 4> result{};
      std::tie(result[0], result[1]) = box_muller(x.data());
      std::tie(result[2], result[3]) = box_muller(y.data());
      return result;
    });
  }
  void open_uniform(double* out, std::size_t count) override {
    turns(out, count, 1, [](const Block& x, const Block&) { return each<double>(x, middle_of); });
  }

 private:
  template <typename T, typename Convert>
  static std::array<T, 4> each(const Block& x, Convert convert) {
    return {convert(x[0]), convert(x[1]), convert(x[2]), convert(x[3])};
  }

  [[nodiscard]] Block block(std::uint64_t number) const {
    constexpr std::uint64_t multiplier0 = 0xd2511f53U, multiplier1 = 0xcd9e8d57U;
    constexpr std::uint32_t step0 = 0x9e3779b9U, step1 = 0xbb67ae85U;
    Block c{static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32),
            static_cast<std::uint32_t>(lane_), 0};
    auto [k0, k1] = key_;
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = multiplier0 * c[0];
      const std::uint64_t p1 = multiplier1 * c[2];
      c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
           static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
      k0 += step0;
      k1 += step1;
    }
    return c;
  }

  /// Results of turns that take this many blocks. A turn that is not finished is made again when
  /// the next call goes on with it.
  template <typename T, typename Make>
  void turns(T* out, std::size_t count, std::uint64_t blocks, Make make) {
    while (count != 0) {
      const std::uint64_t first = blocks_[lane_];
      const auto results = make(block(first), blocks == 2 ? block(first + 1) : Block{});
      const std::size_t part = std::min(count, turn_results - inside_);
      out = std::copy_n(results.begin() + static_cast<std::ptrdiff_t>(inside_), part, out);
      count -= part;
      inside_ += part;
      if (inside_ == turn_results) {
        blocks_[lane_] += blocks;
        inside_ = 0;
        if (++lane_ == philox_width) lane_ = 0;
      }
    }
  }

  std::array<std::uint32_t, 2> key_;
  std::vector<std::uint64_t> blocks_;  ///< of each lane, those that are used up
  std::size_t lane_ = 0;
  std::size_t inside_ = 0;  ///< results of the current turn that are given away
};

}  // namespace

std::unique_ptr<Generator> make_philox(const Settings& settings) {
  return std::make_unique<Philox>(settings.seed, settings.offset);
}

}  // namespace warpstack::curand
