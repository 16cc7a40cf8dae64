#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "ptx/text/module.h"

namespace warpstack::ptx {

/// A source position from `.loc`, with the column, by which the call site of inlined code is
/// recognised.
struct Location {
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  bool operator==(const Location&) const = default;
  [[nodiscard]] SourcePosition position() const { return {file, line}; }
};

/// The source positions of a function's instructions, from its `.loc` directives.
class SourceLines {
 public:
  /// From here on, code comes from `at`, which was inlined into `caller` if there is one.
  void set(const Location& at, std::optional<Location> caller);
  /// Forgets where code was inlined, because another function begins.
  void forget_callers() { inlined_at_.clear(); }
  void clear();

  [[nodiscard]] SourcePosition source() const { return location_.position(); }
  /// The position of the outermost caller of inlined code.
  [[nodiscard]] SourcePosition outermost() const { return outermost_; }

 private:
  struct Hash {
    std::size_t operator()(const Location& at) const {
      return std::hash<std::uint64_t>{}((std::uint64_t{at.file} << 48) ^
                                        (std::uint64_t{at.line} << 16) ^ at.column);
    }
  };

  Location location_;
  SourcePosition outermost_;
  /// For a position of an earlier `.loc`: where that code was inlined.
  std::unordered_map<Location, Location, Hash> inlined_at_;
};

}  // namespace warpstack::ptx
