#include "stand_ins/cusparse/operation.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "stand_ins/library/runtime_calls.h"

namespace warpstack::cusparse {
namespace {

void require_success(cudart::Error error) {
  library::require_success<Library>(error, Status::execution_failed);
}

/// The attributes, with room for what cudaPointerGetAttributes of CUDA 13 also writes.
struct Attributes {
  cudart::PointerAttributes read;
  std::byte rest[64];
};

/// Throws Failure if a pointer is null or impossible in the pointer mode.
void check_mode(const Context& context, const void* pointer, const std::string& name) {
  using Kind = cudart::PointerAttributes::Kind;
  require(pointer != nullptr, name + " is null");
  Attributes attributes{};
  require_success(cudaPointerGetAttributes(&attributes.read, pointer));
  const Kind kind = attributes.read.kind;
  if (context.pointer_mode == pointers_to_host) {
    require(kind != Kind::device,
            name +
                " lies in device memory, but the pointer mode is CUSPARSE_POINTER_MODE_HOST "
                "(cusparseSetPointerMode changes it)");
  } else {
    require(kind != Kind::unregistered,
            name +
                " lies in host memory, but the pointer mode is CUSPARSE_POINTER_MODE_DEVICE "
                "(cusparseSetPointerMode changes it)");
  }
}

std::size_t index_bytes(int type, const char* name) {
  switch (type) {
    case index_u16:
      return 2;
    case index_i32:
      return 4;
    case index_i64:
      return 8;
    default:
      throw Failure(Status::invalid_value, std::string("the type of ") + name + " (" +
                                               std::to_string(type) +
                                               ") is not one of cusparseIndexType_t");
  }
}

}  // namespace

Indices Operation::read_indices(const void* place, std::int64_t count, int type, int base,
                                std::int64_t limit, const char* name, std::int64_t least) {
  const std::size_t size = index_bytes(type, name);
  const Bytes bytes = read(place, static_cast<std::size_t>(count) * size, name);
  Indices indices(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t index = size == 8   ? library::element<std::int64_t>(bytes.data(), i)
                         : size == 4 ? library::element<std::int32_t>(bytes.data(), i)
                                     : library::element<std::uint16_t>(bytes.data(), i);
    index -= base;
    if (index < least || (limit >= 0 && index >= limit)) {
      throw Failure(Status::invalid_value, std::string(name) + ": element " + std::to_string(i) +
                                               " = " + std::to_string(index + base) +
                                               " is outside of the matrix or vector");
    }
    indices[static_cast<std::size_t>(i)] = index;
  }
  return indices;
}

Indices Operation::read_offsets(const void* place, std::int64_t count, int type, int base,
                                std::int64_t most, const char* name) {
  Indices offsets = read_indices(place, count + 1, type, base, most + 1, name);
  require(std::is_sorted(offsets.begin(), offsets.end()),
          std::string(name) + ": they do not ascend");
  require(offsets.front() == 0, std::string(name) + ": the first offset is " +
                                    std::to_string(offsets.front() + base) +
                                    ", not the index base");
  return offsets;
}

void Operation::write_indices(void* place, const Indices& indices, int type, int base,
                              const char* name) {
  const std::size_t size = index_bytes(type, name);
  Bytes bytes(indices.size() * size);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::int64_t value = indices[i] + base;
    std::memcpy(&bytes[i * size], &value, size);  // little-endian
  }
  write(place, std::move(bytes), name);
}

Complex Operation::scalar(const void* pointer, int type, const char* name) {
  const std::size_t size = bytes_of_type(type, "computeType");
  if (context_.pointer_mode != pointers_to_host) {
    check_mode(context_, pointer, name);
    return load_value(type, read(pointer, size, name, false).data(), 0);
  }
  Complex value;
  return library::taken([&]() -> Complex& {
    check_mode(context_, pointer, name);
    value = load_value(type, static_cast<const std::byte*>(pointer), 0);
    return value;
  });
}

void Operation::multiply_add(int type, double count, cudart::Arithmetic of_tensor_cores) {
  using cudart::Arithmetic;
  const bool has_them = of_tensor_cores != Arithmetic::none;
  const Arithmetic arithmetic = has_them                               ? of_tensor_cores
                                : type == data_f64 || type == data_c64 ? Arithmetic::fp64
                                : is_integer(type)                     ? Arithmetic::int32
                                                                       : Arithmetic::fp32;
  compute({(is_complex(type) ? 8 : 2) * count, arithmetic, has_them});
}

void Operation::give_scalar(void* pointer, int type, Complex value, const char* name) {
  check_mode(context_, pointer, name);
  Bytes bytes(bytes_of_type(type, "computeType"));
  store_value(type, bytes.data(), 0, value);
  if (context_.pointer_mode == pointers_to_host) {
    std::memcpy(pointer, bytes.data(), bytes.size());
  } else {
    write(pointer, std::move(bytes), name);
  }
}

}  // namespace warpstack::cusparse
