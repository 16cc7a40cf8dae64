#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ptx/text/module.h"

namespace warpstack::ptx {

/// A source position from `.loc`, with the column, by which the call site of inlined code is
/// recognised.
struct Location {
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  bool operator==(const Location&) const = default;
};

/// The source positions of instructions, from the `.loc` directives of functions and the names in
/// `.debug_str`.
class SourceLines {
 public:
  /// A place in `.debug_str`; an empty label: none.
  struct FunctionName {
    std::string_view label;
    std::int64_t offset = 0;
  };

  /// From here on, code comes from `at`, which was inlined into `caller` if there is one.
  void set(const Location& at, std::optional<Location> caller, const FunctionName& function);
  /// Forgets where code was inlined, because another function begins.
  void forget_callers() { inlined_at_.clear(); }
  void clear() { source_ = {}; }

  [[nodiscard]] SourcePosition source() const { return source_; }

  /// The next character of `.debug_str`.
  void add_to_names(char character) { names_ += character; }
  /// A label of the next character of `.debug_str`.
  void label_names(std::string_view label) { labels_.emplace(label, names_.size()); }
  /// The inlined calls that positions number from 1.
  std::vector<trace::InlinedCall> take_calls();

 private:
  struct Hash {
    std::size_t operator()(const Location& at) const {
      return std::hash<std::uint64_t>{}((std::uint64_t{at.file} << 48) ^
                                        (std::uint64_t{at.line} << 16) ^ at.column);
    }
  };
  /// File and line of a call, the call in whose code it stands, and the called function.
  using Key =
      std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::string_view, std::int64_t>;

  SourcePosition source_;
  /// For a position of an earlier `.loc`: the call that inlined its code.
  std::unordered_map<Location, std::uint32_t, Hash> inlined_at_;
  std::map<Key, std::uint32_t> numbers_;
  std::vector<trace::InlinedCall> calls_;
  std::vector<FunctionName> functions_;  ///< of `calls_`
  std::vector<int> depths_;              ///< of `calls_`
  std::string names_;                    ///< the content of `.debug_str`
  std::unordered_map<std::string_view, std::size_t> labels_;
};

}  // namespace warpstack::ptx
