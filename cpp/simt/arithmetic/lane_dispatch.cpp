#include "simt/arithmetic/matrix_descriptor.h"
#include "simt/arithmetic/tensor_product.h"
#include "simt/program/lane_form.h"
#include "simt/program/matrix.h"

// This folder is compiled for several instruction sets of the host; the functions of lane_form.h,
// matrix.h, matrix_descriptor.h and tensor_product.h here choose the copy for this host.

namespace warpstack::simt {

namespace baseline {
LaneFunction find_lane_function(const LaneForm& form);
void multiply_matrices(std::byte* registers, const MatrixMultiply& multiply);
void multiply_rows(std::byte* registers, const WarpgroupMultiply& multiply, bool accumulates,
                   std::span<const FactorRow> a, std::span<const FactorRow> b);
void add_products(float* sums, const float* a, const float* b, const trace::ProductStep& shape,
                  std::uint32_t first, std::uint32_t end, bool is_exact);
}  // namespace baseline

#if defined(WARPSTACK_HAS_AVX2_LANES)
namespace avx2 {
LaneFunction find_lane_function(const LaneForm& form);
void multiply_matrices(std::byte* registers, const MatrixMultiply& multiply);
void multiply_rows(std::byte* registers, const WarpgroupMultiply& multiply, bool accumulates,
                   std::span<const FactorRow> a, std::span<const FactorRow> b);
void add_products(float* sums, const float* a, const float* b, const trace::ProductStep& shape,
                  std::uint32_t first, std::uint32_t end, bool is_exact);
}  // namespace avx2

namespace {

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("bmi2");
  return has;
}

}  // namespace
#endif

LaneFunction find_lane_function(const LaneForm& form) {
#if defined(WARPSTACK_HAS_AVX2_LANES)
  if (has_avx2()) return avx2::find_lane_function(form);
#endif
  return baseline::find_lane_function(form);
}

void multiply_matrices(std::byte* registers, const MatrixMultiply& multiply) {
#if defined(WARPSTACK_HAS_AVX2_LANES)
  if (has_avx2()) {
    avx2::multiply_matrices(registers, multiply);
    return;
  }
#endif
  baseline::multiply_matrices(registers, multiply);
}

void multiply_rows(std::byte* registers, const WarpgroupMultiply& multiply, bool accumulates,
                   std::span<const FactorRow> a, std::span<const FactorRow> b) {
#if defined(WARPSTACK_HAS_AVX2_LANES)
  if (has_avx2()) {
    avx2::multiply_rows(registers, multiply, accumulates, a, b);
    return;
  }
#endif
  baseline::multiply_rows(registers, multiply, accumulates, a, b);
}

void add_products(float* sums, const float* a, const float* b, const trace::ProductStep& shape,
                  std::uint32_t first, std::uint32_t end, bool is_exact) {
#if defined(WARPSTACK_HAS_AVX2_LANES)
  if (has_avx2()) {
    avx2::add_products(sums, a, b, shape, first, end, is_exact);
    return;
  }
#endif
  baseline::add_products(sums, a, b, shape, first, end, is_exact);
}

}  // namespace warpstack::simt
