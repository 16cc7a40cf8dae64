#include "simt/arithmetic/atomics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "simt/arithmetic/half_bits.h"

namespace warpstack::simt {
namespace {

using u64 = std::uint64_t;

template <class T>
T from_bits(u64 bits) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

template <class T>
u64 to_bits(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return value == value ? std::bit_cast<std::uint32_t>(value) : 0x7fffffffu;
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<u64>(value);
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}

template <class T>
u64 add(u64 old, u64 b, u64) {
  if constexpr (std::is_integral_v<T>) {
    return to_bits(static_cast<std::make_unsigned_t<T>>(old + b));
  } else {
    return to_bits<T>(from_bits<T>(old) + from_bits<T>(b));
  }
}
template <class T>
u64 minimum(u64 old, u64 b, u64) {
  return to_bits<T>(std::min(from_bits<T>(old), from_bits<T>(b)));
}
template <class T>
u64 maximum(u64 old, u64 b, u64) {
  return to_bits<T>(std::max(from_bits<T>(old), from_bits<T>(b)));
}

/// Subnormal operands and results count as zero of the same sign.
float without_subnormal(float value) {
  return std::fabs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
}
u64 add_flushed(u64 old, u64 b, u64) {
  return to_bits(without_subnormal(without_subnormal(from_bits<float>(old)) +
                                   without_subnormal(from_bits<float>(b))));
}

std::uint16_t half_add(std::uint16_t a, std::uint16_t b) {
  return double_to_half(half_to_double(a) + half_to_double(b));
}
std::uint16_t bfloat_add(std::uint16_t a, std::uint16_t b) {
  return double_to_bfloat(fma_to_odd(bfloat_to_double(a), 1, bfloat_to_double(b)));
}
/// The least or the greatest, where -0 is below +0 and a NaN gives way to a number.
template <double (*number)(std::uint16_t), bool is_least>
std::uint16_t extreme(std::uint16_t a, std::uint16_t b) {
  const double x = number(a);
  const double y = number(b);
  if (x != x) return y != y ? 0x7fff : b;
  if (y != y) return a;
  if (x == y) return static_cast<std::uint16_t>(is_least ? a | b : a & b);
  return (x < y) == is_least ? a : b;
}
template <bool is_least, bool keeps_nan>
u64 float_extreme(u64 old, u64 b, u64) {
  const auto x = from_bits<float>(old);
  const auto y = from_bits<float>(b);
  if (x != x) return keeps_nan ? to_bits(x) : to_bits(y);
  if (y != y) return keeps_nan ? to_bits(y) : old;
  if (x == y) return is_least ? old | b : old & b;
  return (x < y) == is_least ? old : b;
}
template <std::uint16_t (*f)(std::uint16_t, std::uint16_t)>
u64 both_halves(u64 old, u64 b, u64) {
  const auto low = f(static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(b));
  const auto high = f(static_cast<std::uint16_t>(old >> 16), static_cast<std::uint16_t>(b >> 16));
  return low | (u64{high} << 16);
}
template <std::uint16_t (*f)(std::uint16_t, std::uint16_t)>
u64 one_half(u64 old, u64 b, u64) {
  return f(static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(b));
}

u64 exchange(u64, u64 b, u64) { return b; }
u64 compare_and_swap(u64 old, u64 b, u64 c) { return old == b ? c : old; }
u64 bit_and(u64 old, u64 b, u64) { return old & b; }
u64 bit_or(u64 old, u64 b, u64) { return old | b; }
u64 bit_xor(u64 old, u64 b, u64) { return old ^ b; }
u64 increment(u64 old, u64 b, u64) { return old >= b ? 0 : old + 1; }
u64 decrement(u64 old, u64 b, u64) { return old == 0 || old > b ? b : old - 1; }

template <bool is_least>
AtomicFunction extreme_of_halves(Type type) {
  switch (type) {
    case Type::f16:
      return &one_half<extreme<half_to_double, is_least>>;
    case Type::bf16:
      return &one_half<extreme<bfloat_to_double, is_least>>;
    case Type::f16x2:
      return &both_halves<extreme<half_to_double, is_least>>;
    case Type::bf16x2:
      return &both_halves<extreme<bfloat_to_double, is_least>>;
    default:
      return nullptr;
  }
}

template <class F>
AtomicFunction for_integer(Type type, F f) {
  switch (type) {
    case Type::u32:
      return f(std::uint32_t{});
    case Type::s32:
      return f(std::int32_t{});
    case Type::u64:
      return f(std::uint64_t{});
    case Type::s64:
      return f(std::int64_t{});
    default:
      return nullptr;
  }
}

}  // namespace

AtomicFunction find_atomic(std::string_view operation, Type type, bool flush) {
  const std::uint32_t bytes = bytes_of(type);
  const bool wide_enough = bytes == 4 || bytes == 8;
  if (operation == "add") {
    switch (type) {
      case Type::f32:
        return flush ? &add_flushed : &add<float>;
      case Type::f64:
        return &add<double>;
      case Type::f16:
        return &one_half<half_add>;
      case Type::bf16:
        return &one_half<bfloat_add>;
      case Type::f16x2:
        return &both_halves<half_add>;
      case Type::bf16x2:
        return &both_halves<bfloat_add>;
      default:
        return for_integer(type, []<class T>(T) -> AtomicFunction { return &add<T>; });
    }
  }
  if (operation == "min" || operation == "max") {
    const bool is_least = operation == "min";
    if (const AtomicFunction function =
            is_least ? extreme_of_halves<true>(type) : extreme_of_halves<false>(type)) {
      return function;
    }
  }
  if (operation == "min") {
    return for_integer(type, []<class T>(T) -> AtomicFunction { return &minimum<T>; });
  }
  if (operation == "max") {
    return for_integer(type, []<class T>(T) -> AtomicFunction { return &maximum<T>; });
  }
  if (operation == "inc") return type == Type::u32 ? &increment : nullptr;
  if (operation == "dec") return type == Type::u32 ? &decrement : nullptr;
  if (is_float(type)) return nullptr;
  if (operation == "exch") return wide_enough ? &exchange : nullptr;
  if (operation == "cas") return wide_enough || bytes == 2 ? &compare_and_swap : nullptr;
  if (operation == "and") return wide_enough ? &bit_and : nullptr;
  if (operation == "or") return wide_enough ? &bit_or : nullptr;
  if (operation == "xor") return wide_enough ? &bit_xor : nullptr;
  return nullptr;
}

AtomicFunction find_float_extreme(bool is_least, bool keeps_nan) {
  if (keeps_nan) return is_least ? &float_extreme<true, true> : &float_extreme<false, true>;
  return is_least ? &float_extreme<true, false> : &float_extreme<false, false>;
}

std::array<AtomicFunction, num_tensor_elements> tensor_reductions(std::string_view operation) {
  constexpr std::array<Type, num_tensor_elements> types = {
      Type::u8,  Type::u16, Type::u32, Type::s32,  Type::u64, Type::s64, Type::f16,
      Type::f32, Type::f32, Type::f64, Type::bf16, Type::f32, Type::f32};
  std::array<AtomicFunction, num_tensor_elements> functions{};
  std::ranges::transform(types, functions.begin(),
                         [operation](Type type) { return find_atomic(operation, type, true); });
  return functions;
}

}  // namespace warpstack::simt
