// Memory: allocation, copies, fills, pointers, pools.

#include <cstring>

#include "stand_ins/cudriver/driver.h"
#include "stand_ins/cudriver/runtime_calls.h"
#include "stand_ins/state/memory_operations.h"
#include "stand_ins/state/recording.h"

using namespace warpstack::cudriver;
using warpstack::cudart::capture_copy;
using warpstack::cudart::capture_fill;
using warpstack::cudart::FillParameters;
using warpstack::cudart::refuse_legacy_while_capturing;
using warpstack::cudart::refuse_while_capturing;

namespace {

using Kind = warpstack::cudart::PointerAttributes::Kind;

void** place_of(DevicePointer* pointer) { return reinterpret_cast<void**>(pointer); }

/// One side of a copy as the runtime describes it.
struct Side {
  Array* array = nullptr;
  warpstack::cudart::PitchedPointer pitched;
  warpstack::cudart::Position position;
};

/// x is in bytes.
Side side_of(Runtime& runtime, MemoryType type, const void* host, DevicePointer device,
             Array* array, std::size_t pitch, std::size_t height, std::size_t x, std::size_t y,
             std::size_t z, std::size_t width) {
  Side side;
  side.position = {x, y, z};
  if (type == MemoryType::array) {
    const std::size_t texel = runtime.array(array).texel_bytes;
    require(x % texel == 0 && width % texel == 0, "the copy is not one of whole texels");
    side.array = array;
    side.position.x = x / texel;
    return side;
  }
  require(type == MemoryType::host || type == MemoryType::device || type == MemoryType::unified,
          "unknown type of memory");
  void* const pointer = type == MemoryType::host ? const_cast<void*>(host) : pointer_to(device);
  require(pointer != nullptr, "a pointer is null");
  require(type != MemoryType::device || runtime.on_device(device),
          "the memory is not on the device");
  require(width <= ~x && (pitch == 0 || x + width <= pitch), "a row is longer than the pitch");
  side.pitched = {pointer, pitch == 0 ? x + width : pitch, width, height};
  return side;
}

warpstack::cudart::Copy3D copy_of(Runtime& runtime, const Copy3D& given) {
  require(given.source_level == 0 && given.target_level == 0, "there are no levels");
  const auto rows = [&](std::size_t height, std::size_t y) {
    return height == 0 ? y + given.height : height;
  };
  const Side source =
      side_of(runtime, given.source_type, given.source_host, given.source_device,
              given.source_array, given.source_pitch, rows(given.source_height, given.source_y),
              given.source_x, given.source_y, given.source_z, given.width);
  const Side target =
      side_of(runtime, given.target_type, given.target_host, given.target_device,
              given.target_array, given.target_pitch, rows(given.target_height, given.target_y),
              given.target_x, given.target_y, given.target_z, given.width);
  std::size_t texel = 1;
  for (const Array* const array : {source.array, target.array}) {
    if (array != nullptr) texel = runtime.array(array).texel_bytes;
  }
  return {source.array,
          source.position,
          source.pitched,
          target.array,
          target.position,
          target.pitched,
          {given.width / texel, given.height, given.depth},
          MemcpyKind::any};
}

Copy3D in_3d(const Copy2D* given) {
  require(given != nullptr, "no copy is described");
  Copy3D copy{};
  copy.source_x = given->source_x;
  copy.source_y = given->source_y;
  copy.source_type = given->source_type;
  copy.source_host = given->source_host;
  copy.source_device = given->source_device;
  copy.source_array = given->source_array;
  copy.source_pitch = given->source_pitch;
  copy.target_x = given->target_x;
  copy.target_y = given->target_y;
  copy.target_type = given->target_type;
  copy.target_host = given->target_host;
  copy.target_device = given->target_device;
  copy.target_array = given->target_array;
  copy.target_pitch = given->target_pitch;
  copy.width = given->width;
  copy.height = given->height;
  copy.depth = 1;
  return copy;
}

void copy_now(Runtime& runtime, const Copy3D& copy) {
  refuse_legacy_while_capturing(runtime);
  run_copy(runtime, copy_of(runtime, copy));
}

void copy_in_order(Runtime& runtime, const Copy3D& given, StreamHandle stream) {
  const auto copy = copy_of(runtime, given);
  if (!capture_copy(runtime, stream, {copy})) run_copy(runtime, copy);
}

Error fill(const char* function, DevicePointer target, std::size_t pitch, std::uint32_t value,
           std::uint32_t bytes, std::size_t width, std::size_t height) {
  return drive(function, [&](Runtime& runtime) {
    refuse_legacy_while_capturing(runtime);
    run_fill(runtime, {pointer_to(target), pitch, value, bytes, width, height});
  });
}

Error fill_in_order(const char* function, DevicePointer target, std::size_t pitch,
                    std::uint32_t value, std::uint32_t bytes, std::size_t width, std::size_t height,
                    StreamHandle stream) {
  return drive(function, [&](Runtime& runtime) {
    const FillParameters fill{pointer_to(target), pitch, value, bytes, width, height};
    if (!capture_fill(runtime, stream, fill)) run_fill(runtime, fill);
  });
}

Runtime::KnownMemory memory_at(Runtime& runtime, DevicePointer pointer, Error otherwise) {
  const auto known = runtime.memory_at(pointer);
  require(known.has_value(), "no memory is allocated or registered at this address", otherwise);
  return *known;
}

template <typename T>
void put(void* place, const T& value) {
  std::memcpy(place, &value, sizeof value);
}

/// Writes an attribute of an allocated address to `place`.
void pointer_attribute(Runtime& runtime, void* place, int attribute, DevicePointer pointer) {
  const auto allocation = memory_at(runtime, pointer, Error::invalid_value);
  const Kind kind = allocation.kind;
  switch (attribute) {
    case 1:  // context
      return put(place, Driver::get().current());
    case 2:
      return put(place, kind == Kind::host ? MemoryType::host : MemoryType::device);
    case 3:  // device pointer
      return put(place, pointer);
    case 4:  // host pointer
      require(kind != Kind::device, "the host cannot reach this memory");
      return put(place, pointer);
    case 7:   // a number of the allocation
    case 20:  // the same for the memory it is mapped to
    case 11:  // its begin
    case 19:
      return put(place, allocation.address);
    case 12:  // its size
    case 18:
      return put(place, allocation.bytes);
    case 8:
      return put(place, kind == Kind::managed ? 1 : 0);
    case 13:  // whether it is mapped
      return put(place, 1);
    case 16:  // access: to read and to write
      return put(place, 3);
    case 6:   // every copy waits for the memory's others
    case 9:   // number of the device
    case 10:  // for other processes
    case 15:  // for other devices on the bus
    case 21:  // for the decompressor
      return put(place, 0);
    case 14:  // kinds of handles
    case 17:  // memory pool
      return put(place, std::uint64_t{0});
    default:
      throw Failure(Error::invalid_value, "a pointer has no such attribute");
  }
}

Error prefetch(const char* function, DevicePointer pointer, std::size_t bytes, bool to_device,
               StreamHandle stream) {
  return drive(function, [&](Runtime& runtime) {
    require(bytes > 0, "there is no memory");
    runtime.check_managed(pointer, bytes);
    if (runtime.graphs().captures.of(stream) != nullptr) return;  // a hint less
    warpstack::cudart::record_prefetch(runtime, stream, bytes, to_device);
  });
}

}  // namespace

