#include "stand_ins/cusparse/values.h"

#include <algorithm>
#include <limits>
#include <string>

#include "stand_ins/cusparse/context.h"

namespace warpstack::cusparse {
namespace {

using library::Precision;

Precision precision_of(int type) {
  switch (type) {
    case data_f16:
    case data_c16:
      return Precision::f16;
    case data_bf16:
    case data_cbf16:
      return Precision::bf16;
    case data_f32:
    case data_c32:
      return Precision::f32;
    default:
      return Precision::f64;
  }
}

/// Of the whole numbers of a type T, the nearest.
template <typename T>
T whole(double value) {
  using Limits = std::numeric_limits<T>;
  return static_cast<T>(std::clamp(std::nearbyint(value), static_cast<double>(Limits::min()),
                                   static_cast<double>(Limits::max())));
}

}  // namespace

bool is_complex(int type) {
  return type == data_c16 || type == data_cbf16 || type == data_c32 || type == data_c64;
}

bool is_integer(int type) { return type == data_i8 || type == data_i32; }

std::size_t bytes_of_type(int type, const char* name) {
  switch (type) {
    case data_i8:
      return 1;
    case data_i32:
      return 4;
    case data_f16:
    case data_bf16:
    case data_f32:
    case data_f64:
      return bytes_of(precision_of(type));
    case data_c16:
    case data_cbf16:
    case data_c32:
    case data_c64:
      return 2 * bytes_of(precision_of(type));
    default:
      throw Failure(Status::not_supported,
                    std::string(name) + " = " + std::to_string(type) +
                        " is not a type of values that warpstack's stand-in for cuSPARSE has",
                    true);
  }
}

Complex load_value(int type, const std::byte* numbers, std::int64_t index) {
  if (type == data_i8) return library::element<std::int8_t>(numbers, index);
  if (type == data_i32) return library::element<std::int32_t>(numbers, index);
  const Precision precision = precision_of(type);
  if (!is_complex(type)) return load(precision, numbers, index);
  return {load(precision, numbers, 2 * index), load(precision, numbers, 2 * index + 1)};
}

void store_value(int type, std::byte* numbers, std::int64_t index, Complex value) {
  if (type == data_i8) return library::put(numbers, index, whole<std::int8_t>(value.real()));
  if (type == data_i32) return library::put(numbers, index, whole<std::int32_t>(value.real()));
  const Precision precision = precision_of(type);
  if (!is_complex(type)) return store(precision, numbers, index, value.real());
  store(precision, numbers, 2 * index, value.real());
  store(precision, numbers, 2 * index + 1, value.imag());
}

}  // namespace warpstack::cusparse
