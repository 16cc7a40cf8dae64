#include "memory/families/family_replay.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/digest.h"
#include "common/error.h"
#include "gpu/reference_machine.h"
#include "memory/cache/count.h"
#include "memory/cache/line_parts.h"
#include "memory/cache/store_turns.h"
#include "memory/families/family_serve.h"
#include "memory/reuse/reuse_profile.h"
#include "memory/system/profile_words.h"
#include "memory/system/sm_caches.h"

namespace warpstack::memory {
namespace {

using Reference = gpu::ReferenceMachine;

/// A sample of fewer classes of sets would be too small.
constexpr std::uint64_t least_classes = 64;
/// All waits of a launch with fewer accesses are followed.
constexpr double most_accesses = 10'000;

bool is_sampled(std::uint64_t number, double share) {
  constexpr double two_to_64 = 18446744073709551616.0;
  return share >= 1 || static_cast<double>(sampling_hash(number, 0)) < share * two_to_64;
}

/// Times are known modulo 2^32.
std::int32_t after(std::uint32_t time, std::uint32_t begin) {
  return static_cast<std::int32_t>(time - begin);
}

/// The L1 caches and ports of the SMs of a recorded launch.
class Filter {
 public:
  Filter(const OrderRecording& recording, const trace::KernelTrace& trace,
         const MemoryConfig& config, const SetSample& sets, const WaitSample& waits)
      : recording_(recording),
        instructions_(trace.instructions()),
        config_(config),
        stores_{config.partial_write_turns},
        sets_(sets),
        waits_(waits),
        l1_config_(l1_of(config, trace.header(), recording.reference.occupancy.blocks_per_sm)),
        l1_sectors_(l1_config_.line_bytes / trace::sector_bytes),
        l2_sectors_(config.l2.line_bytes / trace::sector_bytes),
        first_local_line_(trace::local_region_sector / l1_sectors_),
        last_of_row_(instructions_.size()),
        first_of_row_(instructions_.size()),
        sms_(recording.num_sms, ReplayedSm(l1_config_)) {
    begin_profile();
    result_.requests.resize(1);
    result_.bytes.resize(1);
    result_.asking.resize(instructions_.size());
    result_.waiting.resize(instructions_.size());
    const std::size_t places = waits.accesses.size();
    result_.hit_arrival.assign(places, -1);
    result_.rows.resize(places);
    result_.sent.resize(places);
    result_.is_awaited.resize(places);
    result_.is_repeat.resize(places);
    first_time_.resize(places);
    begin_waits();
  }

  FilteredLaunch run() {
    for (const RecordedLine& line : recording_.lines) look_up(line);
    flush();
    for (const ReplayedSm& sm : sms_) {
      result_.profile.most_read_sectors =
          std::max(result_.profile.most_read_sectors, sm.read_sectors);
    }
    for (const RecordedAccess& access : recording_.accesses) {
      if (access.is_awaited) ++result_.waiting[access.row];
    }
    sort_asked();
    return std::move(result_);
  }

 private:
  struct UnderWay {
    std::uint64_t line = ~std::uint64_t{0};
    std::uint32_t request = 0;
    std::uint32_t arrival = 0;  ///< without the round trip
  };
  struct ReplayedSm {
    explicit ReplayedSm(const CacheConfig& config) : l1(config) {}

    Cache l1;
    std::array<UnderWay, 256> under_way;  // as in TimedSchedule
    std::uint32_t port = 0;               ///< until which it is busy with data that come back
    std::uint32_t last_asking = ~std::uint32_t{0};  ///< access
    std::uint64_t read_sectors = 0;
  };
  /// The access that is being looked up, which makes the requests.
  struct Source {
    std::uint32_t access = 0;
    std::uint32_t row = 0;
    bool is_awaited = false;
    std::uint32_t sent = 0;
  };
  struct AskedBy {
    std::uint32_t place;
    FilteredLaunch::Asked asked;
  };