// --- allocation ---------------------------------------------------------------------------------

CUDART_EXPORT Error cuMemAlloc_v2(DevicePointer* pointer, std::size_t bytes) {
  return drive(__func__, [&](Runtime& runtime) {
    refuse_while_capturing(runtime);
    require(pointer != nullptr && bytes > 0, "memory needs a size and a pointer");
    *pointer = runtime.allocate(bytes);
    warpstack::cudart::record_allocation(runtime, bytes, false);
  });
}

CUDART_EXPORT Error cuMemAllocPitch_v2(DevicePointer* pointer, std::size_t* pitch,
                                       std::size_t width, std::size_t height, unsigned element) {
  return forward(__func__, [&] {
    const bool fits = element == 4 || element == 8 || element == 16;
    return fits && width > 0 && height > 0
               ? cudaMallocPitch(place_of(pointer), pitch, width, height)
               : mistake("pitched memory needs a size, and elements of 4, 8 or 16 bytes");
  });
}

CUDART_EXPORT Error cuMemFree_v2(DevicePointer pointer) {
  return forward(__func__, [&] { return cudaFree(pointer_to(pointer)); });
}

CUDART_EXPORT Error cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return forward(__func__, [&] {
    return bytes == 0 ? mistake("memory needs a size") : cudaHostAlloc(pointer, bytes, flags);
  });
}

