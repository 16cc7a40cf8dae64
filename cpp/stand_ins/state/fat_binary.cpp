#include "stand_ins/state/fat_binary.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <set>
#include <utility>

#include "common/error.h"

namespace warpstack::cudart {
namespace {

constexpr std::uint32_t container_magic = 0xba55ed50;
constexpr std::uint16_t container_version = 1;
/// Byte offsets of the fields of an entry's header that are read.
constexpr std::size_t min_entry_header_bytes = 64;
constexpr std::uint64_t flag_lz4 = 0x2000;
constexpr std::uint64_t flag_zstd = 0x8000;
/// A function of the driver that only the PTX of libcudadevrt calls.
constexpr std::string_view device_runtime_import = "cnpGetParameterBuffer";
/// Limits the memory for a damaged size. Text does not shrink by more than this.
constexpr std::uint64_t max_ratio = 4096;

[[noreturn]] void damaged(const std::string& what) {
  throw InputError("the program's fat binary is damaged: " + what +
                   "; link the program again, or report how it was built");
}

template <typename T>
T field(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The two functions of libzstd that are needed. Their ABI is stable since libzstd 1.0.
struct Zstd {
  std::size_t (*decompress)(void*, std::size_t, const void*, std::size_t) = nullptr;
  unsigned (*is_error)(std::size_t) = nullptr;
};

/// libzstd, loaded at the first call. Every common Linux system has it, because package managers
/// need it, but not its headers, so it is not linked.
const Zstd& zstd() {
  static const Zstd functions = [] {
    Zstd found;
    void* library = ::dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      throw InputError(
          "the program's code is packed with zstd and this system has no libzstd.so.1; install it "
          "(apt install libzstd1, dnf install libzstd), or build the program with nvcc "
          "--compress-mode=none");
    }
    found.decompress =
        reinterpret_cast<decltype(found.decompress)>(::dlsym(library, "ZSTD_decompress"));
    found.is_error = reinterpret_cast<decltype(found.is_error)>(::dlsym(library, "ZSTD_isError"));
    if (found.decompress == nullptr || found.is_error == nullptr) {
      throw InputError("libzstd.so.1 lacks ZSTD_decompress; install another version of it");
    }
    return found;
  }();
  return functions;
}

/// "; it has PTX for compute_75, compute_90"; empty where there are none.
std::string listed(std::string_view before, const std::set<std::uint32_t>& targets) {
  std::string text;
  const std::string_view prefix = before.substr(before.rfind(' ') + 1);
  for (const std::uint32_t target : targets) {
    text += text.empty() ? std::string(before) : ", " + std::string(prefix);
    text += std::to_string(target);
  }
  return text;
}

struct HashByte {
  std::size_t operator()(std::byte byte) const { return std::to_integer<std::size_t>(byte); }
};

/// The name of the source file in an entry's header; empty without one.
std::string_view name_in(std::span<const std::byte> header) {
  const auto offset = field<std::uint32_t>(header, 32);
  const auto bytes = field<std::uint32_t>(header, 36);
  if (offset < min_entry_header_bytes || offset > header.size() || bytes > header.size() - offset) {
    return {};
  }
  const std::string_view name(reinterpret_cast<const char*>(header.data()) + offset, bytes);
  return name.substr(0, name.find_last_not_of(std::string_view(" \0", 2)) + 1);
}

/// The PTX image that a GPU of compute capability `max_target` would choose.
const FatBinaryEntry* choose_ptx(const std::vector<FatBinaryEntry>& entries,
                                 std::uint32_t max_target) {
  const FatBinaryEntry* best = nullptr;
  // Supported targets come first, highest first; then the others, lowest first.
  const auto order = [max_target](const FatBinaryEntry& e) {
    return e.target <= max_target ? std::int64_t{e.target} : -std::int64_t{e.target};
  };
  for (const FatBinaryEntry& entry : entries) {
    if (entry.kind != FatBinaryEntry::Kind::ptx) continue;
    if (best == nullptr || order(entry) > order(*best)) best = &entry;
  }
  return best;
}

/// The targets of the machine code.
std::set<std::uint32_t> machine_code_in(const std::vector<FatBinaryEntry>& entries) {
  std::set<std::uint32_t> targets;
  for (const FatBinaryEntry& entry : entries) {
    if (entry.kind == FatBinaryEntry::Kind::machine_code) targets.insert(entry.target);
  }
  return targets;
}

std::string unpack_zstd(std::span<const std::byte> packed, std::uint64_t bytes) {
  std::string text(bytes, '\0');
  const std::size_t size =
      zstd().decompress(text.data(), text.size(), packed.data(), packed.size());
  if (zstd().is_error(size) != 0 || size != bytes) {
    damaged("an image does not unpack to " + std::to_string(bytes) + " bytes (zstd)");
  }
  return text;
}

}  // namespace

std::uint64_t fat_binary_bytes(std::span<const std::byte, fat_binary_header_bytes> header) {
  if (field<std::uint32_t>(header, 0) != container_magic) damaged("it has another magic number");
  if (const auto version = field<std::uint16_t>(header, 4); version != container_version) {
    throw InputError("the program's fat binary has format version " + std::to_string(version) +
                     "; warpstack reads version 1, of CUDA 5 to 13");
  }
  if (field<std::uint16_t>(header, 6) != fat_binary_header_bytes) {
    damaged("its header has another size");
  }
  const auto bytes = field<std::uint64_t>(header, 8);
  if (bytes > ~std::uint64_t{0} - fat_binary_header_bytes) damaged("its size is too large");
  return fat_binary_header_bytes + bytes;
}

std::vector<FatBinaryEntry> fat_binary_entries(std::span<const std::byte> container) {
  if (container.size() < fat_binary_header_bytes) damaged("it is cut");
  const std::uint64_t size = fat_binary_bytes(container.first<fat_binary_header_bytes>());
  if (size > container.size()) damaged("it is cut");
  std::vector<FatBinaryEntry> entries;
  for (auto rest = container.first(size).subspan(fat_binary_header_bytes); !rest.empty();) {
    if (rest.size() < min_entry_header_bytes) damaged("an image's header is cut");
    const auto kind = field<std::uint16_t>(rest, 0);
    const auto header_bytes = field<std::uint32_t>(rest, 4);
    const auto padded_bytes = field<std::uint64_t>(rest, 8);
    const auto packed_bytes = field<std::uint32_t>(rest, 16);
    const auto flags = field<std::uint64_t>(rest, 40);
    if (header_bytes < min_entry_header_bytes || header_bytes > rest.size()) {
      damaged("an image's header has " + std::to_string(header_bytes) + " bytes");
    }
    if (padded_bytes > rest.size() - header_bytes) damaged("an image is cut");
    FatBinaryEntry entry;
    entry.kind = kind == 1   ? FatBinaryEntry::Kind::ptx
                 : kind == 2 ? FatBinaryEntry::Kind::machine_code
                             : FatBinaryEntry::Kind::other;
    entry.target = field<std::uint32_t>(rest, 28);
    entry.payload = rest.subspan(header_bytes, padded_bytes);
    if ((flags & (flag_lz4 | flag_zstd)) != 0) {
      entry.compression = (flags & flag_zstd) != 0 ? FatBinaryEntry::Compression::zstd
                                                   : FatBinaryEntry::Compression::lz4;
      entry.uncompressed_bytes = field<std::uint64_t>(rest, 56);
      if (packed_bytes > padded_bytes) damaged("an image is longer than its place");
      entry.payload = entry.payload.first(packed_bytes);
    }
    entry.name = name_in(rest.first(header_bytes));
    entries.push_back(entry);
    rest = rest.subspan(header_bytes + padded_bytes);
  }
  return entries;
}

std::string unpack_lz4(std::span<const std::byte> packed, std::uint64_t bytes) {
  std::string text;
  text.reserve(bytes);
  std::size_t next = 0;
  const auto byte = [&] {
    if (next == packed.size()) damaged("an image is cut (LZ4)");
    return std::to_integer<std::uint32_t>(packed[next++]);
  };
  // A length of 15 in the token continues in bytes up to the first that is not 255.
  const auto length = [&](std::uint64_t start) {
    if (start < 15) return start;
    for (std::uint32_t more = 255; more == 255;) start += more = byte();
    return start;
  };
  while (next < packed.size()) {
    const std::uint32_t token = byte();
    const std::uint64_t literals = length(token >> 4);
    if (literals > packed.size() - next || literals > bytes - text.size()) {
      damaged("an image has too many literals (LZ4)");
    }
    text.append(reinterpret_cast<const char*>(packed.data()) + next, literals);
    next += literals;
    if (next == packed.size()) break;  // the last sequence has literals only
    std::uint64_t distance = byte();
    distance |= std::uint64_t{byte()} << 8;
    const std::uint64_t match = length(token & 15) + 4;
    if (distance == 0 || distance > text.size() || match > bytes - text.size()) {
      damaged("an image refers to bytes that it does not have (LZ4)");
    }
    // Byte by byte: a match may overlap what it appends.
    for (std::uint64_t i = 0; i < match; ++i) text.push_back(text[text.size() - distance]);
  }
  if (text.size() != bytes) {
    damaged("an image unpacks to " + std::to_string(text.size()) + " bytes instead of " +
            std::to_string(bytes) + " (LZ4)");
  }
  return text;
}

std::string unpack(const FatBinaryEntry& entry) {
  std::string text;
  if (entry.compression == FatBinaryEntry::Compression::none) {
    text.assign(reinterpret_cast<const char*>(entry.payload.data()), entry.payload.size());
  } else {
    if (entry.uncompressed_bytes / max_ratio > entry.payload.size()) {
      damaged("an image says that it unpacks to " + std::to_string(entry.uncompressed_bytes) +
              " bytes");
    }
    text = entry.compression == FatBinaryEntry::Compression::zstd
               ? unpack_zstd(entry.payload, entry.uncompressed_bytes)
               : unpack_lz4(entry.payload, entry.uncompressed_bytes);
  }
  if (entry.kind == FatBinaryEntry::Kind::ptx) {
    // The text ends in a zero byte and is filled up with more of them.
    text.resize(std::min(text.find('\0'), text.size()));
  }
  if (text.empty()) damaged("an image is empty");
  return text;
}

std::vector<std::span<const std::byte>> fat_binaries_in(std::span<const std::byte> file) {
  std::array<std::byte, 8> beginning{};  // magic number, version, bytes of the header
  std::memcpy(beginning.data(), &container_magic, sizeof container_magic);
  beginning[4] = std::byte{container_version};
  beginning[6] = std::byte{fat_binary_header_bytes};
  std::vector<std::span<const std::byte>> found;
  const std::boyer_moore_horspool_searcher searcher(beginning.begin(), beginning.end(), HashByte{});
  for (auto rest = file;;) {
    const auto place = std::search(rest.begin(), rest.end(), searcher);
    rest = rest.subspan(static_cast<std::size_t>(place - rest.begin()));
    if (rest.size() < fat_binary_header_bytes) return found;
    const std::uint64_t bytes = fat_binary_bytes(rest.first<fat_binary_header_bytes>());
    if (bytes > rest.size()) damaged("it is cut");
    found.push_back(rest.first(bytes));
    rest = rest.subspan(bytes);
  }
}

std::string best_ptx(std::span<const std::byte> container, std::uint32_t max_target) {
  const std::vector<FatBinaryEntry> entries = fat_binary_entries(container);
  const FatBinaryEntry* best = choose_ptx(entries, max_target);
  if (best == nullptr) {
    throw InputError("the program has no PTX" +
                     listed(" but machine code for sm_", machine_code_in(entries)) +
                     "; run that (--machine-code), or build the program with nvcc -gencode "
                     "arch=compute_75,code=compute_75 (and -cudart shared)");
  }
  return unpack(*best);
}

std::vector<PtxImage> relocatable_ptx(std::span<const std::span<const std::byte>> containers,
                                      std::uint32_t max_target) {
  std::vector<PtxImage> images;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::vector<FatBinaryEntry> entries = fat_binary_entries(containers[i]);
    const FatBinaryEntry* best = choose_ptx(entries, max_target);
    const bool is_named = !entries.empty() && !entries.front().name.empty();
    std::string name =
        is_named ? std::string(entries.front().name) : "object " + std::to_string(i + 1);
    if (best == nullptr) {
      throw InputError(name + ", a part of the program's relocatable device code, has no PTX" +
                       listed(" but machine code for sm_", machine_code_in(entries)) +
                       "; build all parts with PTX, which warpstack links: nvcc -rdc=true "
                       "-arch=sm_75 (and -cudart shared, without -dlto); or run the machine code "
                       "(--machine-code) of kernels that neither launch kernels nor call functions "
                       "that are not inlined");
    }
    std::string text = unpack(*best);
    if (text.find(device_runtime_import) == std::string::npos)
      images.push_back({std::move(name), std::move(text)});
  }
  if (images.empty()) throw InputError("the program has no device code of its own");
  return images;
}

