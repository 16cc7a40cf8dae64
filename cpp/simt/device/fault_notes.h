#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warpstack::simt {

/// What a launch does at a fault of its kernel that a GPU may let pass.
enum class OnFault : std::uint8_t {
  stop,     ///< throws InputError
  proceed,  ///< notes it and goes on as a GPU does
};

/// A fault after which a launch went on, at a source line (PTX line without line information).
struct Note {
  std::string kind;   ///< "out-of-bounds", "divergent barrier", …
  std::string place;  ///< of the first occurrence: kernel, line, block and thread
  std::string what;   ///< of the first occurrence
  std::uint64_t count = 0;

  /// One line for the user.
  [[nodiscard]] std::string text() const;
};

/// Collects the notes of a launch: one per kind and line, with the text of the first occurrence.
class NoteBook {
 public:
  /// The note of this kind at an instruction; a new one has the count 0. `kind` is a string
  /// literal. `line` returns the instruction's source line, which instructions may share.
  template <class Line>
  Note& note(std::string_view kind, const void* instruction, const Line& line) {
    const auto [known, is_new] = by_instruction_.try_emplace({instruction, kind}, 0);
    if (is_new) known->second = note_at(kind, line());
    return notes_[known->second];
  }

  [[nodiscard]] const std::vector<Note>& notes() const { return notes_; }

 private:
  std::size_t note_at(std::string_view kind, std::string line);

  std::vector<Note> notes_;
  std::map<std::pair<const void*, std::string_view>, std::size_t> by_instruction_;
  std::map<std::pair<std::string_view, std::string>, std::size_t> by_line_;
};

}  // namespace warpstack::simt
