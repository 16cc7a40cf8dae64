// Textures and surfaces: objects, and the texture references of CUDA 11 and earlier.

#include <algorithm>
#include <map>

#include "stand_ins/state/runtime.h"

using namespace warpstack::cudart;
using warpstack::simt::AddressMode;
using warpstack::simt::Texture;

namespace {

/// The program's descriptions, kept for functions that return them.
struct Description {
  ResourceDescription resource;
  TextureDescription texture;
};

std::map<std::uint64_t, Description>& descriptions() {
  // Never destroyed: see Runtime::get().
  static auto* const table = new std::map<std::uint64_t, Description>;
  return *table;
}

void set_format(Texture& texture, const ChannelFormat& format) {
  texture.channels = 0;
  for (const int bits : {format.x, format.y, format.z, format.w}) {
    if (bits > 0) ++texture.channels;
  }
  require((format.x == 8 || format.x == 16 || format.x == 32) && texture.channels != 3 &&
              texture.channels > 0,
          "texels have 1, 2 or 4 channels of 8, 16 or 32 bits", Error::invalid_channel_descriptor);
  texture.channel_bytes = static_cast<std::uint32_t>(format.x / 8);
  switch (format.kind) {
    case ChannelKind::sint:
      texture.format = Texture::Format::sint;
      break;
    case ChannelKind::uint:
      texture.format = Texture::Format::uint;
      break;
    case ChannelKind::floating:
      texture.format = Texture::Format::floating;
      break;
    default:
      throw Failure(Error::invalid_channel_descriptor, "texels of no kind");
  }
}

std::uint64_t texel_bytes(const Texture& texture) {
  return std::uint64_t{texture.channels} * texture.channel_bytes;
}

Texture texture_of(const Array& array) {
  Texture texture;
  set_format(texture, array.format);
  texture.address = array.address;
  texture.cube = (array.flags & array_cubemap) != 0;
  if (texture.cube || (array.flags & array_layered) != 0) texture.layers = array.extent.depth;
  const std::size_t depth = texture.layers > 0 ? 0 : array.extent.depth;
  texture.dimensions = depth > 0 ? 3 : array.extent.height > 0 ? 2 : 1;
  texture.size = {array.extent.width, std::max<std::size_t>(array.extent.height, 1),
                  std::max<std::size_t>(depth, 1)};
  texture.row_bytes = array.row_bytes;
  texture.slice_bytes = array.slice_bytes;
  return texture;
}

Texture linear_texture(Runtime& runtime, const void* pointer, const ChannelFormat& format,
                       std::size_t bytes) {
  Texture texture;
  set_format(texture, format);
  require(runtime.on_device(address_of(pointer)), "the texture's memory is not on the device");
  require(bytes >= texel_bytes(texture), "the texture has no texel");
  texture.address = address_of(pointer);
  texture.size = {bytes / texel_bytes(texture), 1, 1};
  texture.row_bytes = bytes;
  texture.slice_bytes = bytes;
  return texture;
}

Texture pitched_texture(Runtime& runtime, const void* pointer, const ChannelFormat& format,
                        std::size_t width, std::size_t height, std::size_t pitch) {
  Texture texture;
  set_format(texture, format);
  require(runtime.on_device(address_of(pointer)), "the texture's memory is not on the device");
  require(width > 0 && height > 0 && pitch / texel_bytes(texture) >= width,
          "a row is longer than the pitch");
  require(height <= ~std::uint64_t{0} / pitch, "the texture goes beyond all addresses");
  texture.address = address_of(pointer);
  texture.dimensions = 2;
  texture.size = {width, height, 1};
  texture.row_bytes = pitch;
  texture.slice_bytes = pitch * height;
  return texture;
}

Texture texture_of(Runtime& runtime, const ResourceDescription& resource) {
  switch (resource.kind) {
    case ResourceDescription::Kind::array:
      return texture_of(runtime.array(resource.array));
    case ResourceDescription::Kind::linear:
      return linear_texture(runtime, resource.linear.pointer, resource.linear.format,
                            resource.linear.bytes);
    case ResourceDescription::Kind::pitch_2d:
      return pitched_texture(runtime, resource.pitch_2d.pointer, resource.pitch_2d.format,
                             resource.pitch_2d.width, resource.pitch_2d.height,
                             resource.pitch_2d.pitch);
    default:
      throw Failure(Error::not_supported, "mipmapped textures are not supported", true);
  }
}

void set_sampling(Texture& texture, const int (&address_mode)[3], int filter, bool normalized,
                  bool normalized_read) {
  for (std::size_t i = 0; i < 3; ++i) {
    require(address_mode[i] >= 0 && address_mode[i] <= 3, "no such address mode");
    texture.address_mode[i] = static_cast<AddressMode>(address_mode[i]);
  }
  texture.linear_filter = filter == 1;
  texture.normalized_coordinates = normalized;
  texture.normalized_read = normalized_read && texture.format != Texture::Format::floating;
  if (texture.linear_filter && !texture.normalized_read &&
      texture.format != Texture::Format::floating) {
    throw Failure(Error{26}, "only floating-point textures are filtered linearly");
  }
}

const TextureReference& reference_at(const void* reference) {
  return *static_cast<const TextureReference*>(reference);
}

/// Makes a `texture<>` variable refer to a texture.
void bind(Runtime& runtime, const void* reference, Texture texture) {
  const auto found = runtime.texture_references.find(reference);
  require(found != runtime.texture_references.end(), "the program has registered no such texture",
          Error::invalid_texture);
  const TextureReference& sampling = reference_at(reference);
  // Whether integers become floats depends on the variable's type, which is not in PTX; tex
  // instructions with a floating-point result of integer texels show it.
  set_sampling(texture, sampling.address_mode, sampling.filter_mode,
               sampling.normalized_coordinates != 0, false);
  const VariableEntry& variable = found->second;
  const std::uint64_t handle = runtime.device().textures.add(texture);
  runtime.load(*variable.module).bind_texture(variable.name, handle);
}

}  // namespace

