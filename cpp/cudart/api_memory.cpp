// Memory: allocation, copies, fills, symbols, arrays.

#include <algorithm>

#include "cudart/host_memory.h"
#include "cudart/runtime.h"

using namespace warpstack::cudart;

namespace {

/// Rows of cudaMallocPitch begin at multiples of this, as on every GPU since Kepler.
constexpr std::size_t pitch_alignment = 512;

/// A box of bytes in host or device memory.
struct Place {
  std::uint64_t address = 0;
  std::uint64_t row_pitch = 0;
  std::uint64_t slice_pitch = 0;
};

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  require(a <= ~std::uint64_t{0} - b, "the copy goes beyond all addresses");
  return a + b;
}

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  require(b == 0 || a <= ~std::uint64_t{0} / b, "the copy goes beyond all addresses");
  return a * b;
}

/// Refuses a box that lies in host memory which the program may not touch, or that leaves the
/// device's memory. No side of it is 0.
void check_box(Runtime& runtime, const Place& place, std::uint64_t width, std::uint64_t height,
               std::uint64_t depth, bool writes) {
  const std::uint64_t bytes =
      sum(sum(product(depth - 1, place.slice_pitch), product(height - 1, place.row_pitch)), width);
  const std::uint64_t last = sum(place.address, bytes - 1);
  if (runtime.on_device(place.address)) {
    require(runtime.on_device(last), "the copy goes beyond the device's memory");
    return;
  }
  const auto accessible = writes ? host_writable : host_readable;
  if (!runtime.meets_device(place.address, bytes) && accessible(place.address, bytes)) return;
  // What lies between the rows need not be there.
  for (std::uint64_t z = 0; z < depth; ++z) {
    for (std::uint64_t y = 0; y < height; ++y) {
      runtime.check_host(place.address + z * place.slice_pitch + y * place.row_pitch, width,
                         writes);
    }
  }
}

void copy_box(Runtime& runtime, Place target, Place source, std::uint64_t width,
              std::uint64_t height, std::uint64_t depth) {
  if (width == 0 || height == 0 || depth == 0) return;
  check_box(runtime, source, width, height, depth, false);
  check_box(runtime, target, width, height, depth, true);
  for (std::uint64_t z = 0; z < depth; ++z) {
    for (std::uint64_t y = 0; y < height; ++y) {
      runtime.copy_unchecked(target.address + z * target.slice_pitch + y * target.row_pitch,
                             source.address + z * source.slice_pitch + y * source.row_pitch, width);
    }
  }
  runtime.pass_time(call_time);
}

/// Refuses a copy whose direction says that a host address is a device address.
void check_direction(Runtime& runtime, std::uint64_t target, std::uint64_t source,
                     MemcpyKind kind) {
  const int value = static_cast<int>(kind);
  require(value >= 0 && value <= 4, "unknown direction of a copy", Error{21});
  if (kind == MemcpyKind::host_to_device || kind == MemcpyKind::device_to_device) {
    require(runtime.on_device(target), "the target is not in device memory");
  }
  if (kind == MemcpyKind::device_to_host || kind == MemcpyKind::device_to_device) {
    require(runtime.on_device(source), "the source is not in device memory");
  }
}

/// Refuses a direction that does not lead to, or from, a device variable or array.
void check_to_device(Runtime& runtime, const void* source, MemcpyKind kind) {
  require(kind != MemcpyKind::device_to_host && kind != MemcpyKind::host_to_host,
          "the direction of the copy is not to the device", Error{21});
  check_direction(runtime, warpstack::simt::device_base, address_of(source), kind);
}

void check_from_device(Runtime& runtime, const void* target, MemcpyKind kind) {
  require(kind != MemcpyKind::host_to_device && kind != MemcpyKind::host_to_host,
          "the direction of the copy is not from the device", Error{21});
  check_direction(runtime, address_of(target), warpstack::simt::device_base, kind);
}

void copy_plain(Runtime& runtime, void* target, const void* source, std::size_t bytes,
                MemcpyKind kind) {
  if (bytes == 0) return;
  check_direction(runtime, address_of(target), address_of(source), kind);
  runtime.copy(address_of(target), address_of(source), bytes);
  runtime.pass_time(call_time);
}

