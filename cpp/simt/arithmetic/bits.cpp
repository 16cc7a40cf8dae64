// Compiled once per instruction set of the host, see lanes/lane_functions.h.

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cstdint>

#include "simt/arithmetic/loops.h"

namespace warpstack::simt::WARPSTACK_ISA {
namespace {

struct Mov {
  template <class T>
  static T apply(T a) {
    return a;
  }
};
struct Popc {
  template <class T>
  static u32 apply(T a) {
    return static_cast<u32>(std::popcount(a));
  }
};
struct Clz {
  template <class T>
  static u32 apply(T a) {
    return static_cast<u32>(std::countl_zero(a));
  }
};
/// Position of the leading bit that differs from the sign, ~0 without one.
template <bool as_shift>
struct Bfind {
  template <class T>
  static u32 apply(T a) {
    auto bits = static_cast<Unsigned<T>>(a);
    if (a < 0) bits = static_cast<Unsigned<T>>(~bits);
    if (bits == 0) return ~0u;
    const int zeros = std::countl_zero(bits);
    return static_cast<u32>(as_shift ? zeros : width_of<T> - 1 - zeros);
  }
};
struct Brev {
  template <class T>
  static T apply(T a) {
    T result = 0;
    for (int i = 0; i < width_of<T>; ++i) result |= ((a >> i) & T{1}) << (width_of<T> - 1 - i);
    return result;
  }
};
struct Bfe {
  template <class T>
  static T apply(T a, u32 position, u32 length) {
    position &= 255;
    length &= 255;
    const u32 msb = width_of<T> - 1;
    const auto bits = static_cast<Unsigned<T>>(a);
    if (length == 0) return 0;
    const u32 last = std::min(position + length - 1, msb);
    Unsigned<T> fill = 0;
    if constexpr (std::is_signed_v<T>) fill = ((bits >> last) & 1u) != 0 ? ~Unsigned<T>{0} : 0;
    if (position > msb) return static_cast<T>(fill);
    Unsigned<T> result = bits >> position;
    if (length <= msb) {
      const Unsigned<T> field = (Unsigned<T>{1} << length) - 1;
      result = (result & field);
      // Bits beyond the operand's end repeat the sign, like bits beyond the field.
      const u32 present = std::min(length, msb + 1 - position);
      if (present <= msb) result |= fill & ~((Unsigned<T>{1} << present) - 1);
    } else if (position > 0) {
      result |= fill & ~((Unsigned<T>{1} << (msb + 1 - position)) - 1);
    }
    return static_cast<T>(result);
  }
};
struct Bfi {
  template <class T>
  static T apply(T a, T b, u32 position, u32 length) {
    position &= 255;
    length &= 255;
    if (position >= width_of<T> || length == 0) return b;
    const T field = length >= width_of<T> ? ~T{0} : static_cast<T>((T{1} << length) - 1);
    return static_cast<T>((b & ~(field << position)) | ((a & field) << position));
  }
};
template <bool clamp>
struct Bmsk {
  static u32 apply(u32 a, u32 b) {
    if (!clamp) {
      a &= 31;
      b &= 31;
    }
    if (a >= 32 || b == 0) return 0;
    const u32 field = b >= 32 ? ~0u : (1u << b) - 1;
    return field << a;
  }
};
template <bool clamp, class T>
struct Szext {
  static u32 apply(u32 a, u32 n) {
    if (!clamp) n &= 31;
    if (n >= 32) return a;
    if (n == 0) return 0;
    const u32 low = a & ((1u << n) - 1);
    const bool negative = std::is_signed_v<T> && ((a >> (n - 1)) & 1) != 0;
    return negative ? low | ~((1u << n) - 1) : low;
  }
};
struct Fns {
  static u32 apply(u32 mask, u32 base, s32 offset) {
    base &= 31;
    const auto is_set = [mask](s32 i) { return ((mask >> i) & 1) != 0; };
    if (offset == 0) return is_set(static_cast<s32>(base)) ? base : ~0u;
    s32 left = offset > 0 ? offset : offset == INT32_MIN ? INT32_MAX : -offset;
    for (s32 i = static_cast<s32>(base); i >= 0 && i < 32; i += offset > 0 ? 1 : -1) {
      if (is_set(i) && --left == 0) return static_cast<u32>(i);
    }
    return ~0u;
  }
};
struct And {
  template <class T>
  static T apply(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static T apply(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static T apply(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <class T>
  static T apply(T a) {
    return a == 0 ? 1 : 0;
  }
};
/// The table's rows are selected outside the loop, so that the loop can be vectorized.
void run_lop3(std::byte* registers, const LaneOperands& operands, const LaneMask& mask) {
  u32 rows[8];
  for (u32 row = 0; row < 8; ++row) rows[row] = ((operands.immediate >> row) & 1) != 0 ? ~0u : 0u;
  auto* const d = reinterpret_cast<u32*>(registers + operands.target);
  const auto* const a = reinterpret_cast<const u32*>(registers + operands.source[0]);
  const auto* const b = reinterpret_cast<const u32*>(registers + operands.source[1]);
  const auto* const c = reinterpret_cast<const u32*>(registers + operands.source[2]);
  const auto value = [&](u32 lane) {
    const u32 z = c[lane];
    const auto pick = [z](u32 with, u32 without) { return (with & z) | (without & ~z); };
    const u32 y = b[lane];
    const u32 a1 = (pick(rows[7], rows[6]) & y) | (pick(rows[5], rows[4]) & ~y);
    const u32 a0 = (pick(rows[3], rows[2]) & y) | (pick(rows[1], rows[0]) & ~y);
    return (a1 & a[lane]) | (a0 & ~a[lane]);
  };
  for_lanes(mask, [&](u32 lane, bool active) { d[lane] = active ? value(lane) : d[lane]; });
}
struct Shl {
  template <class T>
  static T apply(T a, u32 b) {
    return b >= static_cast<u32>(width_of<T>) ? T{0} : static_cast<T>(a << (b & (width_of<T> - 1)));
  }
};
struct Shr {
  template <class T>
  static T apply(T a, u32 b) {
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(a >> std::min(b, static_cast<u32>(width_of<T> - 1)));
    } else {
      return b >= static_cast<u32>(width_of<T>) ? T{0}
                                                : static_cast<T>(a >> (b & (width_of<T> - 1)));
    }
  }
};
template <bool left, bool clamp>
struct Shf {
  static u32 apply(u32 a, u32 b, u32 c) {
    const u32 n = clamp ? std::min(c, 32u) : c & 31;
    const u64 both = (u64{b} << 32) | a;
    return static_cast<u32>(left ? (both << n) >> 32 : both >> n);
  }
};
template <Permute mode>
struct Prmt {
  static u32 apply(u32 a, u32 b, u32 c) {
    const u64 both = (u64{b} << 32) | a;
    u32 result = 0;
    for (u32 i = 0; i < 4; ++i) {
      u32 selector = 0;
      const u32 n = c & 3;
      switch (mode) {
        case Permute::index:
          selector = (c >> (4 * i)) & 15;
          break;
        case Permute::f4e:
          selector = n + i;
          break;
        case Permute::b4e:
          selector = (n - i) & 7;
          break;
        case Permute::rc8:
          selector = n;
          break;
        case Permute::ecl:
          selector = std::max(i, n);
          break;
        case Permute::ecr:
          selector = std::min(i, n);
          break;
        case Permute::rc16:
          selector = (n & 1) * 2 + (i & 1);
          break;
      }
      u32 byte = static_cast<u32>(both >> (8 * (selector & 7))) & 255;
      if ((selector & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
      result |= byte << (8 * i);
    }
    return result;
  }
};
struct Selp {
  template <class T>
  static T apply(T a, T b, predicate c) {
    return c.bits != 0 ? a : b;
  }
};
/// Float values are selected as integers, too: only their bits are moved.
template <class C>
struct Slct {
  template <class T>
  static T apply(T a, T b, C c) {
    return c >= C{0} ? a : b;  // NaN selects b
  }
};
/// .ftz: a negative subnormal selector counts as zero.
struct SlctFlushed {
  template <class T>
  static T apply(T a, T b, f32 c) {
    return c > -FLT_MIN ? a : b;
  }
};

LaneFunction prmt(const LaneForm& form) {
  switch (static_cast<Permute>(form.mode)) {
#define WARPSTACK_CASE(name) \
  case Permute::name:        \
    return cheap<Prmt<Permute::name>, u32, u32, u32, u32>();
    WARPSTACK_CASE(index)
    WARPSTACK_CASE(f4e)
    WARPSTACK_CASE(b4e)
    WARPSTACK_CASE(rc8)
    WARPSTACK_CASE(ecl)
    WARPSTACK_CASE(ecr)
    WARPSTACK_CASE(rc16)
#undef WARPSTACK_CASE
  }
  return nullptr;
}

template <class F>
LaneFunction bitwise(Type type) {
  return for_bits(type, []<class T>(T) -> LaneFunction { return cheap<F, T, T, T>(); });
}

}  // namespace

LaneFunction bit_function(const LaneForm& form) {
  switch (form.operation) {
    case Operation::mov:
      return for_bits(form.type, []<class T>(T) -> LaneFunction { return cheap<Mov, T, T>(); });
    case Operation::bit_and:
      return bitwise<And>(form.type);
    case Operation::bit_or:
      return bitwise<Or>(form.type);
    case Operation::bit_xor:
      return bitwise<Xor>(form.type);
    case Operation::bit_not:
      return for_bits(form.type, []<class T>(T) -> LaneFunction { return cheap<Not, T, T>(); });
    case Operation::cnot:
      return for_bits(form.type, []<class T>(T) -> LaneFunction { return cheap<Cnot, T, T>(); });
    case Operation::lop3:
      return &run_lop3;
    case Operation::shl:
      return for_bits(form.type,
                      []<class T>(T) -> LaneFunction { return cheap<Shl, T, T, u32>(); });
    case Operation::shr:
      return for_arithmetic(form.type,
                            []<class T>(T) -> LaneFunction { return cheap<Shr, T, T, u32>(); });
    case Operation::shf_l:
      return form.clamp ? cheap<Shf<true, true>, u32, u32, u32, u32>()
                        : cheap<Shf<true, false>, u32, u32, u32, u32>();
    case Operation::shf_r:
      return form.clamp ? cheap<Shf<false, true>, u32, u32, u32, u32>()
                        : cheap<Shf<false, false>, u32, u32, u32, u32>();
    case Operation::popc:
      return bytes_of(form.type) == 8 ? cheap<Popc, u32, u64>() : cheap<Popc, u32, u32>();
    case Operation::clz:
      return bytes_of(form.type) == 8 ? cheap<Clz, u32, u64>() : cheap<Clz, u32, u32>();
    case Operation::bfind:
      return for_32_or_64(form.type, [&]<class T>(T) -> LaneFunction {
        return form.high ? costly<Bfind<true>, u32, T>() : costly<Bfind<false>, u32, T>();
      });
    case Operation::fns:
      return costly<Fns, u32, u32, u32, s32>();
    case Operation::brev:
      return bytes_of(form.type) == 8 ? cheap<Brev, u64, u64>() : cheap<Brev, u32, u32>();
    case Operation::bfe:
      return for_32_or_64(form.type,
                          []<class T>(T) -> LaneFunction { return costly<Bfe, T, T, u32, u32>(); });
    case Operation::bfi:
      return bytes_of(form.type) == 8 ? costly<Bfi, u64, u64, u64, u32, u32>()
                                      : costly<Bfi, u32, u32, u32, u32, u32>();
    case Operation::bmsk:
      return form.clamp ? costly<Bmsk<true>, u32, u32, u32>()
                        : costly<Bmsk<false>, u32, u32, u32>();
    case Operation::szext:
      if (is_signed(form.type)) {
        return form.clamp ? costly<Szext<true, s32>, u32, u32, u32>()
                          : costly<Szext<false, s32>, u32, u32, u32>();
      }
      return form.clamp ? costly<Szext<true, u32>, u32, u32, u32>()
                        : costly<Szext<false, u32>, u32, u32, u32>();
    case Operation::prmt:
      return prmt(form);
    case Operation::selp:
      return for_bits(form.type,
                      []<class T>(T) -> LaneFunction { return cheap<Selp, T, T, T, predicate>(); });
    case Operation::slct:
      return for_bits(form.type, [&]<class T>(T) -> LaneFunction {
        if (form.flush) return costly<SlctFlushed, T, T, T, f32>();
        return form.source == Type::f32 ? costly<Slct<f32>, T, T, T, f32>()
                                        : costly<Slct<s32>, T, T, T, s32>();
      });
    default:
      return nullptr;
  }
}

}  // namespace warpstack::simt::WARPSTACK_ISA
