#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "stand_ins/curand/abi.h"

namespace warpstack::curand {

/// A sequence of random numbers. Each function continues where the last one ended, as cuRAND's do.
///
/// cuRAND's kernels run many threads, each with a part of the sequence (a lane). Its guide defines
/// which lane gives which result ("Order" in "Generator Options"), and curand_kernel.h how a lane
/// makes its numbers. Subclasses follow both; what neither says (the widths of default orderings,
/// where a lane goes on after results of several types) is what NVIDIA's generators on the host do.
class Generator {
 public:
  Generator() = default;
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;
  virtual ~Generator() = default;

  /// Raw results of 32 bits.
  virtual void bits(std::uint32_t* out, std::size_t count) = 0;
  /// Uniform in (0, 1].
  virtual void uniform(float* out, std::size_t count) = 0;
  virtual void uniform(double* out, std::size_t count) = 0;
  /// Standard normal.
  virtual void normal(float* out, std::size_t count) = 0;
  virtual void normal(double* out, std::size_t count) = 0;
  /// Uniform in (0, 1), by one draw each: what Poisson's numbers are made of.
  virtual void open_uniform(double* out, std::size_t count) = 0;
  /// Raw results of 64 bits; only of those that have_bits64.
  virtual void bits64(std::uint64_t* out, std::size_t count);
};

/// Whether raw results have 64 bits, and not 32.
[[nodiscard]] bool has_bits64(Kind kind);
/// Sobol's sequences.
[[nodiscard]] bool is_quasi(Kind kind);
/// Whether normal results come in pairs, so that their number must be even.
[[nodiscard]] bool makes_pairs(Kind kind);

/// What a program has set of a generator.
struct Settings {
  Kind kind = Kind::xorwow;
  Ordering ordering = Ordering::pseudo_default;
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  std::uint32_t dimensions = 1;
};

std::unique_ptr<Generator> make_generator(const Settings& settings);

// Makers of each family, in the files of these names.
std::unique_ptr<Generator> make_xorwow(const Settings& settings);
std::unique_ptr<Generator> make_mrg32k3a(const Settings& settings);
std::unique_ptr<Generator> make_philox(const Settings& settings);
std::unique_ptr<Generator> make_mtgp32(const Settings& settings);
std::unique_ptr<Generator> make_mt19937(const Settings& settings);
std::unique_ptr<Generator> make_sobol(const Settings& settings);

}  // namespace warpstack::curand
