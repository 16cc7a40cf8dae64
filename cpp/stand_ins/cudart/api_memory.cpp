// Memory: allocation, copies, fills, symbols, arrays.

#include "stand_ins/state/abi_version.h"
#include "stand_ins/state/graph.h"
#include "stand_ins/state/memory_operations.h"
#include "stand_ins/state/recording.h"
#include "stand_ins/state/runtime.h"

using namespace warpstack::cudart;

namespace {

/// Rows of cudaMallocPitch begin at multiples of this, as on every GPU since Kepler.
constexpr std::size_t pitch_alignment = 512;

std::size_t pitch_of(std::size_t width) {
  require(width <= ~std::size_t{0} - pitch_alignment, "too large", Error::memory_allocation);
  return (width + pitch_alignment - 1) / pitch_alignment * pitch_alignment;
}

void allocate_to(Runtime& runtime, void** pointer, std::size_t bytes) {
  require(pointer != nullptr, "nowhere to put the address");
  *pointer = bytes == 0 ? nullptr : pointer_to(runtime.allocate(bytes));
  if (bytes > 0) record_allocation(runtime, bytes, false);
}

/// cudaHostAllocPortable, Mapped and WriteCombined.
constexpr unsigned host_flags = 7;
/// Every allocation has this flag: host and device have the same addresses.
constexpr unsigned mapped_flag = 2;

void allocate_host(Runtime& runtime, void** pointer, std::size_t bytes, unsigned flags) {
  require(pointer != nullptr, "nowhere to put the address");
  require((flags & ~host_flags) == 0, "there are no such flags");
  *pointer = bytes == 0
                 ? nullptr
                 : pointer_to(runtime.allocate_shared(bytes, PointerAttributes::Kind::host, flags));
  if (bytes > 0) record_allocation(runtime, bytes, true);
}

/// Checks the devices that a copy names: there is one.
Error check_devices(const char* function, int target, int source) {
  return call(function, [&](Runtime&) {
    require(target == 0 && source == 0, "there is one device, number 0", Error::invalid_device);
  });
}

Error prefetch(const char* function, const void* pointer, std::size_t bytes, bool to_device,
               StreamHandle stream) {
  return call(function, [&](Runtime& runtime) {
    require(bytes > 0, "there is no memory");
    runtime.check_managed(address_of(pointer), bytes);
    if (runtime.graphs().captures.of(stream) != nullptr) return;  // a hint less
    record_prefetch(runtime, stream, bytes, to_device);
  });
}

}  // namespace

// --- allocation ---------------------------------------------------------------------------------

CUDART_EXPORT Error cudaMalloc(void** pointer, std::size_t bytes) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_while_capturing(runtime);
    allocate_to(runtime, pointer, bytes);
  });
}

CUDART_EXPORT Error cudaMallocManaged(void** pointer, std::size_t bytes, unsigned flags) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_while_capturing(runtime);
    require(pointer != nullptr && bytes > 0, "managed memory needs a size and a pointer");
    constexpr unsigned global = 1, host = 2;
    require(flags == global || flags == host, "managed memory is attached globally or to the host");
    *pointer = pointer_to(runtime.allocate_shared(bytes, PointerAttributes::Kind::managed, flags));
    record_allocation(runtime, bytes, false);
  });
}

CUDART_EXPORT Error cudaMallocHost(void** pointer, std::size_t bytes) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_while_capturing(runtime);
    allocate_host(runtime, pointer, bytes, 0);
  });
}

CUDART_EXPORT Error cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_while_capturing(runtime);
    allocate_host(runtime, pointer, bytes, flags);
  });
}

CUDART_EXPORT Error cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width,
                                    std::size_t height) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_while_capturing(runtime);
    require(pitch != nullptr, "nowhere to put the pitch");
    require(pointer != nullptr, "nowhere to put the address");
    const std::size_t bytes = pitch_of(width);
    require(height == 0 || bytes <= ~std::size_t{0} / height, "too large",
            Error::memory_allocation);
    allocate_to(runtime, pointer, bytes * height);
    *pitch = bytes;
  });
}