CUDART_EXPORT Error cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
  return forward(__func__, [&] {
    return bytes == 0 ? mistake("memory needs a size") : cudaMallocHost(pointer, bytes);
  });
}

CUDART_EXPORT Error cuMemFreeHost(void* pointer) {
  return forward(__func__, [&] {
    return pointer == nullptr ? mistake("the pointer is null") : cudaFreeHost(pointer);
  });
}

CUDART_EXPORT Error cuMemHostGetDevicePointer_v2(DevicePointer* device, void* host,
                                                 unsigned flags) {
  return forward(__func__, [&] { return cudaHostGetDevicePointer(place_of(device), host, flags); });
}

CUDART_EXPORT Error cuMemHostGetFlags(unsigned* flags, void* pointer) {
  return forward(__func__, [&] { return cudaHostGetFlags(flags, pointer); });
}

CUDART_EXPORT Error cuMemHostRegister_v2(void* pointer, std::size_t bytes, unsigned flags) {
  return forward(__func__, [&] { return cudaHostRegister(pointer, bytes, flags); });
}
CUDART_ALIAS(cuMemHostRegister, cuMemHostRegister_v2);

CUDART_EXPORT Error cuMemHostUnregister(void* pointer) {
  return forward(__func__, [&] { return cudaHostUnregister(pointer); });
}

CUDART_EXPORT Error cuMemAllocManaged(DevicePointer* pointer, std::size_t bytes, unsigned flags) {
  return forward(__func__, [&] {
    constexpr unsigned global = 1, host = 2;
    return flags != global && flags != host
               ? mistake("managed memory is attached globally or to the host")
               : cudaMallocManaged(place_of(pointer), bytes, flags);
  });
}

CUDART_EXPORT Error cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return forward(__func__, [&] { return cudaMemGetInfo(free, total); });
}

CUDART_EXPORT Error cuMemGetAddressRange_v2(DevicePointer* begin, std::size_t* bytes,
                                            DevicePointer pointer) {
  return drive(__func__, [&](Runtime& runtime) {
    const auto found = memory_at(runtime, pointer, Error::symbol_not_found);
    if (begin != nullptr) *begin = found.address;
    if (bytes != nullptr) *bytes = found.bytes;
  });
}

CUDART_EXPORT Error cuPointerGetAttribute(void* place, int attribute, DevicePointer pointer) {
  return drive(__func__, [&](Runtime& runtime) {
    require(place != nullptr, "nowhere to put the attribute");
    pointer_attribute(runtime, place, attribute, pointer);
  });
}

/// All attributes of an address that is not allocated are 0.
CUDART_EXPORT Error cuPointerGetAttributes(unsigned count, const int* attributes, void** places,
                                           DevicePointer pointer) {
  return drive(__func__, [&](Runtime& runtime) {
    require(count == 0 || (attributes != nullptr && places != nullptr), "a pointer is null");
    for (unsigned i = 0; i < count; ++i) {
      require(places[i] != nullptr, "nowhere to put an attribute");
      if (runtime.kind_of(pointer) != Kind::unregistered) {
        // Device memory has no host pointer; that is no error here.
        if (attributes[i] == 4 && runtime.kind_of(pointer) == Kind::device) {
          put(places[i], std::uint64_t{0});
        } else {
          pointer_attribute(runtime, places[i], attributes[i], pointer);
        }
        continue;
      }
      switch (attributes[i]) {
        case 1:
        case 3:
        case 4:
        case 7:
        case 11:
        case 12:
        case 14:
        case 17:
        case 18:
        case 19:
        case 20:
          put(places[i], std::uint64_t{0});
          break;
        case 9:
          put(places[i], -2);  // of no device
          break;
        default:
          put(places[i], 0);
      }
    }
  });
}

CUDART_EXPORT Error cuPointerSetAttribute(const void* value, int attribute, DevicePointer pointer) {
  return drive(__func__, [&](Runtime& runtime) {
    constexpr int synchronous = 6;  // as every copy is
    require(value != nullptr && attribute == synchronous, "this attribute cannot be set");
    memory_at(runtime, pointer, Error::invalid_value);
  });
}

