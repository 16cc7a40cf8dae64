#include "simt/device/fault_notes.h"

namespace warpstack::simt {

std::string Note::text() const {
  const std::string times = count == 1 ? "once" : std::to_string(count) + " times";
  return place + ": " + what + " (" + times + " at this line)";
}

std::size_t NoteBook::note_at(std::string_view kind, std::string line) {
  const auto [known, is_new] = by_line_.try_emplace({kind, std::move(line)}, notes_.size());
  if (is_new) notes_.push_back({.kind = std::string(kind), .place = {}, .what = {}});
  return known->second;
}

}  // namespace warpstack::simt
