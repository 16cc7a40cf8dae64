#pragma once

#include <cstdint>

#include "common/enum_names.h"

namespace warpstack::gpu {

/// In which order a warp scheduler offers its warps the issue slots. The analytical models take
/// `oldest` and `gty` for `gto`.
enum class Scheduler : std::uint8_t {
  gto,     ///< the warp that issued last, then from the oldest on
  lrr,     ///< from the warp after the one that issued last on, in order of age
  oldest,  ///< from the oldest on
  gty,     ///< the warp that issued last, then from the youngest on
};
constexpr auto names_of(Scheduler) {
  return enum_names("scheduler", "gto", "lrr", "oldest", "gty");
}

}  // namespace warpstack::gpu
