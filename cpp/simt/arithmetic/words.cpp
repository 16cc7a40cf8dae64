// Compiled once per instruction set of the host, see lanes/lane_functions.h.

#include <bit>
#include <cfenv>
#include <cmath>
#include <tuple>

#include "simt/arithmetic/compare.h"
#include "simt/arithmetic/loops.h"
#include "simt/arithmetic/real.h"

// Arithmetic of machine code: 64-bit values in two registers, sources with signs, carries in
// predicates.

namespace warpstack::simt::WARPSTACK_ISA {
namespace {

/// A value of 4 bytes, or of 8 in two slots.
template <class T>
inline T load_words(const u32* words, u32 lane) {
  if constexpr (sizeof(T) == 8) {
    return std::bit_cast<T>(words[lane] | (u64{words[lane + 32]} << 32));
  } else {
    return load<T>(words[lane]);
  }
}
template <class T>
inline void store_words(u32* words, u32 lane, T value, bool active) {
  if constexpr (sizeof(T) == 8) {
    const auto bits = std::bit_cast<u64>(value);
    words[lane] = active ? static_cast<u32>(bits) : words[lane];
    words[lane + 32] = active ? static_cast<u32>(bits >> 32) : words[lane + 32];
  } else {
    const u32 bits = stored<T>(value);
    words[lane] = active ? bits : words[lane];
  }
}

template <class F, class D, class... S>
void run_words(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  auto* const d = reinterpret_cast<u32*>(registers + operands.target);
  const auto call = [&]<std::size_t... i>(std::index_sequence<i...>) {
    const u32* const s[] = {reinterpret_cast<const u32*>(registers + operands.source[i])...};
    for_lanes(mask, [&](u32 lane, bool active) {
      store_words<D>(d, lane, F::apply(load_words<S>(s[i], lane)...), active);
    });
  };
  call(std::index_sequence_for<S...>{});
}

/// The sign bits of a source that stay, and those that change.
template <class T>
struct SignMask {
  using Bits = Stored<T>;
  Bits keep;
  Bits flip;

