#include "simt/async/async_barriers.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "common/error.h"
#include "common/text.h"
#include "simt/program/registers.h"
#include "simt/state/cluster.h"
#include "simt/units/load_store.h"

namespace warpstack::simt {
namespace {

constexpr std::uint32_t barrier_bytes = 8;
constexpr std::uint64_t count_mask = BarrierWord::max_count;
constexpr std::int32_t byte_bias = 1 << 20;
/// The completions of a barrier, initially none.
PhaseCount& phase_of(std::vector<PhaseCount>& phases, std::uint32_t barrier) {
  const auto found = std::ranges::find(phases, barrier, &PhaseCount::barrier);
  return found != phases.end() ? *found : phases.emplace_back(PhaseCount{barrier});
}

bool completes(AsyncBarrier::Kind kind) {
  using Kind = AsyncBarrier::Kind;
  return kind == Kind::complete || kind == Kind::arrive || kind == Kind::copies;
}

/// Two bits that differ from zeros and most other contents of memory.
constexpr std::uint64_t valid_mark = 2;
constexpr const char* too_many =
    "bytes more than it expects (mbarrier.arrive.expect_tx says how many, before the phase ends)";

}  // namespace

BarrierWord BarrierWord::unpack(std::uint64_t word) {
  return {.pending = static_cast<std::uint32_t>(word & count_mask),
          .expected = static_cast<std::uint32_t>(word >> 20 & count_mask),
          .bytes = static_cast<std::int32_t>(word >> 40 & 0x1fffff) - byte_bias,
          .parity = (word >> 61 & 1) != 0,
          .valid = word >> 62 == valid_mark};
}

std::uint64_t BarrierWord::pack() const {
  return pending | std::uint64_t{expected} << 20 |
         static_cast<std::uint64_t>(bytes + byte_bias) << 40 | std::uint64_t{parity} << 61 |
         valid_mark << 62;
}

bool BarrierWord::end_phase() {
  if (pending != 0 || bytes != 0) return false;
  pending = expected;
  parity = !parity;
  return true;
}

std::uint64_t address_in(const Execution& execution, const std::byte* registers,
                         const AddressOperand& operand, std::uint32_t lane) {
  auto address = static_cast<std::uint64_t>(operand.offset);
  const auto number = static_cast<int>(lane);
  if (operand.slot != none && operand.is_64_bits) {
    address += lane_u64(registers, operand.slot, number);
  } else if (operand.slot != none) {
    address = (address + lane_u32(registers, operand.slot, number)) & 0xffffffffu;
  }
  if (operand.space == AddressSpace::global) return address;
  const std::uint64_t first = operand.space == AddressSpace::generic ? shared_window : 0;
  const std::uint64_t shared = address - first;
  if (!in_cluster(shared)) return address;
  const bool is_own =
      rank_of_address(shared) == rank_in_cluster(execution.block, execution.cluster);
  return is_own ? first + offset_in_block(shared) : address;
}

bool AsyncBarriers::execute(Warp& warp, const Step& step, std::byte* registers,
                            std::uint32_t mask) {
  const AsyncBarrier& barrier = program_.async_barriers[step.detail];
  if (barrier.kind == AsyncBarrier::Kind::wait) {
    if (over(warp, step, registers, mask) != mask) return false;
    give_up(warp, step, registers, mask);
    return true;
  }
  if (warp.detector != nullptr) warp.detector->work();
  trace::PhaseStep phase;
  // Bytes of a store (`st.async`) have no row of their own: they are there at once.
  if (completes(barrier.kind) && step.num_rows > 0)
    phase = count_completion(registers, barrier.address, mask);
  recorder_.record_phase(warp, step, mask, phase);
  if (barrier.kind == AsyncBarrier::Kind::copies) return true;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (barrier.kind == AsyncBarrier::Kind::pending) {
      const auto state = lane_u64(registers, barrier.state, static_cast<int>(lane));
      write_lane(registers, barrier.result, 4, static_cast<int>(lane),
                 BarrierWord::unpack(state).pending);
      continue;
    }
    change(warp, step, registers, lane, address_in(execution_, registers, barrier.address, lane));
  }
  return true;
}