  void begin_profile() {
    MemoryProfile& profile = result_.profile;
    const MemoryProfile& reference = recording_.reference;
    profile.occupancy = reference.occupancy;
    profile.l1_size_bytes = l1_config_.size_bytes;
    profile.simulated_blocks = reference.simulated_blocks;
    profile.simulated_instructions = reference.simulated_instructions;
    profile.atomic_lanes = reference.atomic_lanes;
    profile.place_wait_cycles = reference.place_wait_cycles;
    profile.slice_turns = recording_.atomic_turns;
    // Of the recorded caches: how uneven channels and slices are, the other ones have in common.
    profile.slice_dram_sectors = reference.slice_dram_sectors;
    profile.slice_crowding = reference.slice_crowding;
    for (const InstructionCounters& all : reference.per_row) {
      InstructionCounters counters;
      counters.executions = all.executions;
      counters.active_executions = all.active_executions;
      counters.sectors = all.sectors;
      counters.requests = all.requests;
      counters.shared_wavefronts = all.shared_wavefronts;
      counters.l1_passes = all.l1_passes;
      counters.events[0] = all.events[0] + all.events[1] + all.events[2];
      profile.per_row.push_back(counters);
    }
    for (const Total total :
         {Total::load_instructions, Total::store_instructions, Total::atomic_instructions}) {
      profile.totals[total] = reference.totals[total];
    }
  }

  void begin_waits() {
    for (std::size_t wait = 0; wait + 1 < waits_.begin.size(); ++wait) {
      const std::uint32_t first = waits_.begin[wait];
      for (std::uint32_t place = first; place < waits_.begin[wait + 1]; ++place) {
        const RecordedAccess& access = recording_.accesses[waits_.accesses[place]];
        first_time_[place] = recording_.accesses[waits_.accesses[first]].sent;
        result_.rows[place] = access.row;
        result_.sent[place] = after(access.sent, first_time_[place]);
        result_.is_awaited[place] = access.is_awaited;
        result_.is_repeat[place] = access.is_repeat;
      }
    }
  }

  void look_up(const RecordedLine& line) {
    const RecordedAccess& access = recording_.accesses[line.access];
    const trace::StaticInstruction& instruction = instructions_[access.row];
    const bool evict_first = instruction.cache_operator == trace::CacheOperator::evict_first;
    ReplayedSm& sm = sms_[line.sm];
    const std::uint32_t set = sm.l1.set_of(line.line);
    source_ = {line.access, access.row, false, line.time};
    switch (line.kind) {
      case RecordedLine::Kind::load:
        return load(sm, line, set, instruction, evict_first);
      case RecordedLine::Kind::store:
        return store(sm, line, set, evict_first);
      case RecordedLine::Kind::atomic:
        sm.l1.invalidate(set, line.line, line.mask);
        source_.is_awaited = recording_.is_timed && (config_.atomics_stop_warps ||
                                                     instruction.kind == trace::MemoryKind::atomic);
        leave(sm, line.line, line.mask, Request::Kind::atomic, evict_first,
              &recording_.bytes[line.bytes], access.row);
    }
  }

  void load(ReplayedSm& sm, const RecordedLine& line, std::uint32_t set,
            const trace::StaticInstruction& instruction, bool evict_first) {
    MemoryTotals& totals = result_.profile.totals;
    const bool is_local = line.line >= first_local_line_;
    ++totals[Total::l1_read_requests];
    const bool keeps_global =
        config_.l1_caches_global || instruction.cache_operator == trace::CacheOperator::read_only;
    if (instruction.cache_operator == trace::CacheOperator::bypass_l1 ||
        (!is_local && !keeps_global)) {
      count_l1_bypass(totals, line.mask, is_local);
      source_.is_awaited = recording_.is_timed;
      leave(sm, line.line, line.mask, Request::Kind::read, evict_first);
      return;
    }
    Cache::Eviction eviction;
    const Cache::ReadResult result = sm.l1.read(set, line.line, line.mask, evict_first, eviction);
    count_l1_load(totals, line.mask, result.hit, is_local);
    write_back(sm, eviction);
    if (recording_.is_timed && result.fetch == 0) note_hit(sm, line);
    source_.is_awaited = recording_.is_timed && result.fetch != 0;
    const SectorMask asked =
        config_.filter_l1_hits ? result.fetch : static_cast<SectorMask>(line.mask | result.fetch);
    if (asked == 0) return;
    leave(sm, line.line, asked, Request::Kind::read, evict_first);
    if (source_.is_awaited) {
      sm.under_way[line.line % sm.under_way.size()] = {line.line, last_request_, last_arrival_};
    }
  }