CUDART_EXPORT ChannelFormat cudaCreateChannelDesc(int x, int y, int z, int w, ChannelKind kind) {
  return {x, y, z, w, kind};
}

CUDART_EXPORT Error cudaGetChannelDesc(ChannelFormat* format, const Array* array) {
  return call(__func__, [&](Runtime& runtime) {
    require(format != nullptr, "nowhere to put the format");
    *format = runtime.array(array).format;
  });
}

// --- objects ------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaCreateTextureObject(std::uint64_t* object,
                                            const ResourceDescription* resource,
                                            const TextureDescription* sampling, const void* view) {
  return call(__func__, [&](Runtime& runtime) {
    require(object != nullptr && resource != nullptr && sampling != nullptr,
            "a texture needs a resource and a description");
    if (view != nullptr) {
      throw Failure(Error::not_supported, "resource views are not supported", true);
    }
    Texture texture = texture_of(runtime, *resource);
    set_sampling(texture, sampling->address_mode, sampling->filter_mode,
                 sampling->normalized_coordinates != 0, sampling->read_mode == 1);
    *object = runtime.device().textures.add(texture);
    descriptions()[*object] = {*resource, *sampling};
  });
}
CUDART_ALIAS(cudaCreateTextureObject_v2, cudaCreateTextureObject);

CUDART_EXPORT Error cudaDestroyTextureObject(std::uint64_t object) {
  return call(__func__, [&](Runtime& runtime) {
    require(object == 0 || runtime.device().textures.remove(object), "no such texture or surface");
    descriptions().erase(object);
  });
}
CUDART_ALIAS(cudaDestroySurfaceObject, cudaDestroyTextureObject);

CUDART_EXPORT Error cudaGetTextureObjectResourceDesc(ResourceDescription* resource,
                                                     std::uint64_t object) {
  return call(__func__, [&](Runtime&) {
    const auto found = descriptions().find(object);
    require(resource != nullptr && found != descriptions().end(), "no such texture");
    *resource = found->second.resource;
  });
}

CUDART_EXPORT Error cudaCreateSurfaceObject(std::uint64_t* object,
                                            const ResourceDescription* resource) {
  return call(__func__, [&](Runtime& runtime) {
    require(object != nullptr && resource != nullptr &&
                resource->kind == ResourceDescription::Kind::array,
            "a surface needs an array");
    *object = runtime.device().textures.add(texture_of(runtime, *resource));
    descriptions()[*object] = {*resource, {}};
  });
}

// --- references ---------------------------------------------------------------------------------

CUDART_EXPORT Error cudaBindTexture(std::size_t* offset, const void* reference, const void* pointer,
                                    const ChannelFormat* format, std::size_t bytes) {
  return call(__func__, [&](Runtime& runtime) {
    require(reference != nullptr && format != nullptr, "a texture needs a format");
    if (offset != nullptr) *offset = 0;
    const auto* allocation = runtime.memory().find(address_of(pointer));
    require(allocation != nullptr, "the texture's memory is not on the device");
    // A size beyond the end means all of it.
    const std::size_t rest = allocation->address + allocation->bytes - address_of(pointer);
    bind(runtime, reference, linear_texture(runtime, pointer, *format, std::min(bytes, rest)));
  });
}

CUDART_EXPORT Error cudaBindTexture2D(std::size_t* offset, const void* reference,
                                      const void* pointer, const ChannelFormat* format,
                                      std::size_t width, std::size_t height, std::size_t pitch) {
  return call(__func__, [&](Runtime& runtime) {
    require(reference != nullptr && format != nullptr, "a texture needs a format");
    if (offset != nullptr) *offset = 0;
    bind(runtime, reference, pitched_texture(runtime, pointer, *format, width, height, pitch));
  });
}

CUDART_EXPORT Error cudaBindTextureToArray(const void* reference, const Array* array,
                                           const ChannelFormat*) {
  return call(__func__, [&](Runtime& runtime) {
    require(reference != nullptr, "no texture");
    bind(runtime, reference, texture_of(runtime.array(array)));
  });
}

CUDART_EXPORT Error cudaBindSurfaceToArray(const void* reference, const Array* array,
                                           const ChannelFormat*) {
  return call(__func__, [&](Runtime& runtime) {
    const auto found = runtime.texture_references.find(reference);
    require(found != runtime.texture_references.end(), "the program has registered no such surface",
            Error{37});
    const std::uint64_t handle = runtime.device().textures.add(texture_of(runtime.array(array)));
    runtime.load(*found->second.module).bind_texture(found->second.name, handle);
  });
}

CUDART_EXPORT Error cudaUnbindTexture(const void*) {
  return call(__func__, [](Runtime&) {});
}

CUDART_EXPORT Error cudaGetTextureReference(const void** reference, const void* symbol) {
  return call(__func__, [&](Runtime& runtime) {
    require(reference != nullptr && runtime.texture_references.contains(symbol),
            "the program has registered no such texture", Error::invalid_texture);
    *reference = symbol;
  });
}
CUDART_ALIAS(cudaGetSurfaceReference, cudaGetTextureReference);

CUDART_EXPORT Error cudaGetTextureAlignmentOffset(std::size_t* offset, const void*) {
  return call(__func__, [&](Runtime&) {
    require(offset != nullptr, "nowhere to put the offset");
    *offset = 0;
  });
}
