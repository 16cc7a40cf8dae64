// Arrays, texture and surface objects: converts the driver's descriptions to the runtime's.

#include "stand_ins/cudriver/driver.h"
#include "stand_ins/cudriver/runtime_calls.h"

using namespace warpstack::cudriver;
using warpstack::cudart::ChannelFormat;
using warpstack::cudart::ChannelKind;

namespace {

struct Format {
  int number;  ///< CUarray_format
  int bits;
  ChannelKind kind;
};
constexpr Format formats[] = {
    {0x01, 8, ChannelKind::uint},      {0x02, 16, ChannelKind::uint},
    {0x03, 32, ChannelKind::uint},     {0x08, 8, ChannelKind::sint},
    {0x09, 16, ChannelKind::sint},     {0x0a, 32, ChannelKind::sint},
    {0x10, 16, ChannelKind::floating}, {0x20, 32, ChannelKind::floating},
};

ChannelFormat format_of(int number, unsigned channels) {
  for (const Format& format : formats) {
    if (format.number != number) continue;
    require(channels == 1 || channels == 2 || channels == 4, "texels have 1, 2 or 4 channels");
    return {format.bits, channels > 1 ? format.bits : 0, channels > 2 ? format.bits : 0,
            channels > 3 ? format.bits : 0, format.kind};
  }
  throw Failure(Error::not_supported,
                "arrays of format " + std::to_string(number) + " are not supported", true);
}

int number_of(const ChannelFormat& channels) {
  for (const Format& format : formats) {
    if (format.bits == channels.x && format.kind == channels.kind) return format.number;
  }
  return 0;
}

ArrayDescription3D description_of(Runtime& runtime, const Array* handle) {
  const warpstack::cudart::Array& array = runtime.array(handle);
  const unsigned channels = 1 + (array.format.y > 0) + (array.format.z > 0) + (array.format.w > 0);
  return {array.extent.width, array.extent.height, array.extent.depth, number_of(array.format),
          channels,           array.flags};
}

warpstack::cudart::ResourceDescription resource_of(const ResourceDescription* given) {
  using Kind = warpstack::cudart::ResourceDescription::Kind;
  require(given != nullptr, "a texture needs a resource");
  require(given->flags == 0, "no flags of resources are defined");
  warpstack::cudart::ResourceDescription resource{};
  resource.kind = given->kind;
  if (given->kind == Kind::array) {
    resource.array = given->array;
  } else if (given->kind == Kind::linear) {
    resource.linear = {pointer_to(given->linear.pointer),
                       format_of(given->linear.format, given->linear.num_channels),
                       given->linear.bytes};
  } else if (given->kind == Kind::pitch_2d) {
    resource.pitch_2d = {pointer_to(given->pitch_2d.pointer),
                         format_of(given->pitch_2d.format, given->pitch_2d.num_channels),
                         given->pitch_2d.width, given->pitch_2d.height, given->pitch_2d.pitch};
  }
  return resource;
}

/// Bits of a channel of a resource.
int bits_of(Runtime& runtime, const warpstack::cudart::ResourceDescription& resource) {
  using Kind = warpstack::cudart::ResourceDescription::Kind;
  return resource.kind == Kind::array    ? runtime.array(resource.array).format.x
         : resource.kind == Kind::linear ? resource.linear.format.x
                                         : resource.pitch_2d.format.x;
}

/// Runs code that may throw and then a function of the runtime.
template <typename Prepare, typename Call>
Error prepared(const char* function, Prepare prepare, Call call) {
  return forward(function, [&] {
    const Error error = warpstack::cudart::call(function, prepare);
    return error != Error::success ? error : call();
  });
}

}  // namespace

// --- arrays -------------------------------------------------------------------------------------

CUDART_EXPORT Error cuArray3DCreate_v2(Array** array, const ArrayDescription3D* description) {
  return drive(__func__, [&](Runtime& runtime) {
    warpstack::cudart::refuse_while_capturing(runtime);
    require(array != nullptr && description != nullptr, "an array needs a description");
    constexpr unsigned known = 7;  // layered, for surfaces, cubemap
    if (description->flags > known) {
      throw Failure(Error::not_supported, "arrays with these flags are not supported", true);
    }
    *array = runtime.add_array(format_of(description->format, description->num_channels),
                               {description->width, description->height, description->depth},
                               description->flags);
  });
}

CUDART_EXPORT Error cuArrayCreate_v2(Array** array, const ArrayDescription* description) {
  return drive(__func__, [&](Runtime& runtime) {
    warpstack::cudart::refuse_while_capturing(runtime);
    require(array != nullptr && description != nullptr, "an array needs a description");
    *array = runtime.add_array(format_of(description->format, description->num_channels),
                               {description->width, description->height, 0}, 0);
  });
}