void AsyncBarriers::give_up(Warp& warp, const Step& step, std::byte* registers,
                            std::uint32_t mask) {
  const AsyncBarrier& barrier = program_.async_barriers[step.detail];
  const std::uint32_t done = over(warp, step, registers, mask);
  for (std::uint32_t rest = done; rest != 0 && races_.is_on(); rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    order(warp, step, lane, barrier.address.space,
          address_in(execution_, registers, barrier.address, lane), false);
  }
  recorder_.record_phase(warp, step, mask,
                         done == mask ? awaited(warp, step, registers, mask) : trace::PhaseStep{});
  broadcast(registers, barrier.result, 4, mask & ~done, 0);
  broadcast(registers, barrier.result, 4, done, ~std::uint64_t{0});
}

void AsyncBarriers::complete(Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
                             std::uint64_t address, std::uint64_t bytes, std::uint32_t actor) {
  std::byte* const at = place(warp, step, lane, space, address, false);
  BarrierWord word = load(warp, step, lane, at, address);
  if (races_.is_on()) {
    const std::optional<std::uint64_t> own = races_.own_offset(address);
    if (own) races_.actors().complete_copy(actor, shared_window + *own, barrier_bytes);
  }
  expect(warp, step, lane, word, -static_cast<std::int64_t>(bytes));
  end_phase(word, space, address);
  if (word.bytes < 0) note_unexpected(warp, step, lane, address);
  const std::uint64_t packed = word.pack();
  std::memcpy(at, &packed, barrier_bytes);
  ++execution_.async_events;
}

void AsyncBarriers::arrive_once(Warp& warp, const Step& step, std::uint32_t lane,
                                AddressSpace space, std::uint64_t address) {
  std::byte* const at = place(warp, step, lane, space, address, false);
  BarrierWord word = load(warp, step, lane, at, address);
  order(warp, step, lane, space, address, true);
  arrive(warp, step, lane, word, 1, false);
  end_phase(word, space, address);
  const std::uint64_t packed = word.pack();
  std::memcpy(at, &packed, barrier_bytes);
  ++execution_.async_events;
}

trace::PhaseStep AsyncBarriers::count_completion(const std::byte* registers,
                                                 const AddressOperand& barrier, std::uint32_t mask,
                                                 std::uint32_t blocks, bool of_pairs) {
  if (barrier.space == AddressSpace::local) return {};
  if (blocks != none) {
    const std::uint32_t rank = rank_in_cluster(execution_.block, execution_.cluster);
    const std::uint32_t signals = of_pairs ? 3u << (rank & ~1u) : 1u << rank;
    if ((lane_u32(registers, blocks, std::countr_zero(mask)) & signals) == 0) return {};
  }
  const auto own = own_barrier(registers, barrier, mask);
  if (!own) return {};
  ++phase_of(execution_.block.phases, *own).made;
  return {.kind = trace::PhaseStep::Kind::complete, .barrier = *own};
}

std::optional<std::uint32_t> AsyncBarriers::own_barrier(const std::byte* registers,
                                                        const AddressOperand& operand,
                                                        std::uint32_t mask) const {
  const std::uint64_t address = address_in(execution_, registers, operand,
                                           static_cast<std::uint32_t>(std::countr_zero(mask)));
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (address_in(execution_, registers, operand, lane) != address) return {};
  }
  const std::uint64_t shared =
      operand.space == AddressSpace::generic ? address - shared_window : address;
  if (in_cluster(shared)) return {};
  return static_cast<std::uint32_t>(shared);
}

trace::PhaseStep AsyncBarriers::awaited(Warp& warp, const Step& step, const std::byte* registers,
                                        std::uint32_t mask) {
  const auto own = own_barrier(registers, program_.async_barriers[step.detail].address, mask);
  if (!own) return {};
  const std::uint32_t ended = phase_of(execution_.block.phases, *own).ended;
  auto& waits = warp.async.awaited_phases;
  auto known = std::ranges::find(waits, *own, &std::pair<std::uint32_t, std::uint32_t>::first);
  if (known == waits.end()) known = waits.insert(waits.end(), {*own, 0});
  if (known->second == ended) return {};
  const std::uint32_t count = ended - std::exchange(known->second, ended);
  return {.kind = trace::PhaseStep::Kind::wait, .barrier = *own, .count = count};
}

void AsyncBarriers::end_phase(BarrierWord& word, AddressSpace space, std::uint64_t address) {
  if (!word.end_phase()) return;
  if (space == AddressSpace::generic) address -= shared_window;
  Block* block = &execution_.block;
  if (in_cluster(address)) {
    const std::uint32_t rank = rank_of_address(address);
    if (rank != rank_in_cluster(*block, execution_.cluster)) {
      block = block_of_rank(execution_, rank);
    }
    address %= trace::window_bytes;
  }
  PhaseCount& phase = phase_of(block->phases, static_cast<std::uint32_t>(address));
  phase.ended = phase.made;
}