void copy_2d(Runtime& runtime, void* target, std::size_t target_pitch, const void* source,
             std::size_t source_pitch, std::size_t width, std::size_t height, MemcpyKind kind) {
  if (width == 0 || height == 0) return;
  require(width <= target_pitch && width <= source_pitch, "a row is longer than the pitch",
          Error{12});
  check_direction(runtime, address_of(target), address_of(source), kind);
  copy_box(runtime, {address_of(target), target_pitch, 0}, {address_of(source), source_pitch, 0},
           width, height, 1);
}

/// The place of byte `x` of row `y` of slice `z` of an array; `width`, `height` and `depth` must
/// fit.
Place place_in(const Array& array, std::size_t x, std::size_t y, std::size_t z, std::size_t width,
               std::size_t height, std::size_t depth) {
  const std::size_t row = array.extent.width * array.texel_bytes;
  const std::size_t rows = std::max<std::size_t>(array.extent.height, 1);
  const std::size_t slices = std::max<std::size_t>(array.extent.depth, 1);
  require(x <= row && width <= row - x && y <= rows && height <= rows - y && z <= slices &&
              depth <= slices - z,
          "the copy goes beyond the array");
  return {array.address + z * array.slice_bytes + y * array.row_bytes + x, array.row_bytes,
          array.slice_bytes};
}

/// Copies `bytes` between a plain buffer and an array whose rows follow each other, from byte x of
/// row y on.
void copy_stream(Runtime& runtime, const Array& array, std::size_t x, std::size_t y,
                 std::uint64_t buffer, std::size_t bytes, bool to_array) {
  const std::size_t row = array.extent.width * array.texel_bytes;
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, row - std::min(x, row));
    require(part > 0, "the copy goes beyond the array");
    const std::uint64_t place = place_in(array, x, y, 0, part, 1, 1).address;
    runtime.copy(to_array ? place : buffer, to_array ? buffer : place, part);
    buffer += part;
    bytes -= part;
    x = 0;
    ++y;
  }
  runtime.pass_time(call_time);
}

/// One side of cudaMemcpy3D.
Place side_of(Runtime& runtime, const Array* array, const PitchedPointer& pitched,
              const Position& position, std::size_t width, const Extent& extent) {
  require((array == nullptr) != (pitched.pointer == nullptr),
          "each side of a copy is either an array or a pointer");
  if (array != nullptr) {
    const Array& found = runtime.array(array);
    return place_in(found, product(position.x, found.texel_bytes), position.y, position.z, width,
                    extent.height, extent.depth);
  }
  require(position.x <= pitched.pitch && width <= pitched.pitch - position.x,
          "a row is longer than the pitch", Error{12});
  const std::uint64_t slice = product(pitched.pitch, pitched.height);
  const std::uint64_t offset =
      sum(sum(product(position.z, slice), product(position.y, pitched.pitch)), position.x);
  return {sum(address_of(pitched.pointer), offset), pitched.pitch, slice};
}

void copy_3d(Runtime& runtime, const Copy3D* copy) {
  require(copy != nullptr, "no copy is described");
  const Extent& extent = copy->extent;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return;
  // With an array the width is in texels, otherwise in bytes.
  std::size_t unit = 1;
  for (const Array* array : {copy->source_array, copy->target_array}) {
    if (array != nullptr) unit = runtime.array(array).texel_bytes;
  }
  const std::size_t width = product(extent.width, unit);
  const Place target =
      side_of(runtime, copy->target_array, copy->target, copy->target_position, width, extent);
  const Place source =
      side_of(runtime, copy->source_array, copy->source, copy->source_position, width, extent);
  check_direction(runtime, target.address, source.address, copy->kind);
  copy_box(runtime, target, source, width, extent.height, extent.depth);
}

void fill(Runtime& runtime, std::uint64_t address, int value, std::uint64_t bytes) {
  if (bytes == 0) return;
  require(runtime.on_device(address), "the target is not in device memory");
  runtime.memory().fill(address, static_cast<std::uint8_t>(value), bytes);
}

void fill_box(Runtime& runtime, const Place& place, int value, std::uint64_t width,
              std::uint64_t height, std::uint64_t depth) {
  if (width == 0 || height == 0 || depth == 0) return;
  require(runtime.on_device(place.address), "the target is not in device memory");
  check_box(runtime, place, width, height, depth, true);
  for (std::uint64_t z = 0; z < depth; ++z) {
    for (std::uint64_t y = 0; y < height; ++y) {
      fill(runtime, place.address + z * place.slice_pitch + y * place.row_pitch, value, width);
    }
  }
  runtime.pass_time(call_time);
}

