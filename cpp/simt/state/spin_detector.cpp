#include "simt/state/spin_detector.h"

#include <bit>
#include <cstring>

#include "simt/program/program.h"
#include "simt/state/warp.h"

namespace warpstack::simt {

std::uint64_t SpinDetector::mix(std::uint64_t hash, const std::byte* bytes, std::size_t count) {
  for (; count >= 8; bytes += 8, count -= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    hash = mix(hash, word);
  }
  if (count == 0) return hash;
  std::uint64_t rest = 0;
  std::memcpy(&rest, bytes, count);
  return mix(hash, rest);
}

void SpinDetector::begin_access(std::uint32_t access, std::uint32_t mask) {
  access_ = mix(access, mask);
  before_ = after_ = 0;
  is_first_lane_ = true;
}

void SpinDetector::before(std::uint64_t address, const std::byte* place, std::uint32_t bytes) {
  if (is_first_lane_) address_ = address;
  is_first_lane_ = false;
  access_ = mix(access_, address);
  before_ = mix(before_, place, bytes);
}

void SpinDetector::end_access(const Step& step, bool is_look) {
  const bool changes = before_ != after_;
  const bool is_known = !known_.insert(mix(mix(access_, before_), after_)).second;
  if (!is_known) {
    begin_again();
  } else if (changes) {
    period_ = taken_ = 0;
  }
  sightings_.changes |= changes;
  if (is_look) ++looks_;
  has_looked_ |= is_look;
  if (is_look || step.action == Action::load) {
    look_ = &step;
    look_address_ = address_;
  }
}

void SpinDetector::begin_again() {
  sightings_.news = true;
  circles_ = meetings_ = looks_ = 0;
  period_ = taken_ = 0;
}

void SpinDetector::circle(const Warp& warp, std::uint32_t target) {
  ++circles_;
  if (circles_ > most_states_) {
    ++last_;  // keeps what has been seen
    return;
  }
  std::uint64_t state = mix(target, warp.file.data(), warp.file.size());
  for (const PathEntry& path : warp.paths) {
    state = mix(state, path.pc | std::uint64_t{path.mask} << 32);
  }
  if (taken_ > 0 && state == state_) {
    if (period_ == 0) period_ = circles_ - taken_;
    last_ = circles_;
  } else if (std::has_single_bit(circles_)) {
    state_ = state;
    taken_ = circles_;
    period_ = 0;
  }
}

}  // namespace warpstack::simt
