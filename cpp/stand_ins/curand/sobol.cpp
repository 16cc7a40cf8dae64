// Sobol's sequences in Gray code's order (Antonov and Saleev, 1979). All results of the first
// dimension come first, then those of the second, and so on.

#include <bit>
#include <limits>

#include "stand_ins/curand/direction_vectors.h"
#include "stand_ins/curand/distributions.h"
#include "stand_ins/curand/generator.h"

namespace warpstack::curand {
namespace {

template <typename Word>
class Sobol : public Generator {
 public:
  explicit Sobol(const Settings& settings)
      : scrambled_(settings.kind == Kind::scrambled_sobol32 ||
                   settings.kind == Kind::scrambled_sobol64),
        dimensions_(settings.dimensions),
        position_(settings.offset) {}

  void bits(std::uint32_t* out, std::size_t count) override {
    each(out, count, [](Word x) { return static_cast<std::uint32_t>(x); });
  }
  void bits64(std::uint64_t* out, std::size_t count) override {
    each(out, count, [](Word x) { return std::uint64_t{x}; });
  }
  void uniform(float* out, std::size_t count) override {
    each(out, count,
         [](Word x) { return uniform_of(static_cast<std::uint32_t>(x >> (word_bits - 32))); });
  }
  void uniform(double* out, std::size_t count) override {
    each(out, count, [](Word x) {
      if constexpr (word_bits == 32) {
        return upper_of(x);
      } else {
        return middle53(x >> 11);
      }
    });
  }
  void normal(float* out, std::size_t count) override {
    each(out, count, [](Word x) { return normal_of(x); });
  }
  void normal(double* out, std::size_t count) override {
    each(out, count, [](Word x) { return normal_double_of(x); });
  }
  void open_uniform(double* out, std::size_t count) override {
    each(out, count,
         [](Word x) { return middle_of(static_cast<std::uint32_t>(x >> (word_bits - 32))); });
  }

 private:
  static constexpr int word_bits = std::numeric_limits<Word>::digits;

  template <typename T, typename Convert>
  void each(T* out, std::size_t count, Convert convert) {
    const std::size_t points = count / dimensions_;
    const auto& vectors = scrambled_ ? scrambled_directions<Word>() : directions<Word>();
    for (std::size_t dimension = 0; dimension < dimensions_; ++dimension) {
      const auto& own = vectors[dimension];
      Word x = scrambled_ ? scramble_constants<Word>()[dimension] : 0;
      auto index = static_cast<Word>(position_);
      for (Word gray = index ^ index >> 1; gray != 0; gray &= gray - 1) {
        x ^= own[static_cast<std::size_t>(std::countr_zero(gray))];
      }
      for (std::size_t i = 0; i < points; ++i) {
        *out++ = convert(x);
        const int changed = std::countr_one(index++);
        if (changed < word_bits) x ^= own[static_cast<std::size_t>(changed)];
      }
    }
    position_ += points;
  }

  bool scrambled_;
  std::size_t dimensions_;
  std::uint64_t position_;
};

}  // namespace

std::unique_ptr<Generator> make_sobol(const Settings& settings) {
  if (has_bits64(settings.kind)) return std::make_unique<Sobol<std::uint64_t>>(settings);
  return std::make_unique<Sobol<std::uint32_t>>(settings);
}

}  // namespace warpstack::curand