CUDART_EXPORT Error cudaMalloc3D(PitchedPointer* pitched, Extent extent) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_while_capturing(runtime);
    require(pitched != nullptr, "nowhere to put the address");
    const std::size_t pitch = pitch_of(extent.width);
    require(extent.height == 0 || extent.depth <= ~std::size_t{0} / extent.height, "too large",
            Error::memory_allocation);
    const std::size_t rows = extent.height * extent.depth;
    require(rows == 0 || pitch <= ~std::size_t{0} / rows, "too large", Error::memory_allocation);
    void* pointer = nullptr;
    allocate_to(runtime, &pointer, pitch * rows);
    *pitched = {pointer, pitch, extent.width, extent.height};
  });
}

CUDART_EXPORT Error cudaFree(void* pointer) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_while_capturing(runtime);
    if (pointer == nullptr) return;
    record_free(runtime, address_of(pointer));
    runtime.free(address_of(pointer));
  });
}

CUDART_EXPORT Error cudaFreeHost(void* pointer) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_while_capturing(runtime);
    if (pointer == nullptr) return;
    record_free(runtime, address_of(pointer));
    runtime.free_host(address_of(pointer));
  });
}

CUDART_EXPORT Error cudaHostGetDevicePointer(void** device_pointer, void* host_pointer,
                                             unsigned flags) {
  return call(__func__, [&](Runtime& runtime) {
    require(device_pointer != nullptr && host_pointer != nullptr, "a pointer is null");
    require(flags == 0, "no flags are defined");
    const auto known = runtime.memory_at(address_of(host_pointer));
    require(known && known->kind != PointerAttributes::Kind::device,
            "this is not memory of cudaHostAlloc, cudaMallocHost or cudaMallocManaged");
    if (known->registered) {
      throw Failure(Error::not_supported,
                    "only memory of cudaHostAlloc, cudaMallocHost and cudaMallocManaged is mapped, "
                    "not memory that cudaHostRegister registers",
                    true);
    }
    *device_pointer = host_pointer;
  });
}

CUDART_EXPORT Error cudaHostGetFlags(unsigned* flags, void* pointer) {
  return call(__func__, [&](Runtime& runtime) {
    require(flags != nullptr && pointer != nullptr, "a pointer is null");
    const auto known = runtime.memory_at(address_of(pointer));
    require(known && known->kind == PointerAttributes::Kind::host && !known->registered,
            "this is not memory of cudaHostAlloc or cudaMallocHost");
    *flags = known->flags | mapped_flag;
  });
}

CUDART_EXPORT Error cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_while_capturing(runtime);
    runtime.register_host(address_of(pointer), bytes, flags);
    record_allocation(runtime, bytes, true);
  });
}

CUDART_EXPORT Error cudaHostUnregister(void* pointer) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_while_capturing(runtime);
    record_free(runtime, address_of(pointer));
    runtime.unregister_host(address_of(pointer));
  });
}

CUDART_EXPORT Error cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call(__func__, [&](Runtime& runtime) {
    require(free != nullptr && total != nullptr, "nowhere to put the sizes");
    *total = runtime.memory().capacity();
    *free = *total - runtime.memory().used();
  });
}

CUDART_EXPORT Error cudaPointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
  return call(__func__, [&](Runtime& runtime) {
    require(attributes != nullptr, "nowhere to put the attributes");
    using Kind = PointerAttributes::Kind;
    const Kind kind = runtime.kind_of(address_of(pointer));
    void* const address = const_cast<void*>(pointer);
    *attributes = {kind, kind == Kind::unregistered ? -2 : 0,
                   kind == Kind::unregistered ? nullptr : address,
                   kind == Kind::device ? nullptr : address};
  });
}

