#include "stand_ins/curand/generator.h"

#include <stdexcept>

namespace warpstack::curand {

void Generator::bits64(std::uint64_t*, std::size_t) {
  throw std::logic_error("this generator has results of 32 bits");
}

bool has_bits64(Kind kind) { return kind == Kind::sobol64 || kind == Kind::scrambled_sobol64; }

bool is_quasi(Kind kind) { return static_cast<int>(kind) >= static_cast<int>(Kind::sobol32); }

bool makes_pairs(Kind kind) { return kind == Kind::xorwow || kind == Kind::mrg32k3a; }

std::unique_ptr<Generator> make_generator(const Settings& settings) {
  switch (settings.kind) {
    case Kind::xorwow:
      return make_xorwow(settings);
    case Kind::mrg32k3a:
      return make_mrg32k3a(settings);
    case Kind::philox:
      return make_philox(settings);
    case Kind::mtgp32:
      return make_mtgp32(settings);
    case Kind::mt19937:
      return make_mt19937(settings);
    default:
      return make_sobol(settings);
  }
}

}  // namespace warpstack::curand