  void note_hit(const ReplayedSm& sm, const RecordedLine& line) {
    const std::uint32_t place = waits_.place[line.access];
    if (place == WaitSample::none) return;
    std::int32_t& hit = result_.hit_arrival[place];
    hit = std::max(hit, after(line.time + Reference::normal, first_time_[place]));
    const UnderWay& under_way = sm.under_way[line.line % sm.under_way.size()];
    constexpr std::uint32_t most = Reference::round_trips.back();
    if (under_way.line != line.line || after(line.time, under_way.arrival + most) >= 0) return;
    asked_.push_back(
        {place, {under_way.request, after(under_way.arrival, first_time_[place]), false, true}});
  }

  void store(ReplayedSm& sm, const RecordedLine& line, std::uint32_t set, bool evict_first) {
    MemoryTotals& totals = result_.profile.totals;
    const ByteMasks& bytes = recording_.bytes[line.bytes];
    Cache::Eviction eviction;
    const Cache::WriteResult result =
        sm.l1.write(set, line.line, line.mask, bytes, source_.row, evict_first, eviction);
    count_l1_store(totals, line.mask, result.hit, line.line >= first_local_line_);
    write_back(sm, eviction);
    if (result.fetch) leave(sm, line.line, result.fetch, Request::Kind::read, evict_first);
    if (result.forward) {
      leave(sm, line.line, result.forward, Request::Kind::write, evict_first, &bytes);
    }
  }

  void write_back(ReplayedSm& sm, const Cache::Eviction& eviction) {
    if (!eviction.dirty) return;
    leave(sm, eviction.line, eviction.dirty, Request::Kind::write_back, false, &eviction.bytes,
          eviction.writer);
  }

  /// Writes back what the L1 caches hold, SM by SM.
  void flush() {
    for (ReplayedSm& sm : sms_) {
      sm.l1.flush([&](const Cache::Eviction& line) {
        result_.profile.totals[Total::l1_flush_sectors] += count_sectors(line.dirty);
        write_back(sm, line);
      });
    }
  }

  /// Sends a request for sectors of an L1 line; in parts if L2's lines have another size.
  void leave(ReplayedSm& sm, std::uint64_t l1_line, SectorMask mask, Request::Kind kind,
             bool evict_first, const ByteMasks* bytes = nullptr, std::uint32_t writer = 0) {
    const std::uint32_t row = kind == Request::Kind::write_back ? writer : source_.row;
    InstructionCounters& counters = result_.profile.per_row[row];
    ++counters.l2_requests;
    counters.l2_request_sectors += count_sectors(mask);
    if (kind == Request::Kind::read) sm.read_sectors += count_sectors(mask);
    // The wait for a line's first part covers its later parts.
    const bool is_awaited = source_.is_awaited && kind != Request::Kind::write_back;
    if (is_awaited) {
      const std::uint32_t sent = after(source_.sent, sm.port) > 0 ? source_.sent : sm.port;
      constexpr std::uint32_t port_bytes = 32;
      sm.port = sent + (count_sectors(mask) * trace::sector_bytes + port_bytes - 1) / port_bytes;
      last_arrival_ = sent;
    }
    const bool counts = kind != Request::Kind::write_back;
    const std::uint32_t place = counts ? waits_.place[source_.access] : WaitSample::none;
    if (counts && sm.last_asking != source_.access) {
      sm.last_asking = source_.access;
      ++result_.asking[row];
    }
    bool continues = false;
    for_each_part(l1_line, mask, bytes, l1_sectors_, l2_sectors_,
                  [&](std::uint64_t line, SectorMask part, const ByteMasks* part_bytes) {
                    note(line, part, kind, evict_first, part_bytes, row, continues);
                    if (place != WaitSample::none) {
                      asked_.push_back({place,
                                        {last_request_,
                                         is_awaited ? after(last_arrival_, first_time_[place]) : 0,
                                         true, is_awaited}});
                    }
                  });
  }

  void note(std::uint64_t line, SectorMask mask, Request::Kind kind, bool evict_first,
            const ByteMasks* bytes, std::uint32_t row, bool& continues) {
    MemoryTotals& totals = result_.profile.totals;
    const std::uint32_t sectors = count_sectors(mask);
    switch (kind) {
      case Request::Kind::read:
        ++totals[Total::l2_read_requests];
        totals[Total::l2_read_sectors] += sectors;
        break;
      case Request::Kind::atomic:
        totals[Total::l2_atomic_sectors] += sectors;
        break;
      case Request::Kind::write:
      case Request::Kind::write_back:
        ++totals[Total::l2_write_requests];
        totals[Total::l2_write_sectors] += sectors;
        break;
    }
    if (kind != Request::Kind::atomic) {
      result_.profile.slice_turns[sets_.slice_of(line)] +=
          bytes != nullptr ? stores_.turns(mask, *bytes) : 1;
    }
    if (!sets_.has(line)) {
      last_request_ = last_of_row_[row];
      continues = false;
      return;
    }
    std::uint32_t position = 0;
    if (bytes != nullptr) {
      position = static_cast<std::uint32_t>(result_.bytes.size());
      result_.bytes.push_back(*bytes);
    }
    last_request_ = static_cast<std::uint32_t>(result_.requests.size());
    if (last_of_row_[row] == 0) first_of_row_[row] = last_request_;
    last_of_row_[row] = last_request_;
    result_.requests.push_back(
        {line, 0, row, position, mask, 0, kind, continues, evict_first, false});
    continues = true;
  }

