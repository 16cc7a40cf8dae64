#pragma once

#include "stand_ins/state/runtime.h"

namespace warpstack::cudart {

/// The attributes of a launch (cudaLaunchAttribute or CUlaunchAttribute, which are the same). Other
/// attributes are hints, which change nothing here.
struct LaunchAttributes {
  bool cooperative = false;
  bool programmatic = false;  ///< it may overlap with the kernel before it in its stream
  EventHandle event = 0;      ///< recorded behind it; 0: none
  Dim3 cluster{0, 0, 0};      ///< zeros: what the kernel asks for
};
LaunchAttributes launch_attributes(Runtime& runtime, const void* attributes, unsigned count);
/// The value of the attribute for clusters. Throws Failure when a dimension is 0.
Dim3 cluster_dimension(const void* value);

/// The result of cudaFuncGetAttributes for a kernel.
FunctionAttributes attributes_of(Runtime& runtime, KernelEntry& kernel);
ClusterAttributes cluster_attributes_of(Runtime& runtime, KernelEntry& kernel);

/// Clusters of a launch that the GPU holds at once, if any SMs may share a cluster. On a GPU they
/// must be in one GPC, which may leave room for fewer. Throws Failure for an impossible launch.
int active_clusters(Runtime& runtime, KernelEntry& kernel, const Runtime::Call& call);
/// The most blocks that a cluster of the kernel may have.
int largest_cluster(const KernelEntry& kernel);

}  // namespace warpstack::cudart
