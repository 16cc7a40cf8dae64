#pragma once

#include "stand_ins/state/abi.h"

/// The types of CUDA's graphs and memory pools, in the layout of nvcc-built programs. Those of CUDA
/// 11.8, 12.9 and 13.0 agree except where noted.
namespace warpstack::cudart {

struct Graph;
struct Node;

/// cudaKernelNodeParams
struct KernelNodeParameters {
  const void* stub;
  Dim3 grid;
  Dim3 block;
  std::uint32_t dynamic_shared_bytes;
  void** arguments;
  void** extra;
};

/// cudaMemsetParams: elements of 1, 2 or 4 bytes, in rows.
struct FillParameters {
  void* target;
  std::size_t pitch;
  std::uint32_t value;
  std::uint32_t element_bytes;
  std::size_t width;  ///< elements of a row
  std::size_t height;
};

/// cudaHostNodeParams
struct HostParameters {
  void (*function)(void*);
  void* data;
};

/// cudaMemLocation
struct MemoryLocation {
  enum class Kind : int { none, device, host, host_numa, host_numa_current };
  Kind kind;
  int id;
};

/// cudaMemAccessDesc
struct AccessDescription {
  MemoryLocation location;
  int flags;  ///< 0: none, 1: read, 3: read and write
};

/// cudaMemPoolProps; in CUDA 11 all behind `security` is reserved.
struct MemoryPoolProperties {
  int allocation_kind;  ///< 1: pinned, 2: managed (CUDA 13)
  int handle_kinds;
  MemoryLocation location;
  void* security;
  std::size_t max_bytes;
  std::uint16_t usage;
  std::uint8_t reserved[54];
};

/// cudaMemAllocNodeParams
struct AllocationParameters {
  MemoryPoolProperties pool;
  const AccessDescription* access;
  std::size_t num_access;
  std::size_t bytes;
  void* pointer;  ///< result
};

/// cudaGraphNodeParams, of CUDA 12 and 13.
struct NodeParameters {
  int type;
  int reserved[3];
  union {
    long long padding[29];
    KernelNodeParameters kernel;
    struct {
      int flags;
      int reserved[3];
      Copy3D parameters;
    } copy;
    FillParameters fill;
    HostParameters host;
    struct {
      Graph* graph;
      int ownership;  ///< 0: the node gets a copy, 1: the graph becomes the node's
    } child;
    EventHandle event;
    AllocationParameters allocation;
    void* freed;
  };
  long long reserved_end;
};

/// cudaGraphEdgeData, of CUDA 12 and 13.
struct EdgeData {
  std::uint8_t from_port = 0;
  std::uint8_t to_port = 0;
  std::uint8_t type = 0;
  std::uint8_t reserved[5] = {};

  bool operator==(const EdgeData&) const = default;
};

/// cudaGraphInstantiateParams, of CUDA 12 and 13.
struct InstantiateParameters {
  unsigned long long flags;
  StreamHandle upload_stream;
  Node* error_node;
  int result;
};

/// cudaGraphExecUpdateResultInfo, of CUDA 12 and 13.
struct UpdateResult {
  int result;
  Node* error_node;
  Node* error_from;
};

static_assert(sizeof(KernelNodeParameters) == 56 && sizeof(FillParameters) == 40);
static_assert(sizeof(MemoryPoolProperties) == 88 && sizeof(AllocationParameters) == 120);
static_assert(sizeof(NodeParameters) == 256 && sizeof(EdgeData) == 8);
static_assert(sizeof(InstantiateParameters) == 32 && sizeof(UpdateResult) == 24);

}  // namespace warpstack::cudart
