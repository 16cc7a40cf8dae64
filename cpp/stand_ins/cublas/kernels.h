#pragma once

#include <cstdint>
#include <string>

#include "stand_ins/state/abi.h"

namespace warpstack::cublas {

/// A file of data/libraries/cublas, registered as a fat binary when one of its kernels is first
/// needed.
enum class KernelFile {
  gemm_bf16,
  gemm_f16,
  gemm_f32,
  gemm_f64,
  gemm_i8,
  vectors_f32,
  vectors_f64
};

/// Launches a kernel whose only parameter is *arguments. Throws Failure(execution_failed) if it
/// fails; the runtime has then told the user.
void launch(KernelFile file, const std::string& kernel, cudart::Dim3 grid, cudart::Dim3 block,
            const void* arguments, cudart::StreamHandle stream);

/// The names of an element type's kernels, and their files.
template <typename T>
struct KernelsOf;
template <>
struct KernelsOf<float> {
  static constexpr KernelFile vectors = KernelFile::vectors_f32, gemm = KernelFile::gemm_f32;
  static constexpr const char* suffix = "_f32";
};
template <>
struct KernelsOf<double> {
  static constexpr KernelFile vectors = KernelFile::vectors_f64, gemm = KernelFile::gemm_f64;
  static constexpr const char* suffix = "_f64";
};

/// Launches NAME_f32 or NAME_f64, one of the kernels on vectors.
template <typename T, typename Arguments>
void launch_on(const char* name, std::uint64_t blocks, cudart::Dim3 block,
               const Arguments& arguments, cudart::StreamHandle stream) {
  launch(KernelsOf<T>::vectors, std::string(name) + KernelsOf<T>::suffix,
         {static_cast<std::uint32_t>(blocks), 1, 1}, block, &arguments, stream);
}

}  // namespace warpstack::cublas
