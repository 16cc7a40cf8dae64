#include "stand_ins/cublas/kernels.h"

#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "stand_ins/cublas/context.h"
#include "stand_ins/library/runtime_calls.h"

extern "C" {
extern const char warpstack_gemm_bf16_ptx[];
extern const char warpstack_gemm_f16_ptx[];
extern const char warpstack_gemm_f32_ptx[];
extern const char warpstack_gemm_f64_ptx[];
extern const char warpstack_gemm_i8_ptx[];
extern const char warpstack_vectors_f32_ptx[];
extern const char warpstack_vectors_f64_ptx[];
}

namespace warpstack::cublas {
namespace {

/// The headers of a fat binary container with one image, and of that image, as fatbinary writes
/// them.
struct ContainerHeader {
  std::uint32_t magic = 0xba55ed50;
  std::uint16_t version = 1;
  std::uint16_t header_bytes = 16;
  std::uint64_t content_bytes = 0;
};
struct ImageHeader {
  std::uint16_t kind = 1;  // PTX
  std::uint16_t version = 0x101;
  std::uint32_t header_bytes = 64;
  std::uint64_t payload_bytes = 0;
  std::uint32_t packed_bytes = 0;
  std::uint32_t name_offset = 0;
  std::uint32_t ptx_version = 0x70000;
  std::uint32_t target = 75;
  std::uint32_t name_bytes = 0, padding = 0;
  std::uint64_t flags = 0x11;
  std::uint64_t unused = 0;
  std::uint64_t unpacked_bytes = 0;
};
static_assert(sizeof(ContainerHeader) == 16 && sizeof(ImageHeader) == 64);

constexpr int wrapper_magic = 0x466243b1;

/// A registered file. The runtime reads the container when it needs it.
struct Registered {
  std::vector<std::byte> container;
  cudart::FatBinaryWrapper wrapper{};
  void** handle = nullptr;
  std::map<std::string, char> stubs;  ///< the address of a value identifies the kernel
};

struct Source {
  const char* text;
  std::uint32_t target;
};

Source source_of(KernelFile file) {
  switch (file) {
    case KernelFile::gemm_bf16:
      return {warpstack_gemm_bf16_ptx, 80};
    case KernelFile::gemm_f16:
      return {warpstack_gemm_f16_ptx, 75};
    case KernelFile::gemm_f32:
      return {warpstack_gemm_f32_ptx, 75};
    case KernelFile::gemm_f64:
      return {warpstack_gemm_f64_ptx, 75};
    case KernelFile::gemm_i8:
      return {warpstack_gemm_i8_ptx, 75};
    case KernelFile::vectors_f32:
      return {warpstack_vectors_f32_ptx, 75};
    case KernelFile::vectors_f64:
      break;
  }
  return {warpstack_vectors_f64_ptx, 75};
}

void fill(Registered& file, const Source& source) {
  const std::size_t text_bytes = std::strlen(source.text) + 1;
  ImageHeader image;
  image.payload_bytes = (text_bytes + 7) / 8 * 8;
  image.target = source.target;
  ContainerHeader container;
  container.content_bytes = sizeof image + image.payload_bytes;
  file.container.resize(sizeof container + container.content_bytes);
  std::byte* at = file.container.data();
  std::memcpy(at, &container, sizeof container);
  std::memcpy(at + sizeof container, &image, sizeof image);
  std::memcpy(at + sizeof container + sizeof image, source.text, text_bytes);
  file.wrapper = {wrapper_magic, 1, file.container.data(), nullptr};
}

Registered& registered(KernelFile file) {
  static auto* const all = new std::map<KernelFile, Registered>;  // programs may call at their exit
  const auto [entry, is_new] = all->try_emplace(file);
  if (is_new) {
    fill(entry->second, source_of(file));
    entry->second.handle = __cudaRegisterFatBinary(&entry->second.wrapper);
    __cudaRegisterFatBinaryEnd(entry->second.handle);
  }
  return entry->second;
}

void tell_once() {
  static bool told = false;
  if (std::exchange(told, true)) return;
  warpstack_cudart_note(
      "cuBLAS: kernels of warpstack's own (ws_...) run in place of NVIDIA's, which are other code "
      "and whose times differ");
}

}  // namespace

void launch(KernelFile file, const std::string& kernel, cudart::Dim3 grid, cudart::Dim3 block,
            const void* arguments, cudart::StreamHandle stream) {
  Registered& where = registered(file);
  const auto [stub, is_new] = where.stubs.try_emplace(kernel);
  if (is_new) {
    __cudaRegisterFunction(where.handle, &stub->second, nullptr, stub->first.c_str(), -1, nullptr,
                           nullptr, nullptr, nullptr, nullptr);
  }
  tell_once();
  void* pointers[] = {const_cast<void*>(arguments)};
  require_success(cudaLaunchKernel(&stub->second, grid, block, pointers, 0, stream),
                  Status::execution_failed);
}

}  // namespace warpstack::cublas
