// Compiled once per instruction set of the host, see lanes/lane_functions.h.

#include <cstdint>

#include "simt/arithmetic/loops.h"

namespace warpstack::simt::WARPSTACK_ISA {
namespace {

struct Add {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  }
};
struct Sub {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  }
};
/// Signed 32-bit addition that stays within the type (.sat).
template <int sign>
struct AddSat {
  static s32 apply(s32 a, s32 b) {
    const s64 sum = s64{a} + sign * s64{b};
    return static_cast<s32>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
  }
};
struct MulLo {
  template <class T>
  static T apply(T a, T b) {
    // 16-bit factors would be promoted to int, whose product can overflow.
    using U = std::conditional_t<sizeof(T) == 8, u64, u32>;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  }
};
struct MulHi {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>((Wide<T>{a} * Wide<T>{b}) >> width_of<T>);
  }
};
struct MulWide {
  template <class T>
  static Wide<T> apply(T a, T b) {
    return Wide<T>{a} * Wide<T>{b};
  }
};
struct MadLo {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(MulLo::apply(a, b), c);
  }
};
struct MadHi {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(MulHi::apply(a, b), c);
  }
};
struct MadHiSat {
  static s32 apply(s32 a, s32 b, s32 c) { return AddSat<1>::apply(MulHi::apply(a, b), c); }
};
struct MadWide {
  template <class T>
  static Wide<T> apply(T a, T b, Wide<T> c) {
    using U = Unsigned<Wide<T>>;
    return static_cast<Wide<T>>(static_cast<U>(MulWide::apply(a, b)) + static_cast<U>(c));
  }
};
/// The low 24 bits of a value, with its sign.
template <class T>
inline s64 low_24(T a) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<s32>(static_cast<u32>(a) << 8) >> 8;
  } else {
    return a & 0xffffffu;
  }
}
template <bool high>
struct Mul24 {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>((low_24(a) * low_24(b)) >> (high ? 16 : 0));
  }
};
template <bool high>
struct Mad24 {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(Mul24<high>::apply(a, b), c);
  }
};
struct Sad {
  template <class T>
  static T apply(T a, T b, T c) {
    const auto x = static_cast<Unsigned<T>>(a);
    const auto y = static_cast<Unsigned<T>>(b);
    return static_cast<T>(static_cast<Unsigned<T>>(c) +
                          static_cast<Unsigned<T>>(a < b ? y - x : x - y));
  }
};
struct Div {
  template <class T>
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(-1);  // as the hardware's sequence gives
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a));
    }
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  static T apply(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Abs {
  template <class T>
  static T apply(T a) {
    return a < 0 ? static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a)) : a;
  }
};
struct Neg {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a));
  }
};
struct Min {
  template <class T>
  static T apply(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? b : a;
  }
};
/// .relu: not below zero.
template <class F>
struct Relu {
  template <class T>
  static T apply(T a, T b) {
    return Max::apply(F::apply(a, b), T{0});
  }
};
template <class A, class B>
struct Dp4a {
  static u32 apply(u32 a, u32 b, u32 c) {
    for (int i = 0; i < 4; ++i) {
      c += static_cast<u32>(s32{static_cast<A>(a >> (8 * i))} * s32{static_cast<B>(b >> (8 * i))});
    }
    return c;
  }
};
template <class A, class B, bool high>
struct Dp2a {
  static u32 apply(u32 a, u32 b, u32 c) {
    using A16 = std::conditional_t<std::is_signed_v<A>, s16, u16>;
    for (int i = 0; i < 2; ++i) {
      c += static_cast<u32>(s32{static_cast<A16>(a >> (16 * i))} *
                            s32{static_cast<B>(b >> (8 * i + (high ? 16 : 0)))});
    }
    return c;
  }
};
/// a + b + c with its carry, or with the complement of b.
template <class T, bool complement>
void run_addc(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  auto* const d = reinterpret_cast<T*>(registers + operands.target);
  auto* const carry = reinterpret_cast<u32*>(registers + operands.target2);
  const auto* const a = reinterpret_cast<const T*>(registers + operands.source[0]);
  const auto* const b = reinterpret_cast<const T*>(registers + operands.source[1]);
  const auto* const c = reinterpret_cast<const u32*>(registers + operands.source[2]);
  for (u32 rest = mask.bits; rest != 0; rest &= rest - 1) {
    const int i = std::countr_zero(rest);
    const T second = complement ? static_cast<T>(~b[i]) : b[i];
    const auto sum = static_cast<unsigned __int128>(a[i]) + second + c[i];
    d[i] = static_cast<T>(sum);
    carry[i] = static_cast<u32>(sum >> width_of<T>);
  }
}

