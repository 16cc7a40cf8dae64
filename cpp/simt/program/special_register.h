#pragma once

#include <cstdint>

namespace warpstack::simt {

/// The special registers, with the names of PTX (PTX ISA, Section 10). Those of several dimensions
/// are read by component: `%tid.x` is {tid, 0}.
enum class Special : std::uint8_t {
  tid,
  ntid,
  ctaid,
  nctaid,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clock,
  clock_hi,
  clock64,
  globaltimer,
  globaltimer_lo,
  globaltimer_hi,
  dynamic_smem_size,
  total_smem_size,
  clusterid,
  nclusterid,
  cluster_ctaid,
  cluster_nctaid,
  cluster_ctarank,
  cluster_nctarank,
  is_explicit_cluster,
  // Only machine code reads these:
  cluster_inverse,     ///< of cluster_nctaid, in single precision
  shared_window_high,  ///< the upper word of generic addresses of shared memory
  envreg,
  pm,
};

}  // namespace warpstack::simt
