#include "stand_ins/state/memory_operations.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "stand_ins/state/host_memory.h"
#include "stand_ins/state/recording.h"

namespace warpstack::cudart {
namespace {

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

/// Refuses a box in inaccessible host memory, or that leaves the device's memory. None of its sides
/// is 0.
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
  // Memory between the rows need not exist.
  for (std::uint64_t z = 0; z < depth; ++z) {
    for (std::uint64_t y = 0; y < height; ++y) {
      runtime.check_host(place.address + z * place.slice_pitch + y * place.row_pitch, width,
                         writes);
    }
  }
}

void copy_box(Runtime& runtime, Place target, Place source, std::uint64_t width,
              std::uint64_t height, std::uint64_t depth, bool check_only = false) {
  if (width == 0 || height == 0 || depth == 0) return;
  check_box(runtime, source, width, height, depth, false);
  check_box(runtime, target, width, height, depth, true);
  if (check_only) return;
  for (std::uint64_t z = 0; z < depth; ++z) {
    for (std::uint64_t y = 0; y < height; ++y) {
      runtime.copy_unchecked(target.address + z * target.slice_pitch + y * target.row_pitch,
                             source.address + z * source.slice_pitch + y * source.row_pitch, width);
    }
  }
  record_copy(runtime, target.address, source.address, width * height * depth);
  runtime.pass_time(call_time);
}

/// Refuses a copy whose direction makes a host address a device address.
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

/// Refuses a direction other than to, or from, a device variable or array.
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

/// Copies `bytes` between a plain buffer and an array as consecutive rows, from byte x of row y on.
void copy_stream(Runtime& runtime, const Array& array, std::size_t x, std::size_t y,
                 std::uint64_t buffer, std::size_t bytes, bool to_array) {
  const std::size_t row = array.extent.width * array.texel_bytes;
  const std::uint64_t begin = buffer;
  const std::size_t all = bytes;
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
  if (all > 0) {
    record_copy(runtime, to_array ? array.address : begin, to_array ? begin : array.address, all);
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

void copy_3d(Runtime& runtime, const Copy3D* copy, bool check_only) {
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
  copy_box(runtime, target, source, width, extent.height, extent.depth, check_only);
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
  record_fill(runtime, place.address, width * height * depth);
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

}  // namespace

void copy_plain(Runtime& runtime, void* target, const void* source, std::size_t bytes,
                MemcpyKind kind) {
  if (bytes == 0) return;
  check_direction(runtime, address_of(target), address_of(source), kind);
  runtime.copy(address_of(target), address_of(source), bytes);
  record_copy(runtime, address_of(target), address_of(source), bytes);
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

bool capture_copy(Runtime& runtime, StreamHandle stream, const CopyWork& work) {
  if (capture_of(runtime, stream) == nullptr) return false;
  run_copy(runtime, work.copy, true);
  return capture(runtime, stream, work);
}

bool capture_fill(Runtime& runtime, StreamHandle stream, const FillParameters& fill) {
  if (capture_of(runtime, stream) == nullptr) return false;
  run_fill(runtime, fill, true);
  return capture(runtime, stream, FillWork{fill});
}

std::uint32_t byte_of(int value) { return static_cast<std::uint8_t>(value); }

Copy3D part_of_array(Runtime& runtime, const Array* array, std::size_t x, std::size_t width,
                     std::size_t height) {
  const std::size_t texel = runtime.array(array).texel_bytes;
  require(x % texel == 0 && width % texel == 0, "the copy is not one of whole texels");
  Copy3D copy{};
  copy.source_position.x = x / texel;
  copy.extent = {width / texel, height, 1};
  return copy;
}

void refuse_stream_copy(Runtime& runtime, StreamHandle stream) {
  if (Capture* const capture = capture_of(runtime, stream)) {
    capture->invalidated = true;
    throw Failure(Error::capture_unsupported,
                  "this copy cannot be captured: use cudaMemcpy2DToArrayAsync or "
                  "cudaMemcpy2DFromArrayAsync",
                  true);
  }
}

void copy_2d_to_array(Runtime& runtime, Array* target, std::size_t x, std::size_t y,
                      const void* source, std::size_t source_pitch, std::size_t width,
                      std::size_t height, MemcpyKind kind) {
  check_to_device(runtime, source, kind);
  require(width <= source_pitch, "a row is longer than the pitch", Error{12});
  const Place place = place_in(runtime.array(target), x, y, 0, width, height, 1);
  copy_box(runtime, place, {address_of(source), source_pitch, 0}, width, height, 1);
}

void copy_2d_from_array(Runtime& runtime, void* target, std::size_t target_pitch,
                        const Array* source, std::size_t x, std::size_t y, std::size_t width,
                        std::size_t height, MemcpyKind kind) {
  check_from_device(runtime, target, kind);
  require(width <= target_pitch, "a row is longer than the pitch", Error{12});
  const Place place = place_in(runtime.array(source), x, y, 0, width, height, 1);
  copy_box(runtime, {address_of(target), target_pitch, 0}, place, width, height, 1);
}

void copy_to_array(Runtime& runtime, Array* target, std::size_t x, std::size_t y,
                   const void* source, std::size_t bytes, MemcpyKind kind) {
  check_to_device(runtime, source, kind);
  copy_stream(runtime, runtime.array(target), x, y, address_of(source), bytes, true);
}

void copy_from_array(Runtime& runtime, void* target, const Array* source, std::size_t x,
                     std::size_t y, std::size_t bytes, MemcpyKind kind) {
  check_from_device(runtime, target, kind);
  copy_stream(runtime, runtime.array(source), x, y, address_of(target), bytes, false);
}

void copy_to_symbol(Runtime& runtime, const void* symbol, const void* source, std::size_t bytes,
                    std::size_t offset, MemcpyKind kind) {
  const std::uint64_t target = part_of_symbol(runtime, symbol, offset, bytes);
  if (bytes == 0) return;
  check_to_device(runtime, source, kind);
  runtime.copy(target, address_of(source), bytes);
  record_copy(runtime, target, address_of(source), bytes);
  runtime.pass_time(call_time);
}

void copy_from_symbol(Runtime& runtime, void* target, const void* symbol, std::size_t bytes,
                      std::size_t offset, MemcpyKind kind) {
  const std::uint64_t source = part_of_symbol(runtime, symbol, offset, bytes);
  if (bytes == 0) return;
  check_from_device(runtime, target, kind);
  runtime.copy(address_of(target), source, bytes);
  record_copy(runtime, address_of(target), source, bytes);
  runtime.pass_time(call_time);
}

void set(Runtime& runtime, void* pointer, int value, std::size_t bytes) {
  fill(runtime, address_of(pointer), value, bytes);
  if (bytes > 0) record_fill(runtime, address_of(pointer), bytes);
  runtime.pass_time(call_time);
}

void set_2d(Runtime& runtime, void* pointer, std::size_t pitch, int value, std::size_t width,
            std::size_t height) {
  require(height <= 1 || width <= pitch, "a row is longer than the pitch", Error{12});
  fill_box(runtime, {address_of(pointer), pitch, 0}, value, width, height, 1);
}

void set_3d(Runtime& runtime, PitchedPointer pitched, int value, Extent extent) {
  require(extent.width <= pitched.pitch, "a row is longer than the pitch", Error{12});
  const std::uint64_t slice = product(pitched.pitch, pitched.height);
  fill_box(runtime, {address_of(pitched.pointer), pitched.pitch, slice}, value, extent.width,
           extent.height, extent.depth);
}

CopyWork plain_copy(const void* target, const void* source, std::size_t bytes, MemcpyKind kind) {
  Copy3D copy{};
  copy.source = {const_cast<void*>(source), bytes, bytes, 1};
  copy.target = {const_cast<void*>(target), bytes, bytes, 1};
  copy.extent = {bytes, 1, 1};
  copy.kind = kind;
  return {copy};
}

CopyWork copy_work_to_symbol(Runtime& runtime, const void* symbol, const void* source,
                             std::size_t bytes, std::size_t offset, MemcpyKind kind) {
  const std::uint64_t target = part_of_symbol(runtime, symbol, offset, bytes);
  check_to_device(runtime, source, kind);
  return plain_copy(pointer_to(target), source, bytes, kind);
}

CopyWork copy_work_from_symbol(Runtime& runtime, void* target, const void* symbol,
                               std::size_t bytes, std::size_t offset, MemcpyKind kind) {
  const std::uint64_t source = part_of_symbol(runtime, symbol, offset, bytes);
  check_from_device(runtime, target, kind);
  return plain_copy(target, pointer_to(source), bytes, kind);
}

void run_copy(Runtime& runtime, const Copy3D& copy, bool check_only) {
  copy_3d(runtime, &copy, check_only);
}

void run_fill(Runtime& runtime, const FillParameters& fill, bool check_only) {
  const std::size_t bytes = fill.element_bytes;
  require(bytes == 1 || bytes == 2 || bytes == 4, "elements of a fill have 1, 2 or 4 bytes");
  const std::size_t width = product(fill.width, bytes);
  require(fill.height <= 1 || width <= fill.pitch, "a row is longer than the pitch", Error{12});
  require(address_of(fill.target) % bytes == 0 && (fill.height <= 1 || fill.pitch % bytes == 0),
          "the target or the pitch of a fill is not a multiple of its elements");
  if (width == 0 || fill.height == 0) return;
  const Place place{address_of(fill.target), fill.pitch, 0};
  require(runtime.on_device(place.address), "the target is not in device memory");
  check_box(runtime, place, width, fill.height, 1, true);
  if (check_only) return;
  if (bytes == 1) {
    return fill_box(runtime, place, static_cast<int>(fill.value), width, fill.height, 1);
  }
  std::vector<std::byte> row(width);
  for (std::size_t x = 0; x < width; x += bytes) std::memcpy(row.data() + x, &fill.value, bytes);
  for (std::size_t y = 0; y < fill.height; ++y) {
    runtime.memory().write(place.address + y * fill.pitch, row.data(), width);
  }
  record_fill(runtime, place.address, width * fill.height);
  runtime.pass_time(call_time);
}

void copy_array_to_array(Runtime& runtime, Array* target, std::size_t target_x,
                         std::size_t target_y, const Array* source, std::size_t source_x,
                         std::size_t source_y, std::size_t width, std::size_t height) {
  copy_box(runtime, place_in(runtime.array(target), target_x, target_y, 0, width, height, 1),
           place_in(runtime.array(source), source_x, source_y, 0, width, height, 1), width, height,
           1);
}

bool capture_fill_3d(Runtime& runtime, StreamHandle stream, const PitchedPointer& pitched,
                     int value, const Extent& extent) {
  if (capture_of(runtime, stream) == nullptr) return false;
  const std::uint64_t slice = product(pitched.pitch, pitched.height);
  for (std::size_t z = 0; z < extent.depth; ++z) {
    void* const place = static_cast<std::byte*>(pitched.pointer) + product(z, slice);
    capture_fill(runtime, stream,
                 {place, pitched.pitch, byte_of(value), 1, extent.width, extent.height});
  }
  return true;
}

}  // namespace warpstack::cudart