  /// Sorts by access; within one, the order in which they were noted remains.
  void sort_asked() {
    std::vector<std::uint32_t>& first = result_.first_asked;
    first.resize(waits_.accesses.size() + 1);
    for (const AskedBy& one : asked_) ++first[one.place + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::uint32_t> next = first;
    result_.asked.resize(asked_.size());
    for (const AskedBy& one : asked_) {
      FilteredLaunch::Asked& asked = result_.asked[next[one.place]++];
      asked = one.asked;
      // Before the first followed request of its row, that one stands for it.
      if (asked.request == 0) asked.request = first_of_row_[result_.rows[one.place]];
    }
  }

  const OrderRecording& recording_;
  const std::vector<trace::StaticInstruction>& instructions_;
  const MemoryConfig& config_;
  StoreRule stores_;
  const SetSample& sets_;
  const WaitSample& waits_;
  CacheConfig l1_config_;
  std::uint32_t l1_sectors_;
  std::uint32_t l2_sectors_;
  std::uint64_t first_local_line_;
  std::vector<std::uint32_t> last_of_row_;  ///< last followed request; 0: none yet
  std::vector<std::uint32_t> first_of_row_;
  std::vector<ReplayedSm> sms_;
  std::vector<std::uint32_t> first_time_;  ///< of the wait, by place
  Source source_;
  std::uint32_t last_request_ = 0;
  std::uint32_t last_arrival_ = 0;
  std::vector<AskedBy> asked_;
  FilteredLaunch result_;
};

}  // namespace

CacheConfig SetSample::grid_of(std::span<const CacheConfig> caches) {
  CacheConfig grid = caches.front();
  std::uint64_t sets = 0;
  for (const CacheConfig& cache : caches) sets = std::gcd(sets, cache.num_sets() / cache.slices);
  // Hashed set indices depend on the number of sets; slices do not.
  if (grid.set_index != Indexing::modulo) sets = 1;
  grid.ways = 1;
  grid.written_by_strangers = 0;
  grid.replacement = Replacement::lru;
  grid.size_bytes = sets * grid.slices * grid.line_bytes;
  return grid;
}

SetSample::SetSample(std::span<const CacheConfig> caches, double share) : grid_(grid_of(caches)) {
  const std::uint64_t classes = grid_.config().num_sets();
  if (share >= 1 || static_cast<double>(classes) * share < 8 || classes < least_classes) return;
  followed_.resize(classes);
  for (std::uint64_t number = 0; number < classes; ++number) {
    followed_[number] = is_sampled(number, share);
  }
}

WaitSample::WaitSample(const OrderRecording& recording, double share) {
  std::uint32_t warps = 0;
  for (const RecordedAccess& access : recording.accesses) warps = std::max(warps, access.warp + 1);
  std::vector<std::uint32_t> wait_of_warp(warps, none);  // the wait that has not ended
  std::vector<std::uint32_t> wait_of(recording.accesses.size(), none);
  std::uint32_t seen = 0;
  std::vector<std::uint32_t> sizes;
  constexpr std::uint32_t left_out = none - 1;
  for (std::size_t i = 0; i < recording.accesses.size(); ++i) {
    const RecordedAccess& access = recording.accesses[i];
    std::uint32_t& wait = wait_of_warp[access.warp];
    if (wait == none) {
      if (is_sampled(seen++, share)) {
        wait = static_cast<std::uint32_t>(sizes.size());
        sizes.push_back(0);
      } else {
        wait = left_out;
      }
    }
    if (wait != left_out) {
      wait_of[i] = wait;
      ++sizes[wait];
    }
    if (access.ends_wait) wait = none;
  }
  begin.resize(sizes.size() + 1);
  std::partial_sum(sizes.begin(), sizes.end(), begin.begin() + 1);
  accesses.resize(begin.back());
  place.assign(recording.accesses.size(), none);
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  for (std::size_t i = 0; i < recording.accesses.size(); ++i) {
    if (wait_of[i] == none) continue;
    place[i] = next[wait_of[i]]++;
    accesses[place[i]] = static_cast<std::uint32_t>(i);
  }
}

FilteredLaunch filter(const OrderRecording& recording, const trace::KernelTrace& trace,
                      const MemoryConfig& config, const SetSample& sets, const WaitSample& waits) {
  return Filter(recording, trace, config, sets, waits).run();
}

namespace {

/// Positions of the configurations of each L1, in the order of their first.
std::vector<std::vector<std::size_t>> by_l1(std::span<const MemoryConfig> configs) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::size_t> known;
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const CacheConfig& l1 = configs[i].l1;
    const auto [entry, is_new] = known.try_emplace({l1.size_bytes, l1.ways}, groups.size());
    if (is_new) groups.emplace_back();
    groups[entry->second].push_back(i);
  }
  return groups;
}

/// Keeps L2 caches and makes new ones only if the configurations change.
class L2Caches {
 public:
  std::span<const std::unique_ptr<FamilyL2>> empty_ones(std::span<const CacheConfig> configs) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> geometry;
    for (const CacheConfig& config : configs) {
      geometry.emplace_back(config.size_bytes, config.ways);
    }
    if (geometry != geometry_) {
      caches_ = family_l2s(configs);
      geometry_ = std::move(geometry);
    } else {
      for (const std::unique_ptr<FamilyL2>& cache : caches_) cache->clear();
    }
    return caches_;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint32_t>> geometry_;
  std::vector<std::unique_ptr<FamilyL2>> caches_;
};

/// Keeps each different profile once.
class DistinctProfiles {
 public:
  std::uint32_t number_of(MemoryProfile profile) {
    const std::vector<std::uint64_t> words = words_of(profile);
    Digest digest;
    digest.add_bytes(words.data(), words.size() * sizeof(words.front()));
    const auto [entry, is_new] =
        numbers_.try_emplace(digest.hex(), static_cast<std::uint32_t>(profiles_.size()));
    if (is_new) profiles_.push_back(std::move(profile));
    return entry->second;
  }
  std::vector<MemoryProfile> take() { return std::move(profiles_); }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<MemoryProfile> profiles_;
};

}  // namespace

