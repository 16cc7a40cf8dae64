#pragma once

#include <cstddef>
#include <cstdint>

#include "stand_ins/state/abi.h"

/// The types of CUDA's driver interface that the stand-in reads or writes, in the layout of CUDA
/// 3.2 to 13. Streams, events, graphs, memory pools, arrays and error numbers are those of the
/// runtime.
namespace warpstack::cudriver {

using cudart::Array;
using cudart::Error;
using cudart::EventHandle;
using cudart::StreamHandle;

/// CUresult: the values that cudart::Error does not have.
inline constexpr Error not_initialized{3};
inline constexpr Error invalid_image{200};
inline constexpr Error invalid_context{201};
inline constexpr Error file_not_found{301};
inline constexpr Error context_is_destroyed{709};

/// CUdeviceptr
using DevicePointer = std::uint64_t;
/// CUfunction and CUkernel: the key of a kernel in cudart::Runtime::kernel().
using Function = const void*;

/// CUmemorytype
enum class MemoryType : int { host = 1, device, array, unified };

/// CUDA_MEMCPY2D
struct Copy2D {
  std::size_t source_x, source_y;
  MemoryType source_type;
  const void* source_host;
  DevicePointer source_device;
  Array* source_array;
  std::size_t source_pitch;
  std::size_t target_x, target_y;
  MemoryType target_type;
  void* target_host;
  DevicePointer target_device;
  Array* target_array;
  std::size_t target_pitch;
  std::size_t width, height;
};

/// CUDA_MEMCPY3D
struct Copy3D {
  std::size_t source_x, source_y, source_z, source_level;
  MemoryType source_type;
  const void* source_host;
  DevicePointer source_device;
  Array* source_array;
  void* source_reserved;
  std::size_t source_pitch, source_height;
  std::size_t target_x, target_y, target_z, target_level;
  MemoryType target_type;
  void* target_host;
  DevicePointer target_device;
  Array* target_array;
  void* target_reserved;
  std::size_t target_pitch, target_height;
  std::size_t width, height, depth;
};

/// CUlaunchConfig
struct LaunchConfiguration {
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t dynamic_shared_bytes;
  StreamHandle stream;
  const void* attributes;
  unsigned num_attributes;
};

/// CUDA_ARRAY_DESCRIPTOR and CUDA_ARRAY3D_DESCRIPTOR
struct ArrayDescription {
  std::size_t width, height;
  int format;
  unsigned num_channels;
};
struct ArrayDescription3D {
  std::size_t width, height, depth;
  int format;
  unsigned num_channels;
  unsigned flags;
};

/// CUDA_RESOURCE_DESC
struct ResourceDescription {
  cudart::ResourceDescription::Kind kind;
  union {
    Array* array;
    struct {
      DevicePointer pointer;
      int format;
      unsigned num_channels;
      std::size_t bytes;
    } linear;
    struct {
      DevicePointer pointer;
      int format;
      unsigned num_channels;
      std::size_t width, height, pitch;
    } pitch_2d;
    int reserved[32];
  };
  unsigned flags;
};

/// CUDA_TEXTURE_DESC
struct TextureDescription {
  int address_mode[3];
  int filter_mode;
  unsigned flags;  ///< 1: integers stay integers, 2: normalised coordinates, 16: sRGB
  unsigned max_anisotropy;
  int mipmap_filter_mode;
  float mipmap_level_bias, min_mipmap_level, max_mipmap_level;
  float border_color[4];
  int reserved[12];
};

static_assert(sizeof(Copy2D) == 128 && sizeof(Copy3D) == 200 && sizeof(LaunchConfiguration) == 56);
static_assert(sizeof(ResourceDescription) == 144 && sizeof(TextureDescription) == 104);

}  // namespace warpstack::cudriver
