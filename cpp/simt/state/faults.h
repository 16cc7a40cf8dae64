#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simt/device/fault_notes.h"
#include "simt/state/execution.h"

namespace warpstack::simt {

/// "lane 3", "lanes 0-7, 16", for messages.
std::string lanes_text(std::uint32_t lanes);

/// Locates faults of a kernel, and stops the launch or notes them.
class Faults {
 public:
  explicit Faults(const Execution& execution) : execution_(execution) {}

  /// "bfs.cu:12, PTX line 45, ld.global.f32"
  [[nodiscard]] static std::string place_of(const SourceInstruction& text);
  [[nodiscard]] static std::string place_of(const Warp& warp, const Step& step) {
    return place_of(warp.text_of(step));
  }
  /// "kernel bfs (bfs.cu:12, …), block (0, 0, 0), thread (3, 0, 0)"
  [[nodiscard]] std::string place_of(const Warp& warp, const Step& step, std::uint32_t lane) const;

  /// Throws InputError. `what` returns the message without a place.
  [[noreturn]] void stop(const Warp& warp, const Step& step, std::uint32_t lane,
                         const std::string& what) const;

  /// Handles a fault that a GPU may let pass: stops the launch, or notes it and returns. `kind` is
  /// a string literal.
  template <class What>
  void diagnose(const Warp& warp, const Step& step, std::uint32_t lane, std::string_view kind,
                const What& what) {
    if (execution_.options.on_fault == OnFault::stop) stop(warp, step, lane, what());
    note(warp, step, lane, kind, what);
  }

  /// Notes a fault after which a launch goes on, whatever `on_fault` says.
  template <class What>
  void note(const Warp& warp, const Step& step, std::uint32_t lane, std::string_view kind,
            const What& what) {
    execution_.need_turn();  // the text is that of the first occurrence
    const SourceInstruction& text = warp.text_of(step);
    Note& note = book_.note(kind, &text, [&] { return line_of(text); });
    if (note.count++ > 0) return;
    note.place = place_of(warp, step, lane);
    note.what = what();
  }

  /// The key of notes: the source line, or without line information the place in the program.
  [[nodiscard]] static const std::string& line_of(const SourceInstruction& text) {
    return text.source.empty() ? text.place : text.source;
  }

  /// Faults so far after which the launch went on.
  [[nodiscard]] const std::vector<Note>& notes() const { return book_.notes(); }
  [[nodiscard]] NoteBook& book() { return book_; }

 private:
  const Execution& execution_;
  NoteBook book_;
};

}  // namespace warpstack::simt