/// The address of `bytes` of a device variable from `offset` on.
std::uint64_t part_of_symbol(Runtime& runtime, const void* shadow, std::size_t offset,
                             std::size_t bytes) {
  const auto symbol = runtime.symbol(shadow);
  require(offset <= symbol.bytes && bytes <= symbol.bytes - offset,
          "the copy goes beyond the variable");
  return symbol.address + offset;
}

std::size_t pitch_of(std::size_t width) {
  require(width <= ~std::size_t{0} - pitch_alignment, "too large", Error::memory_allocation);
  return (width + pitch_alignment - 1) / pitch_alignment * pitch_alignment;
}

void allocate_to(Runtime& runtime, void** pointer, std::size_t bytes) {
  require(pointer != nullptr, "nowhere to put the address");
  *pointer = bytes == 0 ? nullptr : pointer_to(runtime.allocate(bytes));
}

void allocate_host(Runtime& runtime, void** pointer, std::size_t bytes) {
  require(pointer != nullptr, "nowhere to put the address");
  *pointer = bytes == 0 ? nullptr
                        : pointer_to(runtime.allocate_shared(bytes, PointerAttributes::Kind::host));
}

}  // namespace

// --- allocation ---------------------------------------------------------------------------------

CUDART_EXPORT Error cudaMalloc(void** pointer, std::size_t bytes) {
  return call(__func__, [&](Runtime& runtime) { allocate_to(runtime, pointer, bytes); });
}

CUDART_EXPORT Error cudaMallocAsync(void** pointer, std::size_t bytes, StreamHandle) {
  return call(__func__, [&](Runtime& runtime) { allocate_to(runtime, pointer, bytes); });
}
CUDART_ALIAS(cudaMallocAsync_ptsz, cudaMallocAsync);

CUDART_EXPORT Error cudaMallocManaged(void** pointer, std::size_t bytes, unsigned) {
  return call(__func__, [&](Runtime& runtime) {
    require(pointer != nullptr && bytes > 0, "managed memory needs a size and a pointer");
    *pointer = pointer_to(runtime.allocate_shared(bytes, PointerAttributes::Kind::managed));
  });
}

CUDART_EXPORT Error cudaMallocHost(void** pointer, std::size_t bytes) {
  return call(__func__, [&](Runtime& runtime) { allocate_host(runtime, pointer, bytes); });
}

CUDART_EXPORT Error cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return call(__func__, [&](Runtime& runtime) { allocate_host(runtime, pointer, bytes); });
}

CUDART_EXPORT Error cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width,
                                    std::size_t height) {
  return call(__func__, [&](Runtime& runtime) {
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
    if (pointer != nullptr) runtime.free(address_of(pointer));
  });
}

CUDART_EXPORT Error cudaFreeAsync(void* pointer, StreamHandle) { return cudaFree(pointer); }
CUDART_ALIAS(cudaFreeAsync_ptsz, cudaFreeAsync);

CUDART_EXPORT Error cudaFreeHost(void* pointer) {
  return call(__func__, [&](Runtime& runtime) {
    if (pointer != nullptr) runtime.free(address_of(pointer));
  });
}

CUDART_EXPORT Error cudaHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned) {
  return call(__func__, [&](Runtime& runtime) {
    require(device_pointer != nullptr && host_pointer != nullptr, "a pointer is null");
    if (!runtime.on_device(address_of(host_pointer))) {
      throw Failure(Error::not_supported,
                    "only memory of cudaHostAlloc, cudaMallocHost and cudaMallocManaged is mapped, "
                    "not memory that cudaHostRegister registers",
                    true);
    }
    *device_pointer = host_pointer;
  });
}

CUDART_EXPORT Error cudaHostGetFlags(unsigned* flags, void* pointer) {
  return call(__func__, [&](Runtime&) {
    require(flags != nullptr && pointer != nullptr, "a pointer is null");
    *flags = 2;  // cudaHostAllocMapped
  });
}

/// Pinning changes nothing here.
CUDART_EXPORT Error cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
  return call(__func__, [&](Runtime& runtime) {
    require(pointer != nullptr && bytes > 0, "there is no memory to register");
    if (!runtime.on_device(address_of(pointer))) {
      runtime.check_host(address_of(pointer), bytes, false);
    }
  });
}

