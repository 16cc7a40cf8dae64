#pragma once

#include <cstddef>
#include <cstdint>

/// Marks the functions that programs call.
#define CUDART_EXPORT extern "C" __attribute__((visibility("default")))

/// The types of CUDA's runtime interface that the stand-in reads or writes, in the binary layout of
/// nvcc-built programs. CUDA's headers are not needed to build warpstack. The layouts of CUDA 11.8,
/// 12.9 and 13.0 agree except where noted.
namespace warpstack::cudart {

/// cudaError_t: values are those of CUDA 10.1 and later.
enum class Error : int {
  success = 0,
  invalid_value = 1,
  memory_allocation = 2,
  invalid_configuration = 9,
  invalid_symbol = 13,
  invalid_texture = 18,
  invalid_channel_descriptor = 20,
  invalid_device = 101,
  invalid_device_function = 98,
  missing_configuration = 52,
  launch_max_depth_exceeded = 65,
  launch_pending_count_exceeded = 69,
  no_kernel_image_for_device = 209,
  unsupported_limit = 215,
  invalid_ptx = 218,
  invalid_resource_handle = 400,
  illegal_state = 401,
  lossy_query = 402,
  symbol_not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  launch_out_of_resources = 701,
  launch_timeout = 702,
  assertion = 710,
  host_memory_already_registered = 712,
  host_memory_not_registered = 713,
  hardware_stack_error = 714,
  illegal_instruction = 715,
  misaligned_address = 716,
  launch_failure = 719,
  cooperative_launch_too_large = 720,
  not_supported = 801,
  capture_unsupported = 900,
  capture_invalidated = 901,
  capture_merge = 902,
  capture_unmatched = 903,
  capture_unjoined = 904,
  capture_isolation = 905,
  capture_implicit = 906,
  captured_event = 907,
  capture_wrong_thread = 908,
  graph_update_failure = 910,
  invalid_cluster_size = 912,
};

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

/// cudaStream_t and cudaEvent_t are pointers that programs never look into. 0, 1 and 2 are the
/// default streams.
using StreamHandle = std::uintptr_t;
using EventHandle = std::uintptr_t;

enum class MemcpyKind : int { host_to_host, host_to_device, device_to_host, device_to_device, any };

enum class ChannelKind : int { sint, uint, floating, none };

/// cudaChannelFormatDesc: bits of each channel.
struct ChannelFormat {
  int x, y, z, w;
  ChannelKind kind;
};

struct Extent {
  std::size_t width = 0, height = 0, depth = 0;
};

struct Position {
  std::size_t x = 0, y = 0, z = 0;
};

/// cudaPitchedPtr
struct PitchedPointer {
  void* pointer = nullptr;
  std::size_t pitch = 0, width = 0, height = 0;
};

struct Array;

/// cudaMemcpy3DParms
struct Copy3D {
  Array* source_array;
  Position source_position;
  PitchedPointer source;
  Array* target_array;
  Position target_position;
  PitchedPointer target;
  Extent extent;
  MemcpyKind kind;
};

/// cudaResourceDesc
struct ResourceDescription {
  enum class Kind : int { array, mipmapped_array, linear, pitch_2d };
  Kind kind;
  union {
    Array* array;
    struct {
      void* pointer;
      ChannelFormat format;
      std::size_t bytes;
    } linear;
    struct {
      void* pointer;
      ChannelFormat format;
      std::size_t width, height, pitch;
    } pitch_2d;
  };
};

/// cudaTextureDesc, up to the last field that is read.
struct TextureDescription {
  int address_mode[3];
  int filter_mode;  ///< 0: nearest, 1: linear
  int read_mode;    ///< 0: as they are, 1: integers as normalised floats
  int srgb;
  float border_color[4];
  int normalized_coordinates;
};

/// textureReference of CUDA 11 and earlier, up to the last field that is read.
struct TextureReference {
  int normalized_coordinates;
  int filter_mode;
  int address_mode[3];
  ChannelFormat format;
};

/// cudaPointerAttributes; CUDA 13 adds reserved words.
struct PointerAttributes {
  enum class Kind : int { unregistered, host, device, managed };
  Kind kind;
  int device;
  void* device_pointer;
  void* host_pointer;
};

/// cudaFuncAttributes; CUDA 11.8 ends after the first seven numbers.
struct FunctionAttributes {
  std::size_t shared_bytes;
  std::size_t constant_bytes;
  std::size_t local_bytes;
  int max_threads_per_block;
  int registers;
  int ptx_version;
  int binary_version;
  int cache_mode;
  int max_dynamic_shared_bytes;
  int preferred_shared_carveout;
};

/// Fields that follow them since CUDA 12.
struct ClusterAttributes {
  int must_be_set;
  int width, height, depth;  ///< blocks that the kernel asks for; 0: it does not
  int scheduling_policy;
  int allows_large;  ///< clusters of more than 8 blocks
  int reserved[16];
};

/// cudaLaunchConfig_t
struct LaunchConfiguration {
  Dim3 grid;
  Dim3 block;
  std::size_t dynamic_shared_bytes;
  StreamHandle stream;
  const void* attributes;
  unsigned num_attributes;
};

/// What __cudaRegisterFatBinary receives.
struct FatBinaryWrapper {
  int magic;
  int version;
  const std::byte* container;
  const void* file_or_prelinked;
};

/// cudaDeviceProp of CUDA 12; CUDA 11 ends before host_register_supported.
struct DeviceProperties12 {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_device_node_mask;
  std::size_t total_global_memory;
  std::size_t shared_memory_per_block;
  int registers_per_block;
  int warp_size;
  std::size_t memory_pitch;
  int max_threads_per_block;
  int max_threads_dim[3];
  int max_grid_size[3];
  int clock_khz;
  std::size_t total_constant_memory;
  int major;
  int minor;
  std::size_t texture_alignment;
  std::size_t texture_pitch_alignment;
  int device_overlap;
  int num_sms;
  int kernel_timeout;
  int integrated;
  int can_map_host_memory;
  int compute_mode;
  int max_texture_1d;
  int max_texture_1d_mipmap;
  int max_texture_1d_linear;
  int max_texture_2d[2];
  int max_texture_2d_mipmap[2];
  int max_texture_2d_linear[3];
  int max_texture_2d_gather[2];
  int max_texture_3d[3];
  int max_texture_3d_alternate[3];
  int max_texture_cubemap;
  int max_texture_1d_layered[2];
  int max_texture_2d_layered[3];
  int max_texture_cubemap_layered[2];
  int max_surface_1d;
  int max_surface_2d[2];
  int max_surface_3d[3];
  int max_surface_1d_layered[2];
  int max_surface_2d_layered[3];
  int max_surface_cubemap;
  int max_surface_cubemap_layered[2];
  std::size_t surface_alignment;
  int concurrent_kernels;
  int ecc_enabled;
  int pci_bus;
  int pci_device;
  int pci_domain;
  int tcc_driver;
  int async_engines;
  int unified_addressing;
  int memory_clock_khz;
  int memory_bus_bits;
  int l2_bytes;
  int max_persisting_l2_bytes;
  int max_threads_per_sm;
  int stream_priorities;
  int global_l1_cache;
  int local_l1_cache;
  std::size_t shared_memory_per_sm;
  int registers_per_sm;
  int managed_memory;
  int multi_gpu_board;
  int multi_gpu_board_group;
  int host_native_atomics;
  int single_to_double_ratio;
  int pageable_memory_access;
  int concurrent_managed_access;
  int compute_preemption;
  int can_use_registered_host_pointer;
  int cooperative_launch;
  int cooperative_multi_device_launch;
  std::size_t shared_memory_per_block_optin;
  int pageable_uses_host_page_tables;
  int direct_managed_access_from_host;
  int max_blocks_per_sm;
  int max_access_policy_window;
  std::size_t reserved_shared_memory_per_block;
  int host_register_supported;
  int before_pools[3];  ///< features that the device lacks
  int memory_pools_supported;
  int before_clusters[6];  ///< features that the device lacks
  int cluster_launch;
  int rest[64];  ///< features that the device lacks
};

/// cudaDeviceProp of CUDA 13, without the former clocks, modes and ratios.
struct DeviceProperties13 {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_device_node_mask;
  std::size_t total_global_memory;
  std::size_t shared_memory_per_block;
  int registers_per_block;
  int warp_size;
  std::size_t memory_pitch;
  int max_threads_per_block;
  int max_threads_dim[3];
  int max_grid_size[3];
  std::size_t total_constant_memory;
  int major;
  int minor;
  std::size_t texture_alignment;
  std::size_t texture_pitch_alignment;
  int num_sms;
  int integrated;
  int can_map_host_memory;
  int max_texture_1d;
  int max_texture_1d_mipmap;
  int max_texture_2d[2];
  int max_texture_2d_mipmap[2];
  int max_texture_2d_linear[3];
  int max_texture_2d_gather[2];
  int max_texture_3d[3];
  int max_texture_3d_alternate[3];
  int max_texture_cubemap;
  int max_texture_1d_layered[2];
  int max_texture_2d_layered[3];
  int max_texture_cubemap_layered[2];
  int max_surface_1d;
  int max_surface_2d[2];
  int max_surface_3d[3];
  int max_surface_1d_layered[2];
  int max_surface_2d_layered[3];
  int max_surface_cubemap;
  int max_surface_cubemap_layered[2];
  std::size_t surface_alignment;
  int concurrent_kernels;
  int ecc_enabled;
  int pci_bus;
  int pci_device;
  int pci_domain;
  int tcc_driver;
  int async_engines;
  int unified_addressing;
  int memory_bus_bits;
  int l2_bytes;
  int max_persisting_l2_bytes;
  int max_threads_per_sm;
  int stream_priorities;
  int global_l1_cache;
  int local_l1_cache;
  std::size_t shared_memory_per_sm;
  int registers_per_sm;
  int managed_memory;
  int multi_gpu_board;
  int multi_gpu_board_group;
  int host_native_atomics;
  int pageable_memory_access;
  int concurrent_managed_access;
  int compute_preemption;
  int can_use_registered_host_pointer;
  int cooperative_launch;
  std::size_t shared_memory_per_block_optin;
  int pageable_uses_host_page_tables;
  int direct_managed_access_from_host;
  int max_blocks_per_sm;
  int max_access_policy_window;
  std::size_t reserved_shared_memory_per_block;
  int host_register_supported;
  int before_pools[3];  ///< features that the device lacks
  int memory_pools_supported;
  int before_clusters[6];  ///< features that the device lacks
  int cluster_launch;
  int rest[64];  ///< features that the device lacks
};

}  // namespace warpstack::cudart