/// Hints change nothing: host and device share managed memory. CUDA 12 and 13 pass other arguments
/// behind these.
CUDART_EXPORT Error cudaMemAdvise(const void* pointer, std::size_t bytes) {
  return call(__func__, [&](Runtime& runtime) {
    require(bytes > 0, "there is no memory");
    runtime.check_managed(address_of(pointer), bytes);
  });
}
CUDART_ALIAS(cudaMemAdvise_v2, cudaMemAdvise);

/// The place is a type (1: a device) and a number, in one register; flags come behind it.
CUDART_EXPORT Error cudaMemPrefetchAsync_v2(const void* pointer, std::size_t bytes,
                                            std::uint64_t place, unsigned, StreamHandle stream) {
  return prefetch(__func__, pointer, bytes, static_cast<std::uint32_t>(place) == 1, stream);
}
CUDART_PER_THREAD(cudaMemPrefetchAsync_v2_ptsz, cudaMemPrefetchAsync_v2);

/// Before CUDA 13 the place is the number of a device, or -1 for the host, without flags.
CUDART_EXPORT Error cudaMemPrefetchAsync(const void* pointer, std::size_t bytes,
                                         std::uint64_t place, std::uintptr_t flags_or_stream,
                                         StreamHandle stream) {
  if (abi_version() >= 13) {
    return prefetch(__func__, pointer, bytes, static_cast<std::uint32_t>(place) == 1, stream);
  }
  return prefetch(__func__, pointer, bytes, static_cast<std::int32_t>(place) >= 0, flags_or_stream);
}
CUDART_PER_THREAD(cudaMemPrefetchAsync_ptsz, cudaMemPrefetchAsync);

/// A length of 0 is all of it.
CUDART_EXPORT Error cudaStreamAttachMemAsync(StreamHandle stream, const void* pointer,
                                             std::size_t bytes) {
  return call(__func__, [&](Runtime& runtime) {
    runtime.stream(stream);
    runtime.check_managed(address_of(pointer), bytes);
  });
}
CUDART_PER_THREAD(cudaStreamAttachMemAsync_ptsz, cudaStreamAttachMemAsync);

// --- copies -------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaMemcpy(void* target, const void* source, std::size_t bytes,
                               MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_legacy_while_capturing(runtime);
    copy_plain(runtime, target, source, bytes, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpy_ptds, cudaMemcpy);