/// Hints change nothing. Versions differ in their later arguments.
CUDART_EXPORT Error cuMemAdvise(DevicePointer pointer, std::size_t bytes) {
  return drive(__func__, [&](Runtime& runtime) {
    require(bytes > 0, "there is no memory");
    runtime.check_managed(pointer, bytes);
  });
}
CUDART_ALIAS(cuMemAdvise_v2, cuMemAdvise);

/// The place is the number of a device, or -1 for the host.
CUDART_EXPORT Error cuMemPrefetchAsync(DevicePointer pointer, std::size_t bytes, int place,
                                       StreamHandle stream) {
  return prefetch(__func__, pointer, bytes, place >= 0, stream);
}
CUDART_PER_THREAD(cuMemPrefetchAsync_ptsz, cuMemPrefetchAsync);

/// The place is a type (1: a device) and a number, in one register.
CUDART_EXPORT Error cuMemPrefetchAsync_v2(DevicePointer pointer, std::size_t bytes,
                                          std::uint64_t place, unsigned, StreamHandle stream) {
  return prefetch(__func__, pointer, bytes, static_cast<std::uint32_t>(place) == 1, stream);
}
CUDART_PER_THREAD(cuMemPrefetchAsync_v2_ptsz, cuMemPrefetchAsync_v2);

/// A length of 0 is all of it.
CUDART_EXPORT Error cuStreamAttachMemAsync(StreamHandle stream, DevicePointer pointer,
                                           std::size_t bytes) {
  return drive(__func__, [&](Runtime& runtime) {
    runtime.stream(stream);
    runtime.check_managed(pointer, bytes);
  });
}
CUDART_PER_THREAD(cuStreamAttachMemAsync_ptsz, cuStreamAttachMemAsync);

// --- copies -------------------------------------------------------------------------------------

CUDART_EXPORT Error cuMemcpy(DevicePointer target, DevicePointer source, std::size_t bytes) {
  return forward(__func__, [&] {
    return cudaMemcpy(pointer_to(target), pointer_to(source), bytes, MemcpyKind::any);
  });
}
CUDART_PER_THREAD(cuMemcpy_ptds, cuMemcpy);

CUDART_EXPORT Error cuMemcpyAsync(DevicePointer target, DevicePointer source, std::size_t bytes,
                                  StreamHandle stream) {
  return forward(__func__, [&] {
    return cudaMemcpyAsync(pointer_to(target), pointer_to(source), bytes, MemcpyKind::any, stream);
  });
}
CUDART_PER_THREAD(cuMemcpyAsync_ptsz, cuMemcpyAsync);

CUDART_EXPORT Error cuMemcpyHtoD_v2(DevicePointer target, const void* source, std::size_t bytes) {
  return forward(__func__, [&] {
    return cudaMemcpy(pointer_to(target), source, bytes, MemcpyKind::host_to_device);
  });
}
CUDART_PER_THREAD(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD_v2);

CUDART_EXPORT Error cuMemcpyHtoDAsync_v2(DevicePointer target, const void* source,
                                         std::size_t bytes, StreamHandle stream) {
  return forward(__func__, [&] {
    return cudaMemcpyAsync(pointer_to(target), source, bytes, MemcpyKind::host_to_device, stream);
  });
}
CUDART_PER_THREAD(cuMemcpyHtoDAsync_v2_ptsz, cuMemcpyHtoDAsync_v2);

CUDART_EXPORT Error cuMemcpyDtoH_v2(void* target, DevicePointer source, std::size_t bytes) {
  return forward(__func__, [&] {
    return cudaMemcpy(target, pointer_to(source), bytes, MemcpyKind::device_to_host);
  });
}
CUDART_PER_THREAD(cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH_v2);

CUDART_EXPORT Error cuMemcpyDtoHAsync_v2(void* target, DevicePointer source, std::size_t bytes,
                                         StreamHandle stream) {
  return forward(__func__, [&] {
    return cudaMemcpyAsync(target, pointer_to(source), bytes, MemcpyKind::device_to_host, stream);
  });
}
CUDART_PER_THREAD(cuMemcpyDtoHAsync_v2_ptsz, cuMemcpyDtoHAsync_v2);

