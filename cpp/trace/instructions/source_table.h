#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/instructions/static_instruction.h"

namespace warpstack::trace {

/// A file of source, as the compiler names it.
struct SourceFile {
  std::string name;         ///< perhaps with its folder
  std::uint64_t time = 0;   ///< when it was changed last, in seconds since 1970; 0: unknown
  std::uint64_t bytes = 0;  ///< its size; 0: unknown

  bool operator==(const SourceFile&) const = default;
};

/// A call that the compiler replaced by the code of the called function.
struct InlinedCall {
  std::string function;      ///< the called one, usually mangled; empty: unknown
  std::uint32_t file = 0;    ///< of the call, in SourceTable::files, from 1; 0: unknown
  std::uint32_t line = 0;    ///< of the call; 0: unknown
  std::uint32_t caller = 0;  ///< the inlined call in whose code this one stands; 0: none

  bool operator==(const InlinedCall&) const = default;
};

/// The files and inlined calls that StaticInstruction::source_file and ::inlined_at number from 1.
struct SourceTable {
  std::vector<SourceFile> files;
  std::vector<InlinedCall> calls;  ///< a caller comes before the calls in its code

  bool operator==(const SourceTable&) const = default;

  [[nodiscard]] bool is_empty() const { return files.empty() && calls.empty(); }
  /// The file of a number; null for 0 and for numbers beyond the table.
  [[nodiscard]] const SourceFile* file(std::uint32_t number) const;
  /// "bfs.cu:12", without folders; empty where file or line is unknown.
  [[nodiscard]] std::string place(std::uint32_t file, std::uint32_t line) const;
  /// Throws InputError if a call names a file that is not there, or a caller that does not come
  /// before it.
  void validate() const;
  /// Throws InputError if the instruction names a file or call that is not there.
  void check(const StaticInstruction& instruction) const;
};

/// The part of a table that instructions need, whose numbers they get. Files of the same name, time
/// and size become one.
SourceTable take_used(const SourceTable& all, std::span<StaticInstruction> instructions);

}  // namespace warpstack::trace