CUDART_EXPORT Error cudaMemcpyAsync(void* target, const void* source, std::size_t bytes,
                                    MemcpyKind kind, StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    if (capture_copy(runtime, stream, plain_copy(target, source, bytes, kind))) return;
    copy_plain(runtime, target, source, bytes, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpyAsync_ptsz, cudaMemcpyAsync);

CUDART_EXPORT Error cudaMemcpyPeer(void* target, int target_device, const void* source,
                                   int source_device, std::size_t bytes) {
  const ApiCall api_call(__func__);
  const Error checked = check_devices(__func__, target_device, source_device);
  if (checked != Error::success) return checked;
  return cudaMemcpy(target, source, bytes, MemcpyKind::any);
}

CUDART_EXPORT Error cudaMemcpyPeerAsync(void* target, int target_device, const void* source,
                                        int source_device, std::size_t bytes, StreamHandle stream) {
  const ApiCall api_call(__func__);
  const Error checked = check_devices(__func__, target_device, source_device);
  if (checked != Error::success) return checked;
  return cudaMemcpyAsync(target, source, bytes, MemcpyKind::any, stream);
}

CUDART_EXPORT Error cudaMemcpy2D(void* target, std::size_t target_pitch, const void* source,
                                 std::size_t source_pitch, std::size_t width, std::size_t height,
                                 MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_legacy_while_capturing(runtime);
    copy_2d(runtime, target, target_pitch, source, source_pitch, width, height, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpy2D_ptds, cudaMemcpy2D);

CUDART_EXPORT Error cudaMemcpy2DAsync(void* target, std::size_t target_pitch, const void* source,
                                      std::size_t source_pitch, std::size_t width,
                                      std::size_t height, MemcpyKind kind, StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    Copy3D copy{};
    copy.source = {const_cast<void*>(source), source_pitch, width, height};
    copy.target = {target, target_pitch, width, height};
    copy.extent = {width, height, 1};
    copy.kind = kind;
    if (capture_copy(runtime, stream, {copy})) return;
    copy_2d(runtime, target, target_pitch, source, source_pitch, width, height, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpy2DAsync_ptsz, cudaMemcpy2DAsync);

CUDART_EXPORT Error cudaMemcpy2DToArray(Array* target, std::size_t x, std::size_t y,
                                        const void* source, std::size_t source_pitch,
                                        std::size_t width, std::size_t height, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_legacy_while_capturing(runtime);
    copy_2d_to_array(runtime, target, x, y, source, source_pitch, width, height, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpy2DToArray_ptds, cudaMemcpy2DToArray);

CUDART_EXPORT Error cudaMemcpy2DToArrayAsync(Array* target, std::size_t x, std::size_t y,
                                             const void* source, std::size_t source_pitch,
                                             std::size_t width, std::size_t height, MemcpyKind kind,
                                             StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    if (capture_of(runtime, stream) != nullptr) {
      Copy3D copy = part_of_array(runtime, target, x, width, height);
      copy.target_array = target;
      copy.target_position = {copy.source_position.x, y, 0};
      copy.source_position = {};
      copy.source = {const_cast<void*>(source), source_pitch, width, height};
      copy.kind = kind;
      capture_copy(runtime, stream, {copy});
      return;
    }
    copy_2d_to_array(runtime, target, x, y, source, source_pitch, width, height, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpy2DToArrayAsync_ptsz, cudaMemcpy2DToArrayAsync);

CUDART_EXPORT Error cudaMemcpy2DFromArray(void* target, std::size_t target_pitch,
                                          const Array* source, std::size_t x, std::size_t y,
                                          std::size_t width, std::size_t height, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_legacy_while_capturing(runtime);
    copy_2d_from_array(runtime, target, target_pitch, source, x, y, width, height, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpy2DFromArray_ptds, cudaMemcpy2DFromArray);

CUDART_EXPORT Error cudaMemcpy2DFromArrayAsync(void* target, std::size_t target_pitch,
                                               const Array* source, std::size_t x, std::size_t y,
                                               std::size_t width, std::size_t height,
                                               MemcpyKind kind, StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    if (capture_of(runtime, stream) != nullptr) {
      Copy3D copy = part_of_array(runtime, source, x, width, height);
      copy.source_array = const_cast<Array*>(source);
      copy.source_position.y = y;
      copy.target = {target, target_pitch, width, height};
      copy.kind = kind;
      capture_copy(runtime, stream, {copy});
      return;
    }
    copy_2d_from_array(runtime, target, target_pitch, source, x, y, width, height, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpy2DFromArrayAsync_ptsz, cudaMemcpy2DFromArrayAsync);

CUDART_EXPORT Error cudaMemcpy2DArrayToArray(Array* target, std::size_t target_x,
                                             std::size_t target_y, const Array* source,
                                             std::size_t source_x, std::size_t source_y,
                                             std::size_t width, std::size_t height, MemcpyKind) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_legacy_while_capturing(runtime);
    copy_array_to_array(runtime, target, target_x, target_y, source, source_x, source_y, width,
                        height);
  });
}
CUDART_PER_THREAD(cudaMemcpy2DArrayToArray_ptds, cudaMemcpy2DArrayToArray);

CUDART_EXPORT Error cudaMemcpyToArray(Array* target, std::size_t x, std::size_t y,
                                      const void* source, std::size_t bytes, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_legacy_while_capturing(runtime);
    copy_to_array(runtime, target, x, y, source, bytes, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpyToArray_ptds, cudaMemcpyToArray);

CUDART_EXPORT Error cudaMemcpyToArrayAsync(Array* target, std::size_t x, std::size_t y,
                                           const void* source, std::size_t bytes, MemcpyKind kind,
                                           StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_stream_copy(runtime, stream);
    copy_to_array(runtime, target, x, y, source, bytes, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpyToArrayAsync_ptsz, cudaMemcpyToArrayAsync);

CUDART_EXPORT Error cudaMemcpyFromArray(void* target, const Array* source, std::size_t x,
                                        std::size_t y, std::size_t bytes, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_legacy_while_capturing(runtime);
    copy_from_array(runtime, target, source, x, y, bytes, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpyFromArray_ptds, cudaMemcpyFromArray);

CUDART_EXPORT Error cudaMemcpyFromArrayAsync(void* target, const Array* source, std::size_t x,
                                             std::size_t y, std::size_t bytes, MemcpyKind kind,
                                             StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_stream_copy(runtime, stream);
    copy_from_array(runtime, target, source, x, y, bytes, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpyFromArrayAsync_ptsz, cudaMemcpyFromArrayAsync);

CUDART_EXPORT Error cudaMemcpy3D(const Copy3D* copy) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_legacy_while_capturing(runtime);
    require(copy != nullptr, "no copy is described");
    run_copy(runtime, *copy);
  });
}
CUDART_PER_THREAD(cudaMemcpy3D_ptds, cudaMemcpy3D);

CUDART_EXPORT Error cudaMemcpy3DAsync(const Copy3D* copy, StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    require(copy != nullptr, "no copy is described");
    if (capture_copy(runtime, stream, {*copy})) return;
    run_copy(runtime, *copy);
  });
}
CUDART_PER_THREAD(cudaMemcpy3DAsync_ptsz, cudaMemcpy3DAsync);

// --- symbols ------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaMemcpyToSymbol(const void* symbol, const void* source, std::size_t bytes,
                                       std::size_t offset, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_legacy_while_capturing(runtime);
    copy_to_symbol(runtime, symbol, source, bytes, offset, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpyToSymbol_ptds, cudaMemcpyToSymbol);

CUDART_EXPORT Error cudaMemcpyToSymbolAsync(const void* symbol, const void* source,
                                            std::size_t bytes, std::size_t offset, MemcpyKind kind,
                                            StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    if (capture_of(runtime, stream) != nullptr) {
      capture_copy(runtime, stream,
                   copy_work_to_symbol(runtime, symbol, source, bytes, offset, kind));
      return;
    }
    copy_to_symbol(runtime, symbol, source, bytes, offset, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpyToSymbolAsync_ptsz, cudaMemcpyToSymbolAsync);

CUDART_EXPORT Error cudaMemcpyFromSymbol(void* target, const void* symbol, std::size_t bytes,
                                         std::size_t offset, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_legacy_while_capturing(runtime);
    copy_from_symbol(runtime, target, symbol, bytes, offset, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpyFromSymbol_ptds, cudaMemcpyFromSymbol);

CUDART_EXPORT Error cudaMemcpyFromSymbolAsync(void* target, const void* symbol, std::size_t bytes,
                                              std::size_t offset, MemcpyKind kind,
                                              StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    if (capture_of(runtime, stream) != nullptr) {
      capture_copy(runtime, stream,
                   copy_work_from_symbol(runtime, target, symbol, bytes, offset, kind));
      return;
    }
    copy_from_symbol(runtime, target, symbol, bytes, offset, kind);
  });
}
CUDART_PER_THREAD(cudaMemcpyFromSymbolAsync_ptsz, cudaMemcpyFromSymbolAsync);

CUDART_EXPORT Error cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return call(__func__, [&](Runtime& runtime) {
    require(pointer != nullptr, "nowhere to put the address");
    *pointer = pointer_to(runtime.symbol(symbol).address);
  });
}

CUDART_EXPORT Error cudaGetSymbolSize(std::size_t* bytes, const void* symbol) {
  return call(__func__, [&](Runtime& runtime) {
    require(bytes != nullptr, "nowhere to put the size");
    *bytes = runtime.symbol(symbol).bytes;
  });
}

// --- fills --------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaMemset(void* pointer, int value, std::size_t bytes) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_legacy_while_capturing(runtime);
    set(runtime, pointer, value, bytes);
  });
}
CUDART_PER_THREAD(cudaMemset_ptds, cudaMemset);

