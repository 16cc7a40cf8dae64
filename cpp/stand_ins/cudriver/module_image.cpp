#include "stand_ins/cudriver/module_image.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "stand_ins/state/host_memory.h"

namespace warpstack::cudriver {
namespace {

using cudart::FatBinaryEntry;
using cudart::FatBinaryImage;

constexpr std::uint32_t wrapper_magic = 0x466243b1;
constexpr std::uint32_t container_magic = 0xba55ed50;
constexpr std::uint16_t machine_cuda = 190;  // in ELF files
constexpr std::uint64_t page = 4096;

template <typename T>
T field(const std::byte* data, std::uint64_t offset) {
  T value;
  std::memcpy(&value, data + offset, sizeof value);
  return value;
}

void check_readable(const void* data, std::uint64_t bytes) {
  require(cudart::host_readable(address_of(data), bytes),
          "the program cannot read all of the image");
}

/// Size of a 64-bit ELF file: the end of its last table or section.
std::uint64_t elf_bytes(const std::byte* data) {
  constexpr std::uint64_t header_bytes = 64;
  constexpr std::uint32_t no_bits = 8;  // a section that is not in the file
  check_readable(data, header_bytes);
  require(field<std::uint8_t>(data, 4) == 2 && field<std::uint16_t>(data, 18) == machine_cuda,
          "the image is a program for another machine than a GPU", invalid_image);
  const auto segments = field<std::uint64_t>(data, 32);
  const auto sections = field<std::uint64_t>(data, 40);
  const auto segment_bytes = field<std::uint16_t>(data, 54);
  const auto num_segments = field<std::uint16_t>(data, 56);
  const auto section_bytes = field<std::uint16_t>(data, 58);
  const auto num_sections = field<std::uint16_t>(data, 60);
  constexpr std::uint64_t most = std::uint64_t{1} << 32;
  require(segments < most && sections < most && (num_sections == 0 || section_bytes >= 64),
          "the image is damaged", invalid_image);
  std::uint64_t end = std::max({header_bytes, segments + segment_bytes * num_segments,
                                sections + section_bytes * num_sections});
  check_readable(data, end);
  for (std::uint64_t i = 0; i < num_sections; ++i) {
    const std::byte* const section = data + sections + i * section_bytes;
    if (field<std::uint32_t>(section, 4) == no_bits) continue;
    const auto offset = field<std::uint64_t>(section, 24);
    const auto bytes = field<std::uint64_t>(section, 32);
    require(offset < most && bytes < most, "the image is damaged", invalid_image);
    end = std::max(end, offset + bytes);
  }
  return end;
}

/// Text up to its zero byte, all in readable memory.
std::string_view text_at(const char* data) {
  for (std::uint64_t bytes = 0;;) {
    const std::uint64_t rest = page - (address_of(data) + bytes) % page;
    check_readable(data + bytes, rest);
    if (const void* const end = std::memchr(data + bytes, 0, rest)) {
      return {data, static_cast<const char*>(end)};
    }
    bytes += rest;
  }
}

/// Without PTX, machine code for the device runs even if not asked for: the program has chosen it.
FatBinaryImage image_of(Runtime& runtime, std::span<const std::byte> container) {
  const auto is_ptx = [](const FatBinaryEntry& entry) {
    return entry.kind == FatBinaryEntry::Kind::ptx;
  };
  return std::ranges::any_of(cudart::fat_binary_entries(container), is_ptx)
             ? runtime.choose(container)
             : cudart::image_for(container, runtime.description().capability);
}

}  // namespace

FatBinaryImage read_image(Runtime& runtime, const void* data) {
  require(data != nullptr, "there is no image");
  check_readable(data, sizeof(std::uint32_t));
  const auto* bytes = static_cast<const std::byte*>(data);
  if (field<std::uint32_t>(bytes, 0) == wrapper_magic) {
    check_readable(data, sizeof(cudart::FatBinaryWrapper));
    bytes = field<cudart::FatBinaryWrapper>(bytes, 0).container;
    check_readable(bytes, sizeof(std::uint32_t));
  }
  try {
    if (field<std::uint32_t>(bytes, 0) == container_magic) {
      check_readable(bytes, cudart::fat_binary_header_bytes);
      const std::span<const std::byte, cudart::fat_binary_header_bytes> header(
          bytes, cudart::fat_binary_header_bytes);
      const std::uint64_t size = cudart::fat_binary_bytes(header);
      check_readable(bytes, size);
      return image_of(runtime, {bytes, size});
    }
  } catch (const InputError& error) {
    throw Failure(Error::no_kernel_image_for_device, error.what(), true);
  }
  if (std::memcmp(bytes,
                  "\x7f"
                  "ELF",
                  4) == 0) {
    const std::uint64_t size = elf_bytes(bytes);
    check_readable(bytes, size);
    return {FatBinaryEntry::Kind::machine_code, {reinterpret_cast<const char*>(bytes), size}};
  }
  const std::string_view text = text_at(reinterpret_cast<const char*>(bytes));
  require(text.find(".version") != std::string_view::npos,
          "the image is neither PTX nor a fat binary nor machine code", invalid_image);
  return {FatBinaryEntry::Kind::ptx, std::string(text)};
}

std::string read_file(const char* path) {
  require(path != nullptr, "there is no name of a file");
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) {
    throw Failure(file_not_found, std::string(path) + ": the file cannot be read");
  }
  bytes.push_back('\0');
  return bytes;
}

}  // namespace warpstack::cudriver
