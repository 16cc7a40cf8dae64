#include "simt/units/calls.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "common/text.h"
#include "simt/program/registers.h"
#include "simt/state/cluster.h"

namespace warpstack::simt {
namespace {

constexpr std::uint32_t max_call_depth = 4096;
/// The most bytes of a warp's registers and parameters, in all functions that it is in.
constexpr std::size_t max_file_bytes = std::size_t{64} << 20;

/// Copies between the parameter areas of a caller and the function it calls.
void move_piece(Warp& warp, const Frame& caller, const Call::Piece& outer, std::size_t callee_base,
                const ProgramFunction& callee, const Call::Piece& inner, std::uint32_t mask,
                bool into_callee) {
  const std::size_t bytes = std::min(outer.bytes, inner.bytes);
  std::byte* const outer_area =
      warp.file.data() + caller.base + caller.function->register_bytes + outer.offset;
  std::byte* const inner_area =
      warp.file.data() + callee_base + callee.register_bytes + inner.offset;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    std::byte* const a = outer_area + lane * caller.function->parameter_bytes;
    std::byte* const b = inner_area + lane * callee.parameter_bytes;
    std::memcpy(into_callee ? b : a, into_callee ? a : b, bytes);
  }
}

}  // namespace

void Calls::call(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask) {
  const Call& call = program_.calls[step.detail];
  if (call.built_in != Call::BuiltIn::none) {
    if (warp.detector != nullptr) warp.detector->work();
    built_ins_.call(warp, step, call, mask);
    return;
  }
  if (step.action == Action::call) {
    enter(warp, step, call, call.function, mask);
    return;
  }
  // One callee at a time; the other lanes come back to this call.
  std::uint32_t function = none;
  std::uint32_t same = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = lane_u64(registers, call.address, lane);
    const auto found = program_.function_addresses.find(address);
    if (found == program_.function_addresses.end()) {
      faults_.stop(warp, step, static_cast<std::uint32_t>(lane),
                   "call of " + hexadecimal(address) + ", which is not a function");
    }
    if (function == none) function = found->second;
    if (found->second == function) same |= 1u << lane;
  }
  if (same != mask) {
    const PathEntry all = warp.paths.back();  // waits behind the call, where all meet
    warp.paths.push_back({all.pc - 1, all.pc, all.mask & ~same});
    warp.paths.push_back({all.pc, all.pc, same});
  }
  const ProgramFunction& callee = program_.functions[function];
  if (callee.parameters.size() != call.arguments.size() ||
      callee.results.size() != call.results.size()) {
    faults_.stop(warp, step, static_cast<std::uint32_t>(std::countr_zero(same)),
                 "call of " + callee.name + ", which has another number of parameters");
  }
  enter(warp, step, call, function, same);
}

void Calls::finish_call(Warp& warp) {
  const Frame callee = warp.frames.back();
  warp.frames.pop_back();
  const Frame& caller = warp.frames.back();
  for (std::size_t i = 0; i < callee.call->results.size(); ++i) {
    move_piece(warp, caller, callee.call->results[i], callee.base, *callee.function,
               callee.function->results[i], callee.mask & warp.live, false);
  }
  warp.file.resize(callee.base);
}

void Calls::enter(Warp& warp, const Step& step, const Call& call, std::uint32_t function,
                  std::uint32_t mask) {
  const ProgramFunction& callee = program_.functions[function];
  const Frame caller = warp.frames.back();
  const std::uint64_t local_base = caller.local_base + caller.function->local_bytes;
  if (warp.frames.size() >= max_call_depth || local_base + callee.local_bytes > local_bytes_) {
    faults_.stop(warp, step, static_cast<std::uint32_t>(std::countr_zero(mask)),
                 "stack overflow: " + std::to_string(warp.frames.size()) + " calls deep");
  }
  const std::size_t base = warp.file.size();
  if (base + Frame::bytes_of(callee) > max_file_bytes) {
    faults_.stop(warp, step, static_cast<std::uint32_t>(std::countr_zero(mask)),
                 "stack overflow: the parameters and registers of " +
                     std::to_string(warp.frames.size()) + " calls take more than 64 MiB per warp");
  }
  warp.file.resize(base + Frame::bytes_of(callee));
  std::ranges::copy(callee.constants, warp.file.begin() + static_cast<std::ptrdiff_t>(base));
  add_own_rank(execution_, callee, warp.file.data() + base);
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    move_piece(warp, caller, call.arguments[i], base, callee, callee.parameters[i], mask, true);
  }
  warp.frames.push_back({.function = &callee,
                         .base = base,
                         .first_path = warp.paths.size(),
                         .mask = mask,
                         .local_base = local_base,
                         .call = &call});
  warp.paths.push_back({0, none, mask});
  if (warp.local_written.whole() || callee.local_bytes == 0) return;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {  // of earlier calls
    const auto lane = static_cast<std::uint64_t>(std::countr_zero(rest));
    warp.local_written.forget(lane * local_bytes_ + local_base, callee.local_bytes);
  }
}

}  // namespace warpstack::simt
