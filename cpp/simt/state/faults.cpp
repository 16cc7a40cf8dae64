#include "simt/state/faults.h"

#include <bit>

#include "common/error.h"
#include "simt/program/registers.h"

namespace warpstack::simt {

std::string lanes_text(std::uint32_t lanes) {
  std::string text = std::popcount(lanes) == 1 ? "lane " : "lanes ";
  const char* comma = "";
  while (lanes != 0) {
    const int first = std::countr_zero(lanes);
    const int last = first + std::countr_one(lanes >> first) - 1;
    text += comma + std::to_string(first);
    if (last > first) text += (last > first + 1 ? "-" : ", ") + std::to_string(last);
    comma = ", ";
    lanes &= last == 31 ? 0 : all_lanes << (last + 1);
  }
  return text;
}

std::string Faults::place_of(const SourceInstruction& text) {
  return text.source + (text.source.empty() ? "" : ", ") + text.place + ", " + text.opcode;
}

std::string Faults::place_of(const Warp& warp, const Step& step, std::uint32_t lane) const {
  const auto thread = execution_.thread_index(warp, lane);
  return "kernel " + execution_.program.name + " (" + place_of(warp, step) + "), block " +
         execution_.block.text() + ", thread (" + std::to_string(thread[0]) + ", " +
         std::to_string(thread[1]) + ", " + std::to_string(thread[2]) + ")";
}

void Faults::stop(const Warp& warp, const Step& step, std::uint32_t lane,
                  const std::string& what) const {
  throw InputError(place_of(warp, step, lane) + ": " + what);
}

std::string Block::text() const {
  return "(" + std::to_string(index[0]) + ", " + std::to_string(index[1]) + ", " +
         std::to_string(index[2]) + ")";
}

}  // namespace warpstack::simt
