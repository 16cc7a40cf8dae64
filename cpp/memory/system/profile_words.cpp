#include "memory/system/profile_words.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "common/error.h"

namespace warpstack::memory {
namespace {

constexpr std::size_t words_per_row = 11 + 4 * num_miss_events + 1;
constexpr std::size_t words_per_observed = 6;
/// Words of a sample per row and per simulated SM.
constexpr std::size_t words_per_row_errors = 2;
constexpr std::size_t words_per_sm = 1 + num_totals;
/// Numbers of rows and of observed accesses, totals, occupancy, size of L1, simulated blocks, waits
/// for a place, most sectors of an SM, crowding of slices, errors of the sample and its working
/// SMs, numbers of its simulated SMs and of slices, with and without DRAM.
constexpr std::size_t words_of_kernel = 2 + num_totals + 3 + 3 + 2 + 2 + 3 + 3;

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
  visit(counters.l1_passes);
  for (auto& event : counters.events) visit(event);
  for (auto& wait : counters.waits) visit(wait);
  for (auto& cycles : counters.wait_cycles) visit(cycles);
  visit(counters.repeats);
  for (auto& cycles : counters.repeat_cycles) visit(cycles);
}

void push_number(std::vector<std::uint64_t>& words, double number) {
  words.push_back(std::bit_cast<std::uint64_t>(number));
}
void push_totals(std::vector<std::uint64_t>& words, const MemoryTotals& totals) {
  for (std::size_t i = 0; i < num_totals; ++i) words.push_back(totals[static_cast<Total>(i)]);
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
  void next_totals(MemoryTotals& totals) {
    for (std::size_t i = 0; i < num_totals; ++i) totals[static_cast<Total>(i)] = next();
  }

 private:
  std::span<const std::uint64_t> words_;
  std::size_t position_ = 0;
};

}  // namespace

std::vector<std::uint64_t> words_of(const MemoryProfile& profile) {
  std::vector<std::uint64_t> words;
  words.reserve(words_of_kernel + profile.per_row.size() * words_per_row +
                profile.sample.row_errors.size() * words_per_row_errors +
                profile.sample.sms.size() * words_per_sm +
                profile.observed.size() * words_per_observed + profile.slice_turns.size() +
                profile.slice_dram_sectors.size());
  words.push_back(profile.per_row.size());
  words.push_back(profile.observed.size());
  push_totals(words, profile.totals);
  words.push_back(profile.occupancy.blocks_per_sm);
  words.push_back(profile.occupancy.warps_per_block);
  words.push_back(static_cast<std::uint64_t>(profile.occupancy.limit));
  words.push_back(profile.l1_size_bytes);
  words.push_back(profile.simulated_blocks);
  words.push_back(profile.simulated_instructions);
  for (const std::uint64_t cycles : profile.place_wait_cycles) words.push_back(cycles);
  words.push_back(profile.most_read_sectors);
  push_number(words, profile.slice_crowding);
  push_number(words, profile.sample.errors.requests);
  push_number(words, profile.sample.errors.waits);
  words.push_back(profile.sample.working_sms);
  words.push_back(profile.sample.sms.size());
  words.push_back(profile.slice_dram_sectors.size());
  words.push_back(profile.slice_turns.size());
  for (std::size_t row = 0; row < profile.per_row.size(); ++row) {
    for_each_counter(profile.per_row[row], [&](std::uint64_t count) { words.push_back(count); });
    push_number(words, profile.atomic_lanes[row]);
  }
  for (const SampleErrors& errors : profile.sample.row_errors) {
    push_number(words, errors.requests);
    push_number(words, errors.waits);
  }
  for (const SampleSummary::SampledSm& sm : profile.sample.sms) {
    push_number(words, sm.weight);
    push_totals(words, sm.totals);
  }
  for (const ObservedAccess& access : profile.observed) {
    words.insert(words.end(),
                 {access.row, access.l2_requests, access.l2_request_sectors, access.dram_requests,
                  access.dram_sectors, static_cast<std::uint64_t>(access.event)});
  }
  for (const double turns : profile.slice_turns) push_number(words, turns);
  for (const std::uint64_t sectors : profile.slice_dram_sectors) words.push_back(sectors);
  return words;
}

MemoryProfile memory_profile_of(std::span<const std::uint64_t> words) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  const auto is_whole = [&] {
    if (words.size() < words_of_kernel) return false;
    const std::uint64_t slices = words[words_of_kernel - 1];
    const std::uint64_t of_dram = words[words_of_kernel - 2];
    const std::uint64_t sms = words[words_of_kernel - 3];
    for (const std::uint64_t count : {words[0], words[1], sms, slices, of_dram}) {
      if (count > most) return false;
    }
    const std::uint64_t per_row = words_per_row + (sms > 0 ? words_per_row_errors : 0);
    return words.size() == words_of_kernel + words[0] * per_row + sms * words_per_sm +
                               words[1] * words_per_observed + slices + of_dram;
  };
  if (!is_whole()) {
    throw InputError("a memory profile of " + std::to_string(words.size()) +
                     " words is truncated or malformed");
  }
  WordReader reader(words);
  MemoryProfile profile;
  profile.per_row.resize(reader.next());
  profile.observed.resize(reader.next());
  reader.next_totals(profile.totals);
  profile.occupancy.blocks_per_sm = reader.next32();
  profile.occupancy.warps_per_block = reader.next32();
  profile.occupancy.limit = static_cast<OccupancyLimit>(
      reader.at_most(static_cast<std::uint64_t>(OccupancyLimit::shared_memory)));
  profile.l1_size_bytes = reader.next();
  profile.simulated_blocks = reader.next();
  profile.simulated_instructions = reader.next();
  for (std::uint64_t& cycles : profile.place_wait_cycles) cycles = reader.next();
  profile.most_read_sectors = reader.next();
  profile.slice_crowding = reader.next_number();
  if (profile.slice_crowding < 1) {
    throw InputError("a number of the memory profile is out of range");
  }
  profile.sample.errors.requests = reader.next_number();
  profile.sample.errors.waits = reader.next_number();
  profile.sample.working_sms = reader.next32();
  profile.sample.sms.resize(reader.next());
  if (!profile.sample.sms.empty()) profile.sample.row_errors.resize(profile.per_row.size());
  profile.slice_dram_sectors.resize(reader.next());
  profile.slice_turns.resize(reader.next());
  for (InstructionCounters& counters : profile.per_row) {
    for_each_counter(counters, [&](std::uint64_t& count) { count = reader.next(); });
    profile.atomic_lanes.push_back(reader.next_number());
  }
  for (SampleErrors& errors : profile.sample.row_errors) {
    errors = {reader.next_number(), reader.next_number()};
  }
  for (SampleSummary::SampledSm& sm : profile.sample.sms) {
    sm.weight = reader.next_number();
    reader.next_totals(sm.totals);
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
  for (std::uint64_t& sectors : profile.slice_dram_sectors) sectors = reader.next();
  return profile;
}

}  // namespace warpstack::memory
