#include "simt/lanes.h"
#include "simt/matrix.h"

namespace warpstack::simt {

LaneFunction find_lane_function_baseline(const LaneForm& form);
void multiply_matrices_baseline(std::byte* registers, const MatrixMultiply& multiply);

#if defined(WARPSTACK_HAS_AVX2_LANES)
LaneFunction find_lane_function_avx2(const LaneForm& form);
void multiply_matrices_avx2(std::byte* registers, const MatrixMultiply& multiply);

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
  if (has_avx2()) return find_lane_function_avx2(form);
#endif
  return find_lane_function_baseline(form);
}

void multiply_matrices(std::byte* registers, const MatrixMultiply& multiply) {
#if defined(WARPSTACK_HAS_AVX2_LANES)
  if (has_avx2()) {
    multiply_matrices_avx2(registers, multiply);
    return;
  }
#endif
  multiply_matrices_baseline(registers, multiply);
}

}  // namespace warpstack::simt
