#include "memory/profile_words.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "common/error.h"

namespace warpstack::memory {
namespace {

constexpr std::size_t words_per_row = 9 + 3 * num_miss_events + 1;
constexpr std::size_t words_per_observed = 6;
/// Numbers of rows and of observed accesses, totals, occupancy, size of L1, simulated blocks, waits
/// for a place, most sectors of an SM, the sample, number of slices.
constexpr std::size_t words_of_kernel = 2 + num_totals + 3 + 3 + 2 + 1 + 4 + 1;

/// Calls `visit` for each counter in order.
template <typename Counters, typename Visit>
void for_each_counter(Counters& counters, Visit visit) {
  visit(counters.executions);
  visit(counters.active_executions);
  visit(counters.sectors);
  visit(counters.requests);
  visit(counters.l2_requests);
  visit(counters.l2_request_sectors);
  visit(counters.dram_requests);
  visit(counters.dram_sectors);
  visit(counters.shared_wavefronts);
  for (auto& event : counters.events) visit(event);
  for (auto& wait : counters.waits) visit(wait);
  for (auto& cycles : counters.wait_cycles) visit(cycles);
}

class WordReader {
 public:
  explicit WordReader(std::span<const std::uint64_t> words) : words_(words) {}
  std::uint64_t next() { return words_[position_++]; }
  std::uint32_t next32() { return static_cast<std::uint32_t>(at_most(0xffffffff)); }
  std::uint64_t at_most(std::uint64_t limit) {
    const std::uint64_t word = next();
    if (word > limit) throw InputError("a word of the memory profile is out of range");
    return word;
  }
  double next_number() {
    const auto number = std::bit_cast<double>(next());
    if (!std::isfinite(number) || number < 0) {
      throw InputError("a number of the memory profile is out of range");
    }
    return number;
  }

 private:
  std::span<const std::uint64_t> words_;
  std::size_t position_ = 0;
};

}  // namespace

std::vector<std::uint64_t> words_of(const MemoryProfile& profile) {
  std::vector<std::uint64_t> words;
  words.reserve(words_of_kernel + profile.per_row.size() * words_per_row +
                profile.observed.size() * words_per_observed + profile.slice_turns.size());
  words.push_back(profile.per_row.size());
  words.push_back(profile.observed.size());
  for (std::size_t i = 0; i < num_totals; ++i) {
    words.push_back(profile.totals[static_cast<Total>(i)]);
  }
  words.push_back(profile.occupancy.blocks_per_sm);
  words.push_back(profile.occupancy.warps_per_block);
  words.push_back(static_cast<std::uint64_t>(profile.occupancy.limit));
  words.push_back(profile.l1_size_bytes);
  words.push_back(profile.simulated_blocks);
  words.push_back(profile.simulated_instructions);
  for (const std::uint64_t cycles : profile.place_wait_cycles) words.push_back(cycles);
  words.push_back(profile.most_read_sectors);
  words.push_back(profile.sample.simulated_sms);
  words.push_back(profile.sample.working_sms);
  words.push_back(std::bit_cast<std::uint64_t>(profile.sample.request_error));
  words.push_back(std::bit_cast<std::uint64_t>(profile.sample.wait_error));
  words.push_back(profile.slice_turns.size());
  for (std::size_t row = 0; row < profile.per_row.size(); ++row) {
    for_each_counter(profile.per_row[row], [&](std::uint64_t count) { words.push_back(count); });
    words.push_back(std::bit_cast<std::uint64_t>(profile.atomic_lanes[row]));
  }
  for (const ObservedAccess& access : profile.observed) {
    words.insert(words.end(),
                 {access.row, access.l2_requests, access.l2_request_sectors, access.dram_requests,
                  access.dram_sectors, static_cast<std::uint64_t>(access.event)});
  }
  for (const double turns : profile.slice_turns) {
    words.push_back(std::bit_cast<std::uint64_t>(turns));
  }
  return words;
}

MemoryProfile memory_profile_of(std::span<const std::uint64_t> words) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  const auto is_whole = [&] {
    if (words.size() < words_of_kernel) return false;
    const std::uint64_t slices = words[words_of_kernel - 1];
    if (words[0] > most || words[1] > most || slices > most) return false;
    return words.size() ==
           words_of_kernel + words[0] * words_per_row + words[1] * words_per_observed + slices;
  };
  if (!is_whole()) {
    throw InputError("a memory profile of " + std::to_string(words.size()) +
                     " words is truncated or malformed");
  }
  WordReader reader(words);
  MemoryProfile profile;
  profile.per_row.resize(reader.next());
  profile.observed.resize(reader.next());
  for (std::size_t i = 0; i < num_totals; ++i) {
    profile.totals[static_cast<Total>(i)] = reader.next();
  }
  profile.occupancy.blocks_per_sm = reader.next32();
  profile.occupancy.warps_per_block = reader.next32();
  profile.occupancy.limit = static_cast<OccupancyLimit>(
      reader.at_most(static_cast<std::uint64_t>(OccupancyLimit::shared_memory)));
  profile.l1_size_bytes = reader.next();
  profile.simulated_blocks = reader.next();
  profile.simulated_instructions = reader.next();
  for (std::uint64_t& cycles : profile.place_wait_cycles) cycles = reader.next();
  profile.most_read_sectors = reader.next();
  profile.sample.simulated_sms = reader.next32();
  profile.sample.working_sms = reader.next32();
  profile.sample.request_error = reader.next_number();
  profile.sample.wait_error = reader.next_number();
  profile.slice_turns.resize(reader.next());
  for (InstructionCounters& counters : profile.per_row) {
    for_each_counter(counters, [&](std::uint64_t& count) { count = reader.next(); });
    profile.atomic_lanes.push_back(reader.next_number());
  }
  for (ObservedAccess& access : profile.observed) {
    access.row = reader.next32();
    access.l2_requests = reader.next32();
    access.l2_request_sectors = reader.next32();
    access.dram_requests = reader.next32();
    access.dram_sectors = reader.next32();
    access.event = static_cast<MissEvent>(reader.at_most(num_miss_events - 1));
  }
  for (double& turns : profile.slice_turns) turns = reader.next_number();
  return profile;
}

}  // namespace warpstack::memory
