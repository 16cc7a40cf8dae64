#pragma once

#include <cstddef>
#include <cstdint>

#include "stand_ins/state/graph.h"
#include "stand_ins/state/runtime.h"

/// The copies and fills of the runtime's interface, run at once or as nodes of a graph. All throw
/// Failure, with CUDA's code, if the program may not do this.
namespace warpstack::cudart {

void copy_plain(Runtime& runtime, void* target, const void* source, std::size_t bytes,
                MemcpyKind kind);
void copy_2d(Runtime& runtime, void* target, std::size_t target_pitch, const void* source,
             std::size_t source_pitch, std::size_t width, std::size_t height, MemcpyKind kind);
void copy_2d_to_array(Runtime& runtime, Array* target, std::size_t x, std::size_t y,
                      const void* source, std::size_t source_pitch, std::size_t width,
                      std::size_t height, MemcpyKind kind);
void copy_2d_from_array(Runtime& runtime, void* target, std::size_t target_pitch,
                        const Array* source, std::size_t x, std::size_t y, std::size_t width,
                        std::size_t height, MemcpyKind kind);
void copy_array_to_array(Runtime& runtime, Array* target, std::size_t target_x,
                         std::size_t target_y, const Array* source, std::size_t source_x,
                         std::size_t source_y, std::size_t width, std::size_t height);
/// Copy `bytes` between a plain buffer and an array as consecutive rows, from byte x of row y on.
void copy_to_array(Runtime& runtime, Array* target, std::size_t x, std::size_t y,
                   const void* source, std::size_t bytes, MemcpyKind kind);
void copy_from_array(Runtime& runtime, void* target, const Array* source, std::size_t x,
                     std::size_t y, std::size_t bytes, MemcpyKind kind);
void copy_to_symbol(Runtime& runtime, const void* symbol, const void* source, std::size_t bytes,
                    std::size_t offset, MemcpyKind kind);
void copy_from_symbol(Runtime& runtime, void* target, const void* symbol, std::size_t bytes,
                      std::size_t offset, MemcpyKind kind);
void set(Runtime& runtime, void* pointer, int value, std::size_t bytes);
void set_2d(Runtime& runtime, void* pointer, std::size_t pitch, int value, std::size_t width,
            std::size_t height);
void set_3d(Runtime& runtime, PitchedPointer pitched, int value, Extent extent);

/// Make a copy or a fill a node of the graph that the stream captures. False if it is not
/// capturing.
bool capture_copy(Runtime& runtime, StreamHandle stream, const CopyWork& work);
bool capture_fill(Runtime& runtime, StreamHandle stream, const FillParameters& fill);
bool capture_fill_3d(Runtime& runtime, StreamHandle stream, const PitchedPointer& pitched,
                     int value, const Extent& extent);
/// Refuses a capturing stream for copies between an array and a plain buffer, which no node can do.
void refuse_stream_copy(Runtime& runtime, StreamHandle stream);
/// The byte that a fill with this value writes.
std::uint32_t byte_of(int value);
/// A copy of a part of an array for a node, with the extent and position of the source in texels.
Copy3D part_of_array(Runtime& runtime, const Array* array, std::size_t x, std::size_t width,
                     std::size_t height);

}  // namespace warpstack::cudart