template <class A>
LaneFunction dot_product(const LaneForm& form) {
  const auto choose = [&]<class B>(B) -> LaneFunction {
    if (form.operation == Operation::dp4a) {
      return cheap<Dp4a<A, B>, u32, u32, u32, u32>();
    }
    return form.high ? cheap<Dp2a<A, B, true>, u32, u32, u32, u32>()
                     : cheap<Dp2a<A, B, false>, u32, u32, u32, u32>();
  };
  return is_signed(form.source) ? choose(s8{}) : choose(u8{});
}

/// mul, mad
LaneFunction multiplication(const LaneForm& form) {
  switch (form.operation) {
    case Operation::mul_lo:
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return cheap<MulLo, T, T, T>(); });
    case Operation::mul_hi:
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return cheap<MulHi, T, T, T>(); });
    case Operation::mul_wide:
      return for_arithmetic(form.type, []<class T>(T) -> LaneFunction {
        if constexpr (sizeof(T) == 8) {
          return nullptr;
        } else {
          return cheap<MulWide, Wide<T>, T, T>();
        }
      });
    case Operation::mad_lo:
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return cheap<MadLo, T, T, T, T>(); });
    case Operation::mad_hi:
      if (form.saturate) return cheap<MadHiSat, s32, s32, s32, s32>();
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return cheap<MadHi, T, T, T, T>(); });
    case Operation::mad_wide:
      return for_arithmetic(form.type, []<class T>(T) -> LaneFunction {
        if constexpr (sizeof(T) == 8) {
          return nullptr;
        } else {
          return cheap<MadWide, Wide<T>, T, T, Wide<T>>();
        }
      });
    case Operation::mul24:
      if (is_signed(form.type)) {
        return form.high ? cheap<Mul24<true>, s32, s32, s32>()
                         : cheap<Mul24<false>, s32, s32, s32>();
      }
      return form.high ? cheap<Mul24<true>, u32, u32, u32>() : cheap<Mul24<false>, u32, u32, u32>();
    case Operation::mad24:
      if (is_signed(form.type)) {
        return form.high ? cheap<Mad24<true>, s32, s32, s32, s32>()
                         : cheap<Mad24<false>, s32, s32, s32, s32>();
      }
      return form.high ? cheap<Mad24<true>, u32, u32, u32, u32>()
                       : cheap<Mad24<false>, u32, u32, u32, u32>();
    default:
      return nullptr;
  }
}

}  // namespace

LaneFunction integer_function(const LaneForm& form) {
  switch (form.operation) {
    case Operation::add:
      if (form.saturate) {
        return form.type == Type::s32 ? cheap<AddSat<1>, s32, s32, s32>() : nullptr;
      }
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return cheap<Add, T, T, T>(); });
    case Operation::sub:
      if (form.saturate) {
        return form.type == Type::s32 ? cheap<AddSat<-1>, s32, s32, s32>() : nullptr;
      }
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return cheap<Sub, T, T, T>(); });
    case Operation::addc:
      return bytes_of(form.type) == 8 ? &run_addc<u64, false> : &run_addc<u32, false>;
    case Operation::subc:
      return bytes_of(form.type) == 8 ? &run_addc<u64, true> : &run_addc<u32, true>;
    case Operation::sad:
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return cheap<Sad, T, T, T, T>(); });
    case Operation::div:
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return costly<Div, T, T, T>(); });
    case Operation::rem:
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return costly<Rem, T, T, T>(); });
    case Operation::abs:
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return cheap<Abs, T, T>(); });
    case Operation::neg:
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return cheap<Neg, T, T>(); });
    case Operation::min:
      return for_arithmetic(form.type, [&]<class T>(T) -> LaneFunction {
        return form.relu ? cheap<Relu<Min>, T, T, T>() : cheap<Min, T, T, T>();
      });
    case Operation::max:
      return for_arithmetic(form.type, [&]<class T>(T) -> LaneFunction {
        return form.relu ? cheap<Relu<Max>, T, T, T>() : cheap<Max, T, T, T>();
      });
    case Operation::dp2a:
    case Operation::dp4a:
      return is_signed(form.type) ? dot_product<s8>(form) : dot_product<u8>(form);
    default:
      return multiplication(form);
  }
}

}  // namespace warpstack::simt::WARPSTACK_ISA