CUDART_EXPORT Error cuMemcpyDtoD_v2(DevicePointer target, DevicePointer source, std::size_t bytes) {
  return forward(__func__, [&] {
    return cudaMemcpy(pointer_to(target), pointer_to(source), bytes, MemcpyKind::device_to_device);
  });
}
CUDART_PER_THREAD(cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD_v2);

CUDART_EXPORT Error cuMemcpyDtoDAsync_v2(DevicePointer target, DevicePointer source,
                                         std::size_t bytes, StreamHandle stream) {
  return forward(__func__, [&] {
    return cudaMemcpyAsync(pointer_to(target), pointer_to(source), bytes,
                           MemcpyKind::device_to_device, stream);
  });
}
CUDART_PER_THREAD(cuMemcpyDtoDAsync_v2_ptsz, cuMemcpyDtoDAsync_v2);

CUDART_EXPORT Error cuMemcpyPeer(DevicePointer target, const Context*, DevicePointer source,
                                 const Context*, std::size_t bytes) {
  return cuMemcpyDtoD_v2(target, source, bytes);
}
CUDART_PER_THREAD(cuMemcpyPeer_ptds, cuMemcpyPeer);

CUDART_EXPORT Error cuMemcpyPeerAsync(DevicePointer target, const Context*, DevicePointer source,
                                      const Context*, std::size_t bytes, StreamHandle stream) {
  return cuMemcpyDtoDAsync_v2(target, source, bytes, stream);
}
CUDART_PER_THREAD(cuMemcpyPeerAsync_ptsz, cuMemcpyPeerAsync);

CUDART_EXPORT Error cuMemcpy2D_v2(const Copy2D* copy) {
  return drive(__func__, [&](Runtime& runtime) { copy_now(runtime, in_3d(copy)); });
}
CUDART_PER_THREAD(cuMemcpy2D_v2_ptds, cuMemcpy2D_v2);
CUDART_ALIAS(cuMemcpy2DUnaligned_v2, cuMemcpy2D_v2);
CUDART_PER_THREAD(cuMemcpy2DUnaligned_v2_ptds, cuMemcpy2D_v2);

CUDART_EXPORT Error cuMemcpy2DAsync_v2(const Copy2D* copy, StreamHandle stream) {
  return drive(__func__, [&](Runtime& runtime) { copy_in_order(runtime, in_3d(copy), stream); });
}
CUDART_PER_THREAD(cuMemcpy2DAsync_v2_ptsz, cuMemcpy2DAsync_v2);

CUDART_EXPORT Error cuMemcpy3D_v2(const Copy3D* copy) {
  return drive(__func__, [&](Runtime& runtime) {
    require(copy != nullptr, "no copy is described");
    copy_now(runtime, *copy);
  });
}
CUDART_PER_THREAD(cuMemcpy3D_v2_ptds, cuMemcpy3D_v2);

CUDART_EXPORT Error cuMemcpy3DAsync_v2(const Copy3D* copy, StreamHandle stream) {
  return drive(__func__, [&](Runtime& runtime) {
    require(copy != nullptr, "no copy is described");
    copy_in_order(runtime, *copy, stream);
  });
}
CUDART_PER_THREAD(cuMemcpy3DAsync_v2_ptsz, cuMemcpy3DAsync_v2);

// --- fills --------------------------------------------------------------------------------------

