#include "memory/system/order_recording.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "common/error.h"

namespace warpstack::memory {

OrderRecorder::OrderRecorder(const trace::KernelTrace& trace, std::size_t l2_slices)
    : l2_slices_(l2_slices) {
  std::uint32_t warps = 0;
  for (std::size_t block = 0; block < trace.blocks().size(); ++block) {
    first_warp_of_block_.push_back(warps);
    warps += static_cast<std::uint32_t>(trace.blocks().warps(block).size());
  }
}

SmRecorder& OrderRecorder::of_sm(std::size_t sm) {
  while (sms_.size() <= sm) {
    sms_.push_back(std::make_unique<SmRecorder>(first_warp_of_block_, l2_slices_));
  }
  return *sms_[sm];
}

OrderRecording OrderRecorder::take(bool is_timed, MemoryProfile reference) {
  OrderRecording result;
  result.is_timed = is_timed;
  result.num_sms = sms_.size();
  constexpr std::size_t most_sms = std::numeric_limits<std::uint16_t>::max();
  if (sms_.size() > most_sms) {
    throw InputError("the order of accesses of " + std::to_string(sms_.size()) +
                     " SMs cannot be recorded; at most " + std::to_string(most_sms) + " can");
  }
  result.atomic_turns = reference.slice_turns;
  std::uint64_t turns = 0;
  std::size_t lines = 0;
  for (const auto& sm : sms_) {
    if (!sm->turns_.empty()) turns = std::max(turns, sm->turns_.back() + 1);
    lines += sm->lines_.size();
    for (std::size_t slice = 0; slice < result.atomic_turns.size(); ++slice) {
      result.atomic_turns[slice] -= sm->plain_turns_[slice];
    }
  }
  // By turn: where its lines begin; then where its next line goes.
  std::vector<std::size_t> place(turns + 1);
  for (const auto& sm : sms_) {
    for (const std::uint64_t turn : sm->turns_) ++place[turn + 1];
  }
  for (std::uint64_t turn = 0; turn < turns; ++turn) place[turn + 1] += place[turn];
  result.lines.resize(lines);
  result.bytes.resize(1);
  for (std::size_t number = 0; number < sms_.size(); ++number) {
    SmRecorder& sm = *sms_[number];
    const auto first_access = static_cast<std::uint32_t>(result.accesses.size());
    const auto first_bytes = static_cast<std::uint32_t>(result.bytes.size() - 1);
    for (std::size_t i = 0; i < sm.lines_.size(); ++i) {
      RecordedLine line = sm.lines_[i];
      line.access += first_access;
      if (line.bytes != 0) line.bytes += first_bytes;
      line.sm = static_cast<std::uint16_t>(number);
      result.lines[place[sm.turns_[i]]++] = line;
    }
    result.accesses.insert(result.accesses.end(), sm.accesses_.begin(), sm.accesses_.end());
    result.bytes.insert(result.bytes.end(), sm.bytes_.begin() + 1, sm.bytes_.end());
    sms_[number].reset();
  }
  sms_.clear();
  result.reference = std::move(reference);
  return result;
}

}  // namespace warpstack::memory
