#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace warpstack::cudart {

/// Bytes before the entries of a fat binary container.
inline constexpr std::size_t fat_binary_header_bytes = 16;

/// One image in a container: PTX text or machine code for one target.
struct FatBinaryEntry {
  enum class Kind : std::uint8_t { ptx, machine_code, other };
  enum class Compression : std::uint8_t { none, lz4, zstd };

  Kind kind = Kind::other;
  Compression compression = Compression::none;
  std::uint32_t target = 0;              ///< 75 for sm_75 and compute_75
  std::span<const std::byte> payload;    ///< as stored, in the container
  std::uint64_t uncompressed_bytes = 0;  ///< 0 without compression
  std::string_view name;                 ///< of the source file, if nvcc notes it
};

/// Size of a container in bytes, from its header. Throws InputError when it is not a container.
std::uint64_t fat_binary_bytes(std::span<const std::byte, fat_binary_header_bytes> header);

/// Lists the images of a container. Throws InputError when it is cut or damaged.
std::vector<FatBinaryEntry> fat_binary_entries(std::span<const std::byte> container);

/// Unpacks an image; PTX ends at its first zero byte. Throws InputError when it is damaged or
/// empty, or packed with zstd and this system has no libzstd.
std::string unpack(const FatBinaryEntry& entry);

/// The containers in a file, which is a fat binary or a program or library that contains some.
std::vector<std::span<const std::byte>> fat_binaries_in(std::span<const std::byte> file);

/// The unpacked PTX for the highest target up to `max_target`, else for the lowest beyond it, as a
/// GPU of that compute capability would choose. Throws InputError, with the remedy, when the
/// container has no PTX.
std::string best_ptx(std::span<const std::byte> container, std::uint32_t max_target);

/// PTX of one source file.
struct PtxImage {
  std::string name;  ///< "a.cu", or "object 1" if the container has no name
  std::string text;
};

/// The PTX of the objects that nvcc has linked to a program with relocatable device code, one
/// container each, for ptx::link(). NVIDIA's device runtime (libcudadevrt) is left out, because it
/// calls the driver. Throws InputError, with the remedy, when an object has no PTX.
std::vector<PtxImage> relocatable_ptx(std::span<const std::span<const std::byte>> containers,
                                      std::uint32_t max_target);

/// An unpacked image.
struct FatBinaryImage {
  FatBinaryEntry::Kind kind = FatBinaryEntry::Kind::other;
  std::string bytes;
};

/// The image for a GPU of compute capability `target`, chosen as its driver would: machine code for
/// it or the highest earlier one of the same major version, else the PTX of the highest target up
/// to it, to assemble. Throws InputError, with the remedy, when the container has neither.
FatBinaryImage image_for(std::span<const std::byte> container, std::uint32_t target);

/// Unpacks a block of the LZ4 format. Throws InputError unless it has exactly `bytes` bytes.
std::string unpack_lz4(std::span<const std::byte> packed, std::uint64_t bytes);

}  // namespace warpstack::cudart