ReplayedLaunches replay(std::span<const RecordedLaunch> launches,
                        std::span<const MemoryConfig> configs, double share, bool flush_l2,
                        const InterruptCheck& interrupt) {
  for (const MemoryConfig& config : configs) config.validate();
  std::vector<WaitSample> waits;
  for (const RecordedLaunch& launch : launches) {
    // A larger share of a short launch is followed, because few waits scatter.
    const auto accesses = static_cast<double>(launch.recording->accesses.size());
    waits.emplace_back(*launch.recording, std::max(share, most_accesses / std::max(accesses, 1.0)));
  }
  ReplayedLaunches result;
  result.of_configs.resize(configs.size());
  std::vector<DistinctProfiles> profiles(launches.size());
  L2Caches caches;
  for (const std::vector<std::size_t>& group : by_l1(configs)) {
    std::vector<CacheConfig> l2_configs;
    for (const std::size_t position : group) l2_configs.push_back(configs[position].l2);
    const SetSample sets(l2_configs, share);
    const auto l2s = caches.empty_ones(l2_configs);
    for (std::size_t number = 0; number < launches.size(); ++number) {
      if (interrupt) interrupt();
      const RecordedLaunch& launch = launches[number];
      const FilteredLaunch filtered =
          filter(*launch.recording, *launch.trace, configs[group.front()], sets, waits[number]);
      auto position = group.begin();
      for (const std::unique_ptr<FamilyL2>& l2 : l2s) {
        if (interrupt) interrupt();
        if (flush_l2) l2->clear();
        for (MemoryProfile& profile : profiles_of(
                 filtered, waits[number], launch.recording->is_timed, *l2, sets.is_whole())) {
          result.of_configs[*position++].push_back(profiles[number].number_of(std::move(profile)));
        }
      }
    }
  }
  for (DistinctProfiles& of_launch : profiles) result.distinct.push_back(of_launch.take());
  return result;
}

}  // namespace warpstack::memory