CUDART_EXPORT Error cuArray3DGetDescriptor_v2(ArrayDescription3D* description, Array* array) {
  return drive(__func__, [&](Runtime& runtime) {
    require(description != nullptr, "nowhere to put the description");
    *description = description_of(runtime, array);
  });
}

CUDART_EXPORT Error cuArrayGetDescriptor_v2(ArrayDescription* description, Array* array) {
  return drive(__func__, [&](Runtime& runtime) {
    require(description != nullptr, "nowhere to put the description");
    const ArrayDescription3D all = description_of(runtime, array);
    *description = {all.width, all.height, all.format, all.num_channels};
  });
}

CUDART_EXPORT Error cuArrayDestroy(Array* array) {
  return forward(__func__, [&] {
    return array == nullptr ? Error::invalid_resource_handle : cudaFreeArray(array);
  });
}

CUDART_EXPORT Error cuMemcpyHtoA_v2(Array* target, std::size_t offset, const void* source,
                                    std::size_t bytes) {
  return forward(__func__, [&] {
    return cudaMemcpyToArray(target, offset, 0, source, bytes, MemcpyKind::any);
  });
}
CUDART_PER_THREAD(cuMemcpyHtoA_v2_ptds, cuMemcpyHtoA_v2);

CUDART_EXPORT Error cuMemcpyAtoH_v2(void* target, const Array* source, std::size_t offset,
                                    std::size_t bytes) {
  return forward(__func__, [&] {
    return cudaMemcpyFromArray(target, source, offset, 0, bytes, MemcpyKind::any);
  });
}
CUDART_PER_THREAD(cuMemcpyAtoH_v2_ptds, cuMemcpyAtoH_v2);

CUDART_EXPORT Error cuMemcpyDtoA_v2(Array* target, std::size_t offset, DevicePointer source,
                                    std::size_t bytes) {
  return forward(__func__, [&] {
    return cudaMemcpyToArray(target, offset, 0, pointer_to(source), bytes,
                             MemcpyKind::device_to_device);
  });
}
CUDART_PER_THREAD(cuMemcpyDtoA_v2_ptds, cuMemcpyDtoA_v2);

CUDART_EXPORT Error cuMemcpyAtoD_v2(DevicePointer target, const Array* source, std::size_t offset,
                                    std::size_t bytes) {
  return forward(__func__, [&] {
    return cudaMemcpyFromArray(pointer_to(target), source, offset, 0, bytes,
                               MemcpyKind::device_to_device);
  });
}
CUDART_PER_THREAD(cuMemcpyAtoD_v2_ptds, cuMemcpyAtoD_v2);

// --- textures and surfaces ----------------------------------------------------------------------

CUDART_EXPORT Error cuTexObjectCreate(std::uint64_t* object, const ResourceDescription* resource,
                                      const TextureDescription* texture, const void* view) {
  warpstack::cudart::ResourceDescription of{};
  warpstack::cudart::TextureDescription how{};
  return prepared(
      __func__,
      [&](Runtime& runtime) {
        of = resource_of(resource);
        require(texture != nullptr, "a texture needs a description");
        constexpr unsigned as_integer = 1, normalized = 2, srgb = 16;
        for (int i = 0; i < 3; ++i) how.address_mode[i] = texture->address_mode[i];
        for (int i = 0; i < 4; ++i) how.border_color[i] = texture->border_color[i];
        how.filter_mode = texture->filter_mode;
        how.normalized_coordinates = (texture->flags & normalized) != 0;
        if ((texture->flags & srgb) != 0) {
          throw Failure(Error::not_supported, "sRGB textures are not supported", true);
        }
        // Integers of 32 bits stay integers.
        how.read_mode = (texture->flags & as_integer) == 0 && bits_of(runtime, of) < 32;
      },
      [&] { return cudaCreateTextureObject(object, &of, &how, view); });
}

CUDART_EXPORT Error cuSurfObjectCreate(std::uint64_t* object, const ResourceDescription* resource) {
  warpstack::cudart::ResourceDescription of{};
  return prepared(
      __func__, [&](Runtime&) { of = resource_of(resource); },
      [&] { return cudaCreateSurfaceObject(object, &of); });
}

CUDART_EXPORT Error cuTexObjectDestroy(std::uint64_t object) {
  return forward(__func__, [&] { return cudaDestroyTextureObject(object); });
}
CUDART_ALIAS(cuSurfObjectDestroy, cuTexObjectDestroy);