#define WARPSTACK_FILLS(bits, type)                                                               \
  CUDART_EXPORT Error cuMemsetD##bits##_v2(DevicePointer target, type value, std::size_t count) { \
    return fill(__func__, target, 0, value, bits / 8, count, 1);                                  \
  }                                                                                               \
  CUDART_ALIAS(cuMemsetD##bits##_v2_ptds, cuMemsetD##bits##_v2);                                  \
  CUDART_EXPORT Error cuMemsetD##bits##Async(DevicePointer target, type value, std::size_t count, \
                                             StreamHandle stream) {                               \
    return fill_in_order(__func__, target, 0, value, bits / 8, count, 1, stream);                 \
  }                                                                                               \
  CUDART_ALIAS(cuMemsetD##bits##Async_ptsz, cuMemsetD##bits##Async);                              \
  CUDART_EXPORT Error cuMemsetD2D##bits##_v2(DevicePointer target, std::size_t pitch, type value, \
                                             std::size_t width, std::size_t height) {             \
    return fill(__func__, target, pitch, value, bits / 8, width, height);                         \
  }                                                                                               \
  CUDART_ALIAS(cuMemsetD2D##bits##_v2_ptds, cuMemsetD2D##bits##_v2);                              \
  CUDART_EXPORT Error cuMemsetD2D##bits##Async(DevicePointer target, std::size_t pitch,           \
                                               type value, std::size_t width, std::size_t height, \
                                               StreamHandle stream) {                             \
    return fill_in_order(__func__, target, pitch, value, bits / 8, width, height, stream);        \
  }                                                                                               \
  CUDART_ALIAS(cuMemsetD2D##bits##Async_ptsz, cuMemsetD2D##bits##Async)

WARPSTACK_FILLS(8, unsigned char);
WARPSTACK_FILLS(16, unsigned short);
WARPSTACK_FILLS(32, unsigned int);

// --- memory in the order of streams -------------------------------------------------------------

CUDART_EXPORT Error cuMemAllocAsync(DevicePointer* pointer, std::size_t bytes,
                                    StreamHandle stream) {
  return forward(__func__, [&] { return cudaMallocAsync(place_of(pointer), bytes, stream); });
}
CUDART_PER_THREAD(cuMemAllocAsync_ptsz, cuMemAllocAsync);

CUDART_EXPORT Error cuMemAllocFromPoolAsync(DevicePointer* pointer, std::size_t bytes,
                                            MemoryPool* pool, StreamHandle stream) {
  return forward(__func__,
                 [&] { return cudaMallocFromPoolAsync(place_of(pointer), bytes, pool, stream); });
}
CUDART_PER_THREAD(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync);

CUDART_EXPORT Error cuMemFreeAsync(DevicePointer pointer, StreamHandle stream) {
  return forward(__func__, [&] { return cudaFreeAsync(pointer_to(pointer), stream); });
}
CUDART_PER_THREAD(cuMemFreeAsync_ptsz, cuMemFreeAsync);

CUDART_EXPORT Error cuMemPoolCreate(MemoryPool** pool, const MemoryPoolProperties* properties) {
  return forward(__func__, [&] { return cudaMemPoolCreate(pool, properties); });
}

CUDART_EXPORT Error cuMemPoolDestroy(MemoryPool* pool) {
  return forward(__func__, [&] { return cudaMemPoolDestroy(pool); });
}

CUDART_EXPORT Error cuMemPoolTrimTo(MemoryPool* pool, std::size_t bytes) {
  return forward(__func__, [&] { return cudaMemPoolTrimTo(pool, bytes); });
}

CUDART_EXPORT Error cuMemPoolGetAttribute(MemoryPool* pool, int attribute, void* value) {
  return forward(__func__, [&] { return cudaMemPoolGetAttribute(pool, attribute, value); });
}

CUDART_EXPORT Error cuMemPoolSetAttribute(MemoryPool* pool, int attribute, void* value) {
  return forward(__func__, [&] { return cudaMemPoolSetAttribute(pool, attribute, value); });
}

CUDART_EXPORT Error cuMemPoolSetAccess(MemoryPool* pool, const AccessDescription* descriptions,
                                       std::size_t count) {
  return forward(__func__, [&] { return cudaMemPoolSetAccess(pool, descriptions, count); });
}

CUDART_EXPORT Error cuMemPoolGetAccess(int* flags, MemoryPool* pool, MemoryLocation* location) {
  return forward(__func__, [&] { return cudaMemPoolGetAccess(flags, pool, location); });
}

CUDART_EXPORT Error cuDeviceGetDefaultMemPool(MemoryPool** pool, int device) {
  return forward(
      __func__, [&] { return cudaDeviceGetDefaultMemPool(pool, device); }, Needs::initialization);
}

CUDART_EXPORT Error cuDeviceGetMemPool(MemoryPool** pool, int device) {
  return forward(
      __func__, [&] { return cudaDeviceGetMemPool(pool, device); }, Needs::initialization);
}

CUDART_EXPORT Error cuDeviceSetMemPool(int device, MemoryPool* pool) {
  return forward(
      __func__, [&] { return cudaDeviceSetMemPool(device, pool); }, Needs::initialization);
}
