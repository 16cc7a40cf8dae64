#include "simt/units/exchange.h"

#include <bit>
#include <string>

#include "common/text.h"
#include "simt/program/registers.h"

namespace warpstack::simt {
namespace {

void vote(const Collective& c, std::byte* registers, std::uint32_t mask, std::uint32_t voters,
          const Exchange& exchange) {
  std::uint32_t yes = 0;
  for (std::uint32_t rest = voters; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    yes |= static_cast<std::uint32_t>(exchange.values[static_cast<std::size_t>(lane)]) << lane;
  }
  std::uint64_t result = 0;
  switch (static_cast<VoteMode>(c.mode)) {
    case VoteMode::all:
      result = yes == voters ? ~std::uint64_t{0} : 0;
      break;
    case VoteMode::any:
      result = yes != 0 ? ~std::uint64_t{0} : 0;
      break;
    case VoteMode::uniform:
      result = yes == voters || yes == 0 ? ~std::uint64_t{0} : 0;
      break;
    case VoteMode::ballot:
      result = yes;
      break;
  }
  broadcast(registers, c.result, 4, mask, result);
}

void match(const Collective& c, std::byte* registers, std::uint32_t mask, std::uint32_t group,
           const Exchange& exchange) {
  const auto& values = exchange.values;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint32_t same = 0;
    for (std::uint32_t others = group; others != 0; others &= others - 1) {
      const int other = std::countr_zero(others);
      if (values[static_cast<std::size_t>(other)] == values[static_cast<std::size_t>(lane)]) {
        same |= 1u << other;
      }
    }
    const bool all = same == group;
    write_lane(registers, c.result, 4, lane, c.mode == 0 || all ? same : 0);
    if (c.predicate != none)
      write_lane(registers, c.predicate, 4, lane, all ? ~std::uint64_t{0} : 0);
  }
}

void reduce(const Collective& c, std::byte* registers, std::uint32_t mask, std::uint32_t group,
            const Exchange& exchange) {
  std::uint64_t value = exchange.values[static_cast<std::size_t>(std::countr_zero(group))];
  for (std::uint32_t rest = group & (group - 1); rest != 0; rest &= rest - 1) {
    value = c.combine(value, exchange.values[static_cast<std::size_t>(std::countr_zero(rest))], 0);
  }
  broadcast(registers, c.result, 4, mask, value);
}

void elect(const Collective& c, std::byte* registers, std::uint32_t mask, std::uint32_t group) {
  const auto leader = static_cast<std::uint32_t>(std::countr_zero(group));
  broadcast(registers, c.result, 4, mask, leader);
  if (c.predicate == none) return;
  broadcast(registers, c.predicate, 4, mask, 0);
  broadcast(registers, c.predicate, 4, mask & (1u << leader), ~std::uint64_t{0});
}

}  // namespace

void WarpExchange::bring(const Step& step, const std::byte* registers, std::uint32_t mask,
                         Exchange& exchange) const {
  const Collective& c = program_.collectives[step.detail];
  exchange.present |= mask;
  if (c.a == none) return;
  const std::uint32_t bytes = step.action == Action::match ? bytes_of(c.type) : 4;
  if (step.action == Action::vote) {
    const std::uint32_t yes = predicate_bits(registers + c.a);
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
      if ((mask >> lane & 1) != 0) exchange.values[lane] = yes >> lane & 1;
    }
    return;
  }
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    exchange.values[static_cast<std::size_t>(lane)] = read_lane(registers, c.a, bytes, lane);
  }
}

void WarpExchange::take(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask,
                        const Exchange& exchange) {
  const Collective& c = program_.collectives[step.detail];
  for (std::uint32_t rest = mask; rest != 0;) {
    const std::uint32_t lanes = c.members == none ? rest : alike(registers, c.members, rest);
    const std::uint32_t members =
        c.members == none ? mask : lane_u32(registers, c.members, std::countr_zero(rest));
    rest &= ~lanes;
    const std::uint32_t group = members & exchange.present;
    switch (step.action) {
      case Action::shuffle:
        shuffle(warp, step, registers, lanes, members, exchange);
        break;
      case Action::vote:
        vote(c, registers, lanes, group, exchange);
        break;
      case Action::match:
        match(c, registers, lanes, group, exchange);
        break;
      case Action::reduce:
        reduce(c, registers, lanes, group, exchange);
        break;
      case Action::elect:
        elect(c, registers, lanes, group);
        break;
      default:
        break;
    }
  }
}

void WarpExchange::shuffle(Warp& warp, const Step& step, std::byte* registers, std::uint32_t mask,
                           std::uint32_t members, const Exchange& exchange) {
  const Collective& c = program_.collectives[step.detail];
  const std::uint32_t readable = members & exchange.present;
  std::uint32_t readers = 0;  // lanes that read a lane they may not read
  int first_source = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto b = static_cast<int>(lane_u32(registers, c.b, lane) & 31);
    const std::uint32_t control = lane_u32(registers, c.c, lane);
    const auto segment = static_cast<int>((control >> 8) & 31);
    const auto bound = static_cast<int>(control & 31);
    const int last = (lane & segment) | (bound & ~segment);
    const int first = lane & segment;
    int source = lane;
    bool valid = false;
    switch (static_cast<ShuffleMode>(c.mode)) {
      case ShuffleMode::up:
        source = lane - b;
        valid = source >= last;
        break;
      case ShuffleMode::down:
        source = lane + b;
        valid = source <= last;
        break;
      case ShuffleMode::butterfly:
        source = lane ^ b;
        valid = source <= last;
        break;
      case ShuffleMode::index:
        source = first | (b & ~segment);
        valid = source <= last;
        break;
    }
    if (!valid) source = lane;
    if (source != lane && (readable >> source & 1) == 0) {
      if (readers == 0) first_source = source;
      readers |= 1u << lane;
    }
    // An absent lane gives 0.
    write_lane(registers, c.result, 4, lane, exchange.values[static_cast<std::size_t>(source)]);
    if (c.predicate != none)
      write_lane(registers, c.predicate, 4, lane, valid ? ~std::uint64_t{0} : 0);
  }
  if (readers == 0) return;
  const auto reader = static_cast<std::uint32_t>(std::countr_zero(readers));
  faults_.diagnose(warp, step, reader, "shuffle", [&] {
    const bool is_here = (exchange.present >> first_source & 1) != 0;
    const bool is_named = (members >> first_source & 1) != 0;
    return lanes_text(readers) + " of the warp read lanes whose values are undefined: lane " +
           std::to_string(reader) + " reads lane " + std::to_string(first_source) +
           (is_named  ? ", which does not execute this"
            : is_here ? ", which the mask " + hexadecimal(members) + " leaves out"
                      : ", which the mask " + hexadecimal(members) +
                            " leaves out and which does not execute this") +
           mask_remedy;
  });
}

}  // namespace warpstack::simt