CUDART_EXPORT Error cudaHostUnregister(void* pointer) {
  return call(__func__, [&](Runtime&) { require(pointer != nullptr, "the pointer is null"); });
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

/// Hints change nothing: host and device share managed memory. CUDA 12 and 13 pass other arguments.
CUDART_EXPORT Error cudaMemPrefetchAsync() {
  return call(__func__, [](Runtime&) {});
}
CUDART_ALIAS(cudaMemPrefetchAsync_ptsz, cudaMemPrefetchAsync);
CUDART_ALIAS(cudaMemPrefetchAsync_v2, cudaMemPrefetchAsync);
CUDART_ALIAS(cudaMemPrefetchAsync_v2_ptsz, cudaMemPrefetchAsync);
CUDART_ALIAS(cudaMemAdvise, cudaMemPrefetchAsync);
CUDART_ALIAS(cudaMemAdvise_v2, cudaMemPrefetchAsync);
CUDART_ALIAS(cudaStreamAttachMemAsync, cudaMemPrefetchAsync);
CUDART_ALIAS(cudaStreamAttachMemAsync_ptsz, cudaMemPrefetchAsync);

// --- copies -------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaMemcpy(void* target, const void* source, std::size_t bytes,
                               MemcpyKind kind) {
  return call(__func__,
              [&](Runtime& runtime) { copy_plain(runtime, target, source, bytes, kind); });
}
CUDART_ALIAS(cudaMemcpy_ptds, cudaMemcpy);

CUDART_EXPORT Error cudaMemcpyAsync(void* target, const void* source, std::size_t bytes,
                                    MemcpyKind kind, StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    runtime.stream(stream);
    copy_plain(runtime, target, source, bytes, kind);
  });
}
CUDART_ALIAS(cudaMemcpyAsync_ptsz, cudaMemcpyAsync);

CUDART_EXPORT Error cudaMemcpyPeer(void* target, int, const void* source, int, std::size_t bytes) {
  return cudaMemcpy(target, source, bytes, MemcpyKind::any);
}

CUDART_EXPORT Error cudaMemcpyPeerAsync(void* target, int, const void* source, int,
                                        std::size_t bytes, StreamHandle stream) {
  return cudaMemcpyAsync(target, source, bytes, MemcpyKind::any, stream);
}

CUDART_EXPORT Error cudaMemcpy2D(void* target, std::size_t target_pitch, const void* source,
                                 std::size_t source_pitch, std::size_t width, std::size_t height,
                                 MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    copy_2d(runtime, target, target_pitch, source, source_pitch, width, height, kind);
  });
}
CUDART_ALIAS(cudaMemcpy2D_ptds, cudaMemcpy2D);

CUDART_EXPORT Error cudaMemcpy2DAsync(void* target, std::size_t target_pitch, const void* source,
                                      std::size_t source_pitch, std::size_t width,
                                      std::size_t height, MemcpyKind kind, StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    runtime.stream(stream);
    copy_2d(runtime, target, target_pitch, source, source_pitch, width, height, kind);
  });
}
CUDART_ALIAS(cudaMemcpy2DAsync_ptsz, cudaMemcpy2DAsync);

CUDART_EXPORT Error cudaMemcpy2DToArray(Array* target, std::size_t x, std::size_t y,
                                        const void* source, std::size_t source_pitch,
                                        std::size_t width, std::size_t height, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    check_to_device(runtime, source, kind);
    require(width <= source_pitch, "a row is longer than the pitch", Error{12});
    const Place place = place_in(runtime.array(target), x, y, 0, width, height, 1);
    copy_box(runtime, place, {address_of(source), source_pitch, 0}, width, height, 1);
  });
}
CUDART_ALIAS(cudaMemcpy2DToArray_ptds, cudaMemcpy2DToArray);

CUDART_EXPORT Error cudaMemcpy2DToArrayAsync(Array* target, std::size_t x, std::size_t y,
                                             const void* source, std::size_t source_pitch,
                                             std::size_t width, std::size_t height, MemcpyKind kind,
                                             StreamHandle) {
  return cudaMemcpy2DToArray(target, x, y, source, source_pitch, width, height, kind);
}
CUDART_ALIAS(cudaMemcpy2DToArrayAsync_ptsz, cudaMemcpy2DToArrayAsync);