CUDART_EXPORT Error cudaMemsetAsync(void* pointer, int value, std::size_t bytes,
                                    StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    if (capture_fill(runtime, stream, {pointer, 0, byte_of(value), 1, bytes, 1})) return;
    set(runtime, pointer, value, bytes);
  });
}
CUDART_PER_THREAD(cudaMemsetAsync_ptsz, cudaMemsetAsync);

CUDART_EXPORT Error cudaMemset2D(void* pointer, std::size_t pitch, int value, std::size_t width,
                                 std::size_t height) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_legacy_while_capturing(runtime);
    set_2d(runtime, pointer, pitch, value, width, height);
  });
}
CUDART_PER_THREAD(cudaMemset2D_ptds, cudaMemset2D);

CUDART_EXPORT Error cudaMemset2DAsync(void* pointer, std::size_t pitch, int value,
                                      std::size_t width, std::size_t height, StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    if (capture_fill(runtime, stream, {pointer, pitch, byte_of(value), 1, width, height})) return;
    set_2d(runtime, pointer, pitch, value, width, height);
  });
}
CUDART_PER_THREAD(cudaMemset2DAsync_ptsz, cudaMemset2DAsync);

CUDART_EXPORT Error cudaMemset3D(PitchedPointer pitched, int value, Extent extent) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_legacy_while_capturing(runtime);
    set_3d(runtime, pitched, value, extent);
  });
}
CUDART_PER_THREAD(cudaMemset3D_ptds, cudaMemset3D);

