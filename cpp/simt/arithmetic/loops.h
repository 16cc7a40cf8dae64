#pragma once

#include <bit>
#include <cfenv>
#include <cstddef>
#include <utility>

#include "simt/arithmetic/values.h"

namespace warpstack::simt::WARPSTACK_ISA {

// Lanes are independent, also when the target is a source: `ivdep`.

/// Loops of cheap functions compute every lane and keep the results under the mask; the compiler
/// vectorizes them. Others compute only the active lanes, as all do when these are few.
enum class Cost : u8 { cheap, high };

/// Calls `f` with lanes, among them all active ones, and whether it is to change each.
template <class F>
inline void for_lanes(const LaneMask& mask, F f) {
  if (mask.few) {
    for (u32 rest = mask.bits; rest != 0; rest &= rest - 1) {
      f(static_cast<u32>(std::countr_zero(rest)), true);
    }
  } else if (mask.all) {
#pragma GCC ivdep
    for (u32 lane = 0; lane < 32; ++lane) f(lane, true);
  } else {
    const u32* const active = mask.lanes.data();
#pragma GCC ivdep
    for (u32 lane = 0; lane < 32; ++lane) f(lane, active[lane] != 0);
  }
}

template <class F, class D, Cost cost, class... S>
void run(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  static_assert(sizeof...(S) >= 1 && sizeof...(S) <= 4);
  auto* const d = reinterpret_cast<Stored<D>*>(registers + operands.target);
  const auto source = [registers, &operands]<class T>(std::size_t i, std::type_identity<T>) {
    return reinterpret_cast<const Stored<T>*>(registers + operands.source[i]);
  };
  const auto loop = [&](const auto&... s) {
    const auto active_lanes = [&] {
      for (u32 rest = mask.bits; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        d[lane] = stored<D>(F::apply(load<S>(s[lane])...));
      }
    };
    if constexpr (cost == Cost::high) {
      active_lanes();  // the other loops are not even compiled
    } else if (mask.few) {
      active_lanes();
    } else if (mask.all) {
#pragma GCC ivdep
      for (u32 lane = 0; lane < 32; ++lane) d[lane] = stored<D>(F::apply(load<S>(s[lane])...));
    } else {
      const u32* const active = mask.lanes.data();
#pragma GCC ivdep
      for (u32 lane = 0; lane < 32; ++lane) {
        const Stored<D> value = stored<D>(F::apply(load<S>(s[lane])...));
        d[lane] = active[lane] != 0 ? value : d[lane];
      }
    }
  };
  const auto call = [&]<std::size_t... i>(std::index_sequence<i...>) {
    loop(source(i, std::type_identity<S>{})...);
  };
  call(std::index_sequence_for<S...>{});
}

template <class F, class D, class... S>
constexpr LaneFunction cheap() {
  return &run<F, D, Cost::cheap, S...>;
}
template <class F, class D, class... S>
constexpr LaneFunction costly() {
  return &run<F, D, Cost::high, S...>;
}

/// For functions that also take `operands.immediate`; computes only active lanes.
template <class F, class D, class... S>
void run_with_immediate(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  auto* const d = reinterpret_cast<Stored<D>*>(registers + operands.target);
  const auto call = [&]<std::size_t... i>(std::index_sequence<i...>) {
    for (u32 rest = mask.bits; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      d[lane] = stored<D>(F::apply(
          operands.immediate,
          load<S>(reinterpret_cast<const Stored<S>*>(registers + operands.source[i])[lane])...));
    }
  };
  call(std::index_sequence_for<S...>{});
}

/// For float functions in a rounding mode other than to nearest, given by `operands.immediate`.
template <class F, class D, class... S>
void run_directed(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  std::fesetround(modes[operands.immediate & 3]);
  run<F, D, Cost::high, S...>(registers, operands, mask);
  std::fesetround(FE_TONEAREST);
}

}  // namespace warpstack::simt::WARPSTACK_ISA