CUDART_EXPORT Error cudaMemcpy2DFromArray(void* target, std::size_t target_pitch,
                                          const Array* source, std::size_t x, std::size_t y,
                                          std::size_t width, std::size_t height, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    check_from_device(runtime, target, kind);
    require(width <= target_pitch, "a row is longer than the pitch", Error{12});
    const Place place = place_in(runtime.array(source), x, y, 0, width, height, 1);
    copy_box(runtime, {address_of(target), target_pitch, 0}, place, width, height, 1);
  });
}
CUDART_ALIAS(cudaMemcpy2DFromArray_ptds, cudaMemcpy2DFromArray);

CUDART_EXPORT Error cudaMemcpy2DFromArrayAsync(void* target, std::size_t target_pitch,
                                               const Array* source, std::size_t x, std::size_t y,
                                               std::size_t width, std::size_t height,
                                               MemcpyKind kind, StreamHandle) {
  return cudaMemcpy2DFromArray(target, target_pitch, source, x, y, width, height, kind);
}
CUDART_ALIAS(cudaMemcpy2DFromArrayAsync_ptsz, cudaMemcpy2DFromArrayAsync);

CUDART_EXPORT Error cudaMemcpy2DArrayToArray(Array* target, std::size_t target_x,
                                             std::size_t target_y, const Array* source,
                                             std::size_t source_x, std::size_t source_y,
                                             std::size_t width, std::size_t height, MemcpyKind) {
  return call(__func__, [&](Runtime& runtime) {
    copy_box(runtime, place_in(runtime.array(target), target_x, target_y, 0, width, height, 1),
             place_in(runtime.array(source), source_x, source_y, 0, width, height, 1), width,
             height, 1);
  });
}
CUDART_ALIAS(cudaMemcpy2DArrayToArray_ptds, cudaMemcpy2DArrayToArray);

CUDART_EXPORT Error cudaMemcpyToArray(Array* target, std::size_t x, std::size_t y,
                                      const void* source, std::size_t bytes, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    check_to_device(runtime, source, kind);
    copy_stream(runtime, runtime.array(target), x, y, address_of(source), bytes, true);
  });
}
CUDART_ALIAS(cudaMemcpyToArray_ptds, cudaMemcpyToArray);

CUDART_EXPORT Error cudaMemcpyToArrayAsync(Array* target, std::size_t x, std::size_t y,
                                           const void* source, std::size_t bytes, MemcpyKind kind,
                                           StreamHandle) {
  return cudaMemcpyToArray(target, x, y, source, bytes, kind);
}
CUDART_ALIAS(cudaMemcpyToArrayAsync_ptsz, cudaMemcpyToArrayAsync);

CUDART_EXPORT Error cudaMemcpyFromArray(void* target, const Array* source, std::size_t x,
                                        std::size_t y, std::size_t bytes, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    check_from_device(runtime, target, kind);
    copy_stream(runtime, runtime.array(source), x, y, address_of(target), bytes, false);
  });
}
CUDART_ALIAS(cudaMemcpyFromArray_ptds, cudaMemcpyFromArray);

CUDART_EXPORT Error cudaMemcpyFromArrayAsync(void* target, const Array* source, std::size_t x,
                                             std::size_t y, std::size_t bytes, MemcpyKind kind,
                                             StreamHandle) {
  return cudaMemcpyFromArray(target, source, x, y, bytes, kind);
}
CUDART_ALIAS(cudaMemcpyFromArrayAsync_ptsz, cudaMemcpyFromArrayAsync);

CUDART_EXPORT Error cudaMemcpy3D(const Copy3D* copy) {
  return call(__func__, [&](Runtime& runtime) { copy_3d(runtime, copy); });
}
CUDART_ALIAS(cudaMemcpy3D_ptds, cudaMemcpy3D);

CUDART_EXPORT Error cudaMemcpy3DAsync(const Copy3D* copy, StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    runtime.stream(stream);
    copy_3d(runtime, copy);
  });
}
CUDART_ALIAS(cudaMemcpy3DAsync_ptsz, cudaMemcpy3DAsync);

// --- symbols ------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaMemcpyToSymbol(const void* symbol, const void* source, std::size_t bytes,
                                       std::size_t offset, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    const std::uint64_t target = part_of_symbol(runtime, symbol, offset, bytes);
    if (bytes == 0) return;
    check_to_device(runtime, source, kind);
    runtime.copy(target, address_of(source), bytes);
    runtime.pass_time(call_time);
  });
}
CUDART_ALIAS(cudaMemcpyToSymbol_ptds, cudaMemcpyToSymbol);