std::string AsyncBarriers::text(Warp& warp, const Step& step, std::uint32_t mask) {
  const AsyncBarrier& barrier = program_.async_barriers[step.detail];
  const std::uint32_t waiting = mask & ~over(warp, step, warp.registers(), mask);
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(waiting != 0 ? waiting : mask));
  const std::uint64_t address = address_in(execution_, warp.registers(), barrier.address, lane);
  std::byte* const at = place(warp, step, lane, barrier.address.space, address, false);
  const BarrierWord word = load(warp, step, lane, at, address);
  return "mbarrier at " + hexadecimal(address) + ", whose phase waits for " +
         std::to_string(word.pending) + (word.pending == 1 ? " arrival" : " arrivals") +
         (word.bytes >= 0
              ? " and " + std::to_string(word.bytes) + " bytes"
              : "; copies have brought it " + std::to_string(-word.bytes) + " " + too_many);
}

void AsyncBarriers::note_unexpected(const Warp& warp, const Step& step, std::uint32_t lane,
                                    std::uint64_t address) {
  Block* const block =
      in_cluster(address) ? block_of_rank(execution_, rank_of_address(address)) : &execution_.block;
  if (block == nullptr) return;
  const std::uint64_t offset = offset_in_block(address);
  for (const UnexpectedBytes& one : block->unexpected) {
    if (one.barrier == offset) return;
  }
  block->unexpected.push_back({.barrier = offset,
                               .copy = &warp.text_of(step),
                               .place = faults_.place_of(warp, step, lane)});
}

void AsyncBarriers::check_bytes() {
  const std::vector<std::byte>& shared = execution_.block.shared;
  for (const UnexpectedBytes& one : execution_.block.unexpected) {
    if (one.barrier + barrier_bytes > shared.size()) continue;
    const BarrierWord word =
        BarrierWord::unpack(read_value(shared.data() + one.barrier, barrier_bytes));
    // A barrier whose memory now holds something else was checked when it was invalidated.
    if (!word.valid || word.bytes >= 0) continue;
    const std::string what = "the block ends, and copies have brought the mbarrier at " +
                             hexadecimal(one.barrier) + " " + std::to_string(-word.bytes) + " " +
                             too_many + ": nobody waits for them";
    if (execution_.options.on_fault == OnFault::stop) throw InputError(one.place + ": " + what);
    execution_.need_turn();  // the text is that of the first occurrence
    Note& note =
        faults_.book().note("mbarrier", one.copy, [&] { return Faults::line_of(*one.copy); });
    if (note.count++ > 0) continue;
    note.place = one.place;
    note.what = what;
  }
}

void AsyncBarriers::change(Warp& warp, const Step& step, std::byte* registers, std::uint32_t lane,
                           std::uint64_t address) {
  const AsyncBarrier& barrier = program_.async_barriers[step.detail];
  const bool initializes = barrier.kind == AsyncBarrier::Kind::init;
  const auto number = static_cast<int>(lane);
  const std::uint32_t count =
      barrier.count == none ? 1 : lane_u32(registers, barrier.count, number);
  const std::uint32_t bytes =
      barrier.bytes == none ? 0 : lane_u32(registers, barrier.bytes, number);
  std::byte* const at = place(warp, step, lane, barrier.address.space, address, initializes);
  ++execution_.async_events;
  if (initializes) {
    if (count < 1 || count > BarrierWord::max_count) {
      faults_.stop(warp, step, lane,
                   "an mbarrier for " + std::to_string(count) + " arrivals; 1 to " +
                       std::to_string(BarrierWord::max_count) + " are possible");
    }
    const std::uint64_t fresh = BarrierWord{.pending = count, .expected = count}.pack();
    std::memcpy(at, &fresh, barrier_bytes);
    if (races_.is_on()) {
      LaneAddresses one;
      one.mask = 1u << lane;
      one.address[lane] = address;
      races_.check(warp, step, barrier.address.space, one, barrier_bytes, RaceKind::store);
    }
    return;
  }
  BarrierWord word = load(warp, step, lane, at, address);
  std::uint64_t packed = word.pack();
  if (barrier.kind == AsyncBarrier::Kind::invalidate) {
    if (word.bytes < 0) {
      faults_.diagnose(warp, step, lane, "mbarrier", [&] {
        return "the mbarrier at " + hexadecimal(address) +
               " is invalidated, and copies have brought it " + std::to_string(-word.bytes) + " " +
               too_many;
      });
    }
    std::memset(at, 0, barrier_bytes);
    return;
  }
  order(warp, step, lane, barrier.address.space, address, true);
  if (barrier.kind == AsyncBarrier::Kind::complete) {
    expect(warp, step, lane, word, -std::int64_t{bytes});
  } else {
    expect(warp, step, lane, word, bytes);
  }
  if (barrier.kind == AsyncBarrier::Kind::arrive) {
    if (barrier.result != none) write_lane(registers, barrier.result, 8, number, packed);
    arrive(warp, step, lane, word, count, barrier.drops);
  }
  if (barrier.kind != AsyncBarrier::Kind::expect) {
    end_phase(word, barrier.address.space, address);
  }
  packed = word.pack();
  std::memcpy(at, &packed, barrier_bytes);
}