CUDART_EXPORT Error cudaMemset3DAsync(PitchedPointer pitched, int value, Extent extent,
                                      StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    if (capture_fill_3d(runtime, stream, pitched, value, extent)) return;
    set_3d(runtime, pitched, value, extent);
  });
}
CUDART_PER_THREAD(cudaMemset3DAsync_ptsz, cudaMemset3DAsync);

// --- arrays -------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaMalloc3DArray(Array** array, const ChannelFormat* format, Extent extent,
                                      unsigned flags) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_while_capturing(runtime);
    require(array != nullptr && format != nullptr, "an array needs a format and a pointer");
    *array = runtime.add_array(*format, extent, flags);
  });
}

CUDART_EXPORT Error cudaMallocArray(Array** array, const ChannelFormat* format, std::size_t width,
                                    std::size_t height, unsigned flags) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_while_capturing(runtime);
    require(array != nullptr && format != nullptr, "an array needs a format and a pointer");
    *array = runtime.add_array(*format, {width, height, 0}, flags);
  });
}

CUDART_EXPORT Error cudaFreeArray(Array* array) {
  return call(__func__, [&](Runtime& runtime) {
    refuse_while_capturing(runtime);
    if (array != nullptr) runtime.remove_array(array);
  });
}

CUDART_EXPORT Error cudaArrayGetInfo(ChannelFormat* format, Extent* extent, unsigned* flags,
                                     Array* array) {
  return call(__func__, [&](Runtime& runtime) {
    const Array& found = runtime.array(array);
    if (format != nullptr) *format = found.format;
    if (extent != nullptr) *extent = found.extent;
    if (flags != nullptr) *flags = found.flags;
  });
}