CUDART_EXPORT Error cudaMemcpyToSymbolAsync(const void* symbol, const void* source,
                                            std::size_t bytes, std::size_t offset, MemcpyKind kind,
                                            StreamHandle) {
  return cudaMemcpyToSymbol(symbol, source, bytes, offset, kind);
}
CUDART_ALIAS(cudaMemcpyToSymbolAsync_ptsz, cudaMemcpyToSymbolAsync);

CUDART_EXPORT Error cudaMemcpyFromSymbol(void* target, const void* symbol, std::size_t bytes,
                                         std::size_t offset, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    const std::uint64_t source = part_of_symbol(runtime, symbol, offset, bytes);
    if (bytes == 0) return;
    check_from_device(runtime, target, kind);
    runtime.copy(address_of(target), source, bytes);
    runtime.pass_time(call_time);
  });
}
CUDART_ALIAS(cudaMemcpyFromSymbol_ptds, cudaMemcpyFromSymbol);

CUDART_EXPORT Error cudaMemcpyFromSymbolAsync(void* target, const void* symbol, std::size_t bytes,
                                              std::size_t offset, MemcpyKind kind, StreamHandle) {
  return cudaMemcpyFromSymbol(target, symbol, bytes, offset, kind);
}
CUDART_ALIAS(cudaMemcpyFromSymbolAsync_ptsz, cudaMemcpyFromSymbolAsync);

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
    fill(runtime, address_of(pointer), value, bytes);
    runtime.pass_time(call_time);
  });
}
CUDART_ALIAS(cudaMemset_ptds, cudaMemset);

CUDART_EXPORT Error cudaMemsetAsync(void* pointer, int value, std::size_t bytes, StreamHandle) {
  return cudaMemset(pointer, value, bytes);
}
CUDART_ALIAS(cudaMemsetAsync_ptsz, cudaMemsetAsync);

CUDART_EXPORT Error cudaMemset2D(void* pointer, std::size_t pitch, int value, std::size_t width,
                                 std::size_t height) {
  return call(__func__, [&](Runtime& runtime) {
    require(height <= 1 || width <= pitch, "a row is longer than the pitch", Error{12});
    fill_box(runtime, {address_of(pointer), pitch, 0}, value, width, height, 1);
  });
}
CUDART_ALIAS(cudaMemset2D_ptds, cudaMemset2D);

CUDART_EXPORT Error cudaMemset2DAsync(void* pointer, std::size_t pitch, int value,
                                      std::size_t width, std::size_t height, StreamHandle) {
  return cudaMemset2D(pointer, pitch, value, width, height);
}
CUDART_ALIAS(cudaMemset2DAsync_ptsz, cudaMemset2DAsync);

CUDART_EXPORT Error cudaMemset3D(PitchedPointer pitched, int value, Extent extent) {
  return call(__func__, [&](Runtime& runtime) {
    require(extent.width <= pitched.pitch, "a row is longer than the pitch", Error{12});
    const std::uint64_t slice = product(pitched.pitch, pitched.height);
    fill_box(runtime, {address_of(pitched.pointer), pitched.pitch, slice}, value, extent.width,
             extent.height, extent.depth);
  });
}
CUDART_ALIAS(cudaMemset3D_ptds, cudaMemset3D);

CUDART_EXPORT Error cudaMemset3DAsync(PitchedPointer pitched, int value, Extent extent,
                                      StreamHandle) {
  return cudaMemset3D(pitched, value, extent);
}
CUDART_ALIAS(cudaMemset3DAsync_ptsz, cudaMemset3DAsync);

// --- arrays -------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaMalloc3DArray(Array** array, const ChannelFormat* format, Extent extent,
                                      unsigned flags) {
  return call(__func__, [&](Runtime& runtime) {
    require(array != nullptr && format != nullptr, "an array needs a format and a pointer");
    *array = runtime.add_array(*format, extent, flags);
  });
}

CUDART_EXPORT Error cudaMallocArray(Array** array, const ChannelFormat* format, std::size_t width,
                                    std::size_t height, unsigned flags) {
  return call(__func__, [&](Runtime& runtime) {
    require(array != nullptr && format != nullptr, "an array needs a format and a pointer");
    *array = runtime.add_array(*format, {width, height, 0}, flags);
  });
}

CUDART_EXPORT Error cudaFreeArray(Array* array) {
  return call(__func__, [&](Runtime& runtime) {
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