FatBinaryImage image_for(std::span<const std::byte> container, std::uint32_t target) {
  const std::vector<FatBinaryEntry> entries = fat_binary_entries(container);
  std::set<std::uint32_t> machine_code;
  std::set<std::uint32_t> ptx;
  const FatBinaryEntry* best = nullptr;
  // Machine code comes before PTX, and within each, later targets before earlier ones.
  const auto order = [](const FatBinaryEntry& entry) {
    return std::pair(entry.kind == FatBinaryEntry::Kind::machine_code, entry.target);
  };
  for (const FatBinaryEntry& entry : entries) {
    bool fits = entry.target <= target;
    if (entry.kind == FatBinaryEntry::Kind::machine_code) {
      machine_code.insert(entry.target);
      fits = fits && entry.target / 10 == target / 10;
    } else if (entry.kind == FatBinaryEntry::Kind::ptx) {
      ptx.insert(entry.target);
    } else {
      continue;
    }
    if (fits && (best == nullptr || order(entry) > order(*best))) best = &entry;
  }
  if (best == nullptr) {
    const std::string wanted = std::to_string(target);
    throw InputError("the program has no machine code for sm_" + wanted +
                     " and no PTX that could be assembled for it" +
                     listed("; it has machine code for sm_", machine_code) +
                     listed("; it has PTX for compute_", ptx) + "; build it with nvcc -arch=sm_" +
                     wanted + " (and -cudart shared)");
  }
  return {best->kind, unpack(*best)};
}

}  // namespace warpstack::cudart