std::uint32_t AsyncBarriers::over(Warp& warp, const Step& step, const std::byte* registers,
                                  std::uint32_t mask) {
  const AsyncBarrier& barrier = program_.async_barriers[step.detail];
  std::uint32_t done = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    const auto number = static_cast<int>(lane);
    const std::uint64_t address = address_in(execution_, registers, barrier.address, lane);
    const BarrierWord word = load(
        warp, step, lane, place(warp, step, lane, barrier.address.space, address, false), address);
    const bool awaited =
        barrier.by_parity ? (lane_u32(registers, barrier.state, number) & 1) != 0
                          : BarrierWord::unpack(lane_u64(registers, barrier.state, number)).parity;
    if (word.parity != awaited) done |= 1u << lane;
  }
  return done;
}

std::byte* AsyncBarriers::place(Warp& warp, const Step& step, std::uint32_t lane,
                                AddressSpace space, std::uint64_t address, bool initializes) {
  if (address % barrier_bytes != 0) {
    faults_.stop(warp, step, lane,
                 "an mbarrier at " + hexadecimal(address) + ", which is not a multiple of 8");
  }
  return spaces_.shared_place(warp, step, lane, space, address, barrier_bytes,
                              {.reads = !initializes, .writes = initializes});
}

BarrierWord AsyncBarriers::load(Warp& warp, const Step& step, std::uint32_t lane,
                                const std::byte* place, std::uint64_t address) {
  const BarrierWord word = BarrierWord::unpack(read_value(place, barrier_bytes));
  if (!word.valid) {
    faults_.stop(warp, step, lane,
                 "there is no mbarrier at " + hexadecimal(address) +
                     ": none was initialised there, or it has been invalidated or overwritten "
                     "(mbarrier.init comes first, and a barrier of the block after it)");
  }
  return word;
}

void AsyncBarriers::expect(Warp& warp, const Step& step, std::uint32_t lane, BarrierWord& word,
                           std::int64_t bytes) {
  const std::int64_t sum = word.bytes + bytes;
  if (sum >= byte_bias || sum <= -byte_bias) {
    faults_.stop(warp, step, lane,
                 "the mbarrier waits for " + std::to_string(sum) + " bytes; its count goes to " +
                     std::to_string(byte_bias - 1));
  }
  word.bytes = static_cast<std::int32_t>(sum);
}

void AsyncBarriers::arrive(Warp& warp, const Step& step, std::uint32_t lane, BarrierWord& word,
                           std::uint32_t count, bool drops) {
  if (count > word.pending || count < 1) {
    faults_.stop(warp, step, lane,
                 std::to_string(count) + " arrivals at an mbarrier whose phase waits for " +
                     std::to_string(word.pending));
  }
  word.pending -= count;
  if (drops) word.expected -= count;
}

void AsyncBarriers::order(Warp& warp, const Step& step, std::uint32_t lane, AddressSpace space,
                          std::uint64_t address, bool releases) {
  if (!races_.is_on()) return;
  LaneAddresses one;
  one.mask = 1u << lane;
  one.address[lane] = address;
  MemoryAccess access;
  access.space = space;
  access.strong = true;
  access.acquires = true;
  access.releases = releases;
  access.bytes = barrier_bytes;
  races_.check(warp, step, space, one, barrier_bytes,
               releases ? RaceKind::strong_store : RaceKind::strong_load, &access);
}

}  // namespace warpstack::simt
