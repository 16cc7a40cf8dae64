#include "ptx/lanes.h"

namespace warpstack::ptx {

LaneFunction find_lane_function_baseline(const LaneForm& form);
#if defined(WARPSTACK_HAS_AVX2_LANES)
LaneFunction find_lane_function_avx2(const LaneForm& form);
#endif

LaneFunction find_lane_function(const LaneForm& form) {
#if defined(WARPSTACK_HAS_AVX2_LANES)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                               __builtin_cpu_supports("bmi2");
  if (has_avx2) return find_lane_function_avx2(form);
#endif
  return find_lane_function_baseline(form);
}

}  // namespace warpstack::ptx
