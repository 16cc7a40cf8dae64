#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace warpstack {

/// A 128-bit content digest for caching and provenance: fast, stable across runs and machines of
/// one byte order, not cryptographic.
class Digest {
 public:
  void add_bytes(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    while (size >= 8) {
      std::uint64_t word;
      std::memcpy(&word, bytes, 8);
      add(word);
      bytes += 8;
      size -= 8;
    }
    // The tail carries its length, so that "ab" + "c" and "a" + "bc" differ.
    std::uint64_t word = 0;
    if (size > 0) std::memcpy(&word, bytes, size);
    add(word ^ (static_cast<std::uint64_t>(size) << 56));
  }

  void add_text(std::string_view text) {
    add(text.size());
    add_bytes(text.data(), text.size());
  }

  void add(std::uint64_t word) {
    // Two independent multiply-and-fold lanes; the odd constants are digits of pi and e.
    first_ = fold(first_ ^ word, 0x243f6a8885a308d3ULL) + count_;
    second_ = fold(second_ + word, 0xb7e151628aed2a6bULL) ^ count_;
    ++count_;
  }

  /// 32 lower-case hexadecimal digits.
  [[nodiscard]] std::string hex() const {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (std::uint64_t word : {fold(first_ ^ second_, 0x9e3779b97f4a7c15ULL),
                               fold(second_ + count_, 0xc2b2ae3d27d4eb4fULL)}) {
      for (int shift = 60; shift >= 0; shift -= 4) text += digits[(word >> shift) & 15];
    }
    return text;
  }

 private:
  /// High and low halves of the 128-bit product, combined, so that every input bit reaches every
  /// output bit.
  static std::uint64_t fold(std::uint64_t value, std::uint64_t constant) {
    const auto product = static_cast<unsigned __int128>(value ^ (constant >> 1)) * constant;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  std::uint64_t first_ = 0x6a09e667f3bcc908ULL;
  std::uint64_t second_ = 0xbb67ae8584caa73bULL;
  std::uint64_t count_ = 0;
};

}  // namespace warpstack