  SignMask(OperandSigns signs, u32 source) {
    constexpr Bits sign = Bits{1} << (sizeof(T) * 8 - 1);
    keep = signs.absolute(source) ? ~sign : ~Bits{0};
    flip = signs.negates(source) ? sign : 0;
  }
  [[nodiscard]] T apply(T value) const {
    return std::bit_cast<T>((std::bit_cast<Bits>(value) & keep) ^ flip);
  }
};

template <class F, class D, class... S>
void run_signs(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  const OperandSigns signs{operands.immediate};
  auto* const d = reinterpret_cast<u32*>(registers + operands.target);
  const auto call = [&]<std::size_t... i>(std::index_sequence<i...>) {
    const u32* const s[] = {reinterpret_cast<const u32*>(registers + operands.source[i])...};
    const std::tuple<SignMask<S>...> masks{SignMask<S>(signs, i)...};
    for_lanes(mask, [&](u32 lane, bool active) {
      store_words<D>(d, lane, F::apply(std::get<i>(masks).apply(load_words<S>(s[i], lane))...),
                     active);
    });
  };
  if (signs.rounding() == Rounding::nearest) {
    call(std::index_sequence_for<S...>{});
    return;
  }
  static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  std::fesetround(modes[operands.immediate & 3]);
  call(std::index_sequence_for<S...>{});
  std::fesetround(FE_TONEAREST);
}

void run_add3(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  const Add3Terms terms{operands.immediate};
  const u32 m0 = terms.mask(0);
  const u32 m1 = terms.mask(1);
  const u32 m2 = terms.mask(2);
  const u32 addend = terms.addend();
  auto* const d = reinterpret_cast<u32*>(registers + operands.target);
  const auto* const a = reinterpret_cast<const u32*>(registers + operands.source[0]);
  const auto* const b = reinterpret_cast<const u32*>(registers + operands.source[1]);
  const auto* const c = reinterpret_cast<const u32*>(registers + operands.source[2]);
  for_lanes(mask, [&](u32 lane, bool active) {
    const u32 sum = (a[lane] ^ m0) + (b[lane] ^ m1) + (c[lane] ^ m2) + addend;
    d[lane] = active ? sum : d[lane];
  });
}

/// A sum of three words, a carry and the terms' number, and how often it leaves 32 bits.
template <bool only_second_carry>
void run_add3_carry(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  const Add3Terms terms{operands.immediate};
  const u32 m0 = terms.mask(0);
  const u32 m1 = terms.mask(1);
  const u32 m2 = terms.mask(2);
  const u32 addend = terms.addend();
  auto* const d = reinterpret_cast<u32*>(registers + operands.target);
  auto* const carry_out = reinterpret_cast<u32*>(registers + operands.target2);
  const auto* const a = reinterpret_cast<const u32*>(registers + operands.source[0]);
  const auto* const b = reinterpret_cast<const u32*>(registers + operands.source[1]);
  const auto* const c = reinterpret_cast<const u32*>(registers + operands.source[2]);
  const auto* const carry_in = reinterpret_cast<const u32*>(registers + operands.source[3]);
  for_lanes(mask, [&](u32 lane, bool active) {
    const u32 x = a[lane] ^ m0;
    const u32 z = c[lane] ^ m2;
    const u32 first = x + (b[lane] ^ m1);
    const u32 second = first + z;
    const u32 sum = second + addend + (carry_in[lane] & 1);
    const u32 carries = u32{first < x} + u32{second < z} + u32{sum < second};
    if constexpr (only_second_carry) {
      d[lane] = active ? 0u - u32{carries > 1} : d[lane];
    } else {
      d[lane] = active ? sum : d[lane];
      carry_out[lane] = active ? 0u - u32{carries > 0} : carry_out[lane];
    }
  });
}

template <class T>
struct MadWords {
  static u64 apply(T a, T b, u64 c) { return static_cast<u64>(Wide<T>{a} * Wide<T>{b}) + c; }
};
template <class T>
struct MadWordsHi {
  static u32 apply(T a, T b, u64 c) { return static_cast<u32>(MadWords<T>::apply(a, b, c) >> 32); }
};

void run_pack(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  auto* const d = reinterpret_cast<u64*>(registers + operands.target);
  const auto* const s = reinterpret_cast<const u32*>(registers + operands.source[0]);
  for_lanes(mask,
            [&](u32 lane, bool active) { d[lane] = active ? load_words<u64>(s, lane) : d[lane]; });
}
void run_unpack(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  auto* const d = reinterpret_cast<u32*>(registers + operands.target);
  const auto* const s = reinterpret_cast<const u64*>(registers + operands.source[0]);
  for_lanes(mask, [&](u32 lane, bool active) { store_words<u64>(d, lane, s[lane], active); });
}

/// A special-function unit only sees the upper word; its result starts a Newton iteration.
struct RcpHi {
  static u32 apply(u32 a) {
    const f64 value = flushed(std::bit_cast<f64>(u64{a} << 32));
    return static_cast<u32>(std::bit_cast<u64>(f64{1} / value) >> 32);
  }
};
struct RsqrtHi {
  static u32 apply(u32 a) {
    const f64 value = flushed(std::bit_cast<f64>(u64{a} << 32));
    const f64 root = f64{1} / std::sqrt(value);
    return static_cast<u32>(std::bit_cast<u64>(root == root ? root : not_a_number<f64>()) >> 32);
  }
};
constexpr f64 two_pi = 6.283185307179586476925286766559;
struct SinTurns {
  static f32 apply(f32 a) {
    const f64 turns = a;
    return std::isfinite(turns) ? static_cast<f32>(std::sin((turns - std::rint(turns)) * two_pi))
                                : not_a_number<f32>();
  }
};
struct CosTurns {
  static f32 apply(f32 a) {
    const f64 turns = a;
    return std::isfinite(turns) ? static_cast<f32>(std::cos((turns - std::rint(turns)) * two_pi))
                                : not_a_number<f32>();
  }
};

/// Whether an operand is not a normal number, or the quotient or the remainder of a Newton step
/// leaves the normal numbers. From where on exactly a GPU takes the slow path is not documented;
/// both paths give the same result.
struct DivisionCheck {
  static predicate apply(f32 a, f32 b) {
    const auto x = static_cast<s32>(std::bit_cast<u32>(a) >> 23 & 255);
    const auto y = static_cast<s32>(std::bit_cast<u32>(b) >> 23 & 255);
    const bool careful = x <= 24 || x == 255 || y == 0 || y >= 253 || x - y >= 126 || x - y <= -125;
    return {careful ? ~0u : 0u};
  }
};

template <class T, bool flush>
LaneFunction comparison_with_signs(Comparison comparison) {
  return of_comparison(comparison, []<Comparison c>() -> LaneFunction {
    using F = std::conditional_t<flush, CompareFlushed<c>, Compare<c>>;
    return &run_signs<F, predicate, T, T>;
  });
}

template <class F, class... T>
LaneFunction real_with_signs(const LaneForm& form) {
  using First = std::tuple_element_t<0, std::tuple<T...>>;
  // Of f64 the caller lets neither through.
  if constexpr (std::is_same_v<First, f32>) {
    if (form.flush) {
      return form.saturate ? &run_signs<Real<F, true, true>, First, T...>
                           : &run_signs<Real<F, true, false>, First, T...>;
    }
    if (form.saturate) return &run_signs<Real<F, false, true>, First, T...>;
  }
  return &run_signs<Real<F, false, false>, First, T...>;
}

LaneFunction function_with_signs(const LaneForm& form) {
  const bool is_f32 = form.type == Type::f32;
  if (!is_f32 && (form.type != Type::f64 || !form.words || form.flush || form.saturate)) {
    return nullptr;
  }
  const auto choose = [&]<class T>(T) -> LaneFunction {
    switch (form.operation) {
      case Operation::add:
        return real_with_signs<RealAdd, T, T>(form);
      case Operation::mul_lo:
        return real_with_signs<RealMul, T, T>(form);
      case Operation::fma:
        return real_with_signs<RealFma, T, T, T>(form);
      case Operation::min:
        return real_with_signs<RealExtreme<true, false, false>, T, T>(form);
      case Operation::max:
        return real_with_signs<RealExtreme<false, false, false>, T, T>(form);
      default:
        return nullptr;
    }
  };
  if (form.operation != Operation::setp) return is_f32 ? choose(f32{}) : choose(f64{});
  if (!is_f32) return comparison_with_signs<f64, false>(form.comparison);
  return form.flush ? comparison_with_signs<f32, true>(form.comparison)
                    : comparison_with_signs<f32, false>(form.comparison);
}

template <class F>
LaneFunction approximation(const LaneForm& form) {
  return form.flush ? costly<Real<F, true, false>, f32, f32>()
                    : costly<Real<F, false, false>, f32, f32>();
}

}  // namespace

LaneFunction word_function(const LaneForm& form) {
  if (form.signs) return function_with_signs(form);
  const bool is_signed_form = is_signed(form.type);
  switch (form.operation) {
    case Operation::add3:
      return &run_add3;
    case Operation::add3_carry:
      return form.high ? &run_add3_carry<true> : &run_add3_carry<false>;
    case Operation::mad_wide:
      return is_signed_form ? &run_words<MadWords<s32>, u64, s32, s32, u64>
                            : &run_words<MadWords<u32>, u64, u32, u32, u64>;
    case Operation::mad_wide_hi:
      return is_signed_form ? &run_words<MadWordsHi<s32>, u32, s32, s32, u64>
                            : &run_words<MadWordsHi<u32>, u32, u32, u32, u64>;
    case Operation::pack:
      return &run_pack;
    case Operation::unpack:
      return &run_unpack;
    case Operation::rcp_hi:
      return costly<RcpHi, u32, u32>();
    case Operation::rsqrt_hi:
      return costly<RsqrtHi, u32, u32>();
    case Operation::sin_turns:
      return approximation<SinTurns>(form);
    case Operation::cos_turns:
      return approximation<CosTurns>(form);
    case Operation::division_check:
      return cheap<DivisionCheck, predicate, f32, f32>();
    default:
      return nullptr;
  }
}

}  // namespace warpstack::simt::WARPSTACK_ISA
