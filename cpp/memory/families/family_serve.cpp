#include "memory/families/family_serve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "gpu/reference_machine.h"
#include "memory/families/cache_bundle.h"
#include "memory/system/l2_port.h"

namespace warpstack::memory {
namespace {

using Reference = gpu::ReferenceMachine;

ServedLaunch begin_served(const FilteredLaunch& launch, std::size_t num_members) {
  ServedLaunch served;
  served.num_members = num_members;
  served.totals.resize(num_members);
  served.rows.resize(launch.profile.per_row.size());
  served.missed.resize(launch.requests.size());
  served.asks_dram.resize(launch.requests.size());
  // A request of which nothing is known counts as a first access: DRAM serves it.
  served.missed[0] = served.asks_dram[0] = all_members(num_members);
  return served;
}

/// One cache of any kind.
class SingleL2 final : public FamilyL2 {
 public:
  explicit SingleL2(const CacheConfig& config) : cache_(config) {}

  ServedLaunch serve(const FilteredLaunch& launch) override {
    ServedLaunch served = begin_served(launch, 1);
    L2Port port(cache_, served.totals[0]);
    bool missed = false;
    for (std::size_t i = 1; i < launch.requests.size(); ++i) {
      Request request = launch.requests[i];
      request.set = cache_.set_of(request.line);
      const Outcome outcome = port.serve(request, launch.bytes[request.bytes]);
      served.missed[i] = outcome.missed;
      served.asks_dram[i] = outcome.asks_dram;
      ServedLaunch::Row& row = served.rows[request.writer];
      if (!request.continues) {
        missed = false;
        ++row.requests;
      }
      if (outcome.missed && !missed) {
        missed = true;
        row.dram_requests.add(1, 1);
      }
      row.dram_sectors.add(1, 1, outcome.dram_sectors);
    }
    return served;
  }
  void clear() override { cache_.clear(); }
  [[nodiscard]] std::uint64_t dirty_sectors(std::size_t) const override {
    return cache_.dirty_sectors();
  }

 private:
  Cache cache_;
};

/// Several LRU caches together.
class BundledL2 final : public FamilyL2 {
 public:
  explicit BundledL2(std::span<const CacheConfig> configs) : caches_(configs) {}

  ServedLaunch serve(const FilteredLaunch& launch) override {
    const Members all = caches_.all();
    ServedLaunch served = begin_served(launch, caches_.num_members());
    numbers_.resize(launch.requests.size());
    for (std::size_t i = 1; i < numbers_.size(); ++i) {
      // The same line is often asked for several times in a row.
      const std::uint64_t line = launch.requests[i].line;
      numbers_[i] =
          i > 1 && line == launch.requests[i - 1].line ? numbers_[i - 1] : caches_.number_of(line);
    }
    std::vector<std::uint64_t> before;
    for (std::size_t m = 0; m < served.num_members; ++m) {
      before.push_back(caches_.dram_reads(m));
      before.push_back(caches_.dram_writes(m));
    }
    Hits hits;
    Members missed = 0;
    for (std::size_t i = 1; i < launch.requests.size(); ++i) {
      constexpr std::size_t ahead = 8;
      if (i + ahead < numbers_.size()) caches_.prefetch(numbers_[i + ahead]);
      const Request& request = launch.requests[i];
      const BundleOutcome outcome =
          caches_.serve(request, numbers_[i], launch.bytes[request.bytes]);
      served.missed[i] = outcome.missed;
      served.asks_dram[i] = outcome.asks_dram;
      hits.count(request, outcome, all);
      ServedLaunch::Row& row = served.rows[request.writer];
      if (!request.continues) {
        missed = 0;
        ++row.requests;
      }
      row.dram_requests.add(outcome.missed & ~missed, all);
      missed |= outcome.missed;
      if ((outcome.missed | outcome.asks_dram) != 0) row.dram_sectors.add_each(outcome.moved, all);
    }
    for (std::size_t m = 0; m < served.num_members; ++m) {
      hits.write(m, served.totals[m]);
      served.totals[m][Total::dram_read_sectors] = caches_.dram_reads(m) - before[2 * m];
      served.totals[m][Total::dram_write_sectors] = caches_.dram_writes(m) - before[2 * m + 1];
    }
    return served;
  }
  void clear() override { caches_.clear(); }
  [[nodiscard]] std::uint64_t dirty_sectors(std::size_t member) const override {
    return caches_.dirty_sectors(member);
  }

 private:
  /// The counts of requests and sectors that L2Port makes.
  struct Hits {
    MemoryTotals of_all;
    MemberCounter read_requests;
    MemberCounter read_sectors;
    MemberCounter write_sectors;
    MemberCounter atomic_sectors;

    void count(const Request& request, const BundleOutcome& outcome, Members all) {
      const std::uint32_t sectors = count_sectors(request.mask);
      const std::span hit(outcome.hit.data(), outcome.num_hit);
      switch (request.kind) {
        case Request::Kind::read:
          ++of_all[Total::l2_read_requests];
          of_all[Total::l2_read_sectors] += sectors;
          read_requests.add(all & ~outcome.missed, all);
          read_sectors.add_each(hit, all);
          break;
        case Request::Kind::atomic:
          of_all[Total::l2_atomic_sectors] += sectors;
          atomic_sectors.add_each(hit, all);
          break;
        case Request::Kind::write:
        case Request::Kind::write_back:
          ++of_all[Total::l2_write_requests];
          of_all[Total::l2_write_sectors] += sectors;
          write_sectors.add_each(hit, all);
          break;
      }
    }
    void write(std::size_t member, MemoryTotals& totals) const {
      totals = of_all;
      totals[Total::l2_read_request_hits] = read_requests.of(member);
      totals[Total::l2_read_sector_hits] = read_sectors.of(member);
      totals[Total::l2_write_sector_hits] = write_sectors.of(member);
      totals[Total::l2_atomic_sector_hits] = atomic_sectors.of(member);
    }
  };

  CacheBundle caches_;
  std::vector<std::uint32_t> numbers_;  ///< of the lines of the launch's requests
};

std::uint64_t scaled(double count, double factor) {
  return static_cast<std::uint64_t>(std::llround(count * factor));
}
std::uint64_t scaled(std::uint64_t count, double factor) {
  return scaled(static_cast<double>(count), factor);
}
double ratio(std::uint64_t a, std::uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

/// Scales the followed requests of each row to all of its requests.
void estimate_rows(const FilteredLaunch& launch, const ServedLaunch& served, std::size_t member,
                   MemoryProfile& profile) {
  std::uint64_t all_requests = 0;
  std::uint64_t all_dram_requests = 0;
  std::uint64_t all_dram_sectors = 0;
  for (const ServedLaunch::Row& row : served.rows) {
    all_requests += row.requests;
    all_dram_requests += row.dram_requests.of(member);
    all_dram_sectors += row.dram_sectors.of(member);
  }
  for (std::size_t r = 0; r < served.rows.size(); ++r) {
    InstructionCounters& counters = profile.per_row[r];
    const ServedLaunch::Row& row = served.rows[r];
    const bool is_known = row.requests > 0;
    const double factor =
        ratio(launch.profile.per_row[r].l2_requests, is_known ? row.requests : all_requests);
    counters.dram_requests =
        scaled(is_known ? row.dram_requests.of(member) : all_dram_requests, factor);
    counters.dram_sectors =
        scaled(is_known ? row.dram_sectors.of(member) : all_dram_sectors, factor);
  }
}

void estimate_totals(const FilteredLaunch& launch, const MemoryTotals& part,
                     MemoryProfile& profile) {
  const MemoryTotals& exact = launch.profile.totals;
  const auto share_of = [&](Total counted) { return ratio(exact[counted], part[counted]); };
  const double reads = share_of(Total::l2_read_sectors);
  const double writes = share_of(Total::l2_write_sectors);
  profile.totals[Total::l2_read_sector_hits] = scaled(part[Total::l2_read_sector_hits], reads);
  profile.totals[Total::l2_read_request_hits] =
      scaled(part[Total::l2_read_request_hits], share_of(Total::l2_read_requests));
  profile.totals[Total::l2_write_sector_hits] = scaled(part[Total::l2_write_sector_hits], writes);
  profile.totals[Total::l2_atomic_sector_hits] =
      scaled(part[Total::l2_atomic_sector_hits], share_of(Total::l2_atomic_sectors));
  const auto sectors = [](const MemoryTotals& totals) {
    return totals[Total::l2_read_sectors] + totals[Total::l2_write_sectors] +
           totals[Total::l2_atomic_sectors];
  };
  const double all = ratio(sectors(exact), sectors(part));
  profile.totals[Total::dram_read_sectors] = scaled(part[Total::dram_read_sectors], all);
  profile.totals[Total::dram_write_sectors] = scaled(part[Total::dram_write_sectors], all);
}

/// Answers and waits of the followed accesses.
struct RowWaits {
  std::uint64_t asking = 0;
  std::uint64_t waiting = 0;
  std::uint64_t repeating = 0;  ///< of these
  MemberCounter from_dram;
  std::array<MemberCounter, num_miss_events> waits;
  std::array<MemberCounter, num_miss_events> cycles;
  std::array<MemberCounter, num_miss_events> repeat_cycles;
};

class WaitCounter {
 public:
  WaitCounter(const FilteredLaunch& launch, const ServedLaunch& served, const WaitSample& waits,
              bool is_timed)
      : launch_(launch),
        served_(served),
        waits_(waits),
        is_timed_(is_timed),
        all_(all_members(served.num_members)),
        rows_(launch.profile.per_row.size()) {}

  std::vector<RowWaits> run() {
    for (std::size_t wait = 0; wait + 1 < waits_.begin.size(); ++wait) {
      count_answers(wait);
      if (!is_timed_) continue;
      // Members with equal answers to all requests of a wait wait alike.
      for (Members rest = all_; rest != 0;) rest &= ~count_wait(wait, rest);
    }
    return std::move(rows_);
  }

 private:
  void count_answers(std::size_t wait) {
    for (std::uint32_t place = waits_.begin[wait]; place < waits_.begin[wait + 1]; ++place) {
      bool asks = false;
      Members from_dram = 0;
      for (std::uint32_t i = launch_.first_asked[place]; i < launch_.first_asked[place + 1]; ++i) {
        const FilteredLaunch::Asked& asked = launch_.asked[i];
        if (!asked.is_own) continue;
        asks = true;
        from_dram |= served_.asks_dram[asked.request];
      }
      RowWaits& row = rows_[launch_.rows[place]];
      row.asking += asks;
      row.from_dram.add(from_dram, all_);
      const bool waits = is_timed_ && launch_.is_awaited[place];
      row.waiting += waits;
      row.repeating += waits && launch_.is_repeat[place];
    }
  }

  /// Counts the wait of the first of some members and of all others that wait alike. Returns them.
  Members count_wait(std::size_t wait, Members members) {
    const auto first = static_cast<std::size_t>(std::countr_zero(members));
    // Of equally late data those from farther away count, as in Arrival.
    std::int32_t latest = -1;
    std::size_t source = 0;
    const auto arrive = [&](std::int32_t time, std::size_t from) {
      if (time < latest || (time == latest && from < source)) return;
      latest = time;
      source = from;
    };
    for (std::uint32_t place = waits_.begin[wait]; place < waits_.begin[wait + 1]; ++place) {
      if (!launch_.is_awaited[place]) continue;
      arrive(launch_.hit_arrival[place], 0);
      for (std::uint32_t i = launch_.first_asked[place]; i < launch_.first_asked[place + 1]; ++i) {
        const FilteredLaunch::Asked& asked = launch_.asked[i];
        if (!asked.is_awaited) continue;
        const Members missed = served_.missed[asked.request];
        const bool misses = missed >> first & 1;
        members &= misses ? missed : ~missed;
        const std::size_t from = misses ? 2 : 1;
        arrive(asked.arrival + static_cast<std::int32_t>(Reference::round_trips[from]), from);
      }
    }
    for (std::uint32_t place = waits_.begin[wait]; place < waits_.begin[wait + 1]; ++place) {
      if (!launch_.is_awaited[place]) continue;
      RowWaits& row = rows_[launch_.rows[place]];
      row.waits[source].add(members, all_);
      const auto cycles =
          std::clamp<std::int32_t>(latest - launch_.sent[place], 0,
                                   static_cast<std::int32_t>(Reference::round_trips[source]));
      row.cycles[source].add(members, all_, cycles);
      if (launch_.is_repeat[place]) row.repeat_cycles[source].add(members, all_, cycles);
    }
    return members;
  }

  const FilteredLaunch& launch_;
  const ServedLaunch& served_;
  const WaitSample& waits_;
  bool is_timed_;
  Members all_;
  std::vector<RowWaits> rows_;
};

/// Scales the waits of followed accesses to all accesses of each row.
void estimate_waits(const FilteredLaunch& launch, const std::vector<RowWaits>& rows,
                    std::size_t member, MemoryProfile& profile) {
  std::uint64_t all_asking = 0;
  std::uint64_t all_from_dram = 0;
  for (const RowWaits& row : rows) {
    all_asking += row.asking;
    all_from_dram += row.from_dram.of(member);
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    InstructionCounters& counters = profile.per_row[r];
    const RowWaits& row = rows[r];
    const bool is_known = row.asking > 0;
    counters.events[2] = scaled(is_known ? row.from_dram.of(member) : all_from_dram,
                                ratio(launch.asking[r], is_known ? row.asking : all_asking));
    counters.events[1] = launch.asking[r] - std::min(launch.asking[r], counters.events[2]);
    counters.events[0] -= counters.events[1] + counters.events[2];
    const double factor = ratio(launch.waiting[r], row.waiting);
    counters.repeats = scaled(row.repeating, factor);
    for (std::size_t e = 0; e < num_miss_events; ++e) {
      counters.waits[e] = scaled(row.waits[e].of(member), factor);
      counters.wait_cycles[e] = scaled(row.cycles[e].of(member), factor);
      counters.repeat_cycles[e] = scaled(row.repeat_cycles[e].of(member), factor);
    }
  }
}

}  // namespace

std::vector<std::unique_ptr<FamilyL2>> family_l2s(std::span<const CacheConfig> configs) {
  std::vector<std::unique_ptr<FamilyL2>> result;
  const bool are_bundled = std::ranges::all_of(configs, &CacheBundle::can_have);
  const std::size_t together = are_bundled ? most_members : 1;
  for (std::size_t first = 0; first < configs.size(); first += together) {
    const auto part = configs.subspan(first, std::min(together, configs.size() - first));
    if (are_bundled) {
      result.push_back(std::make_unique<BundledL2>(part));
    } else {
      result.push_back(std::make_unique<SingleL2>(part.front()));
    }
  }
  return result;
}

std::vector<MemoryProfile> profiles_of(const FilteredLaunch& launch, const WaitSample& waits,
                                       bool is_timed, FamilyL2& l2, bool has_all_sets) {
  const ServedLaunch served = l2.serve(launch);
  const std::vector<RowWaits> rows = WaitCounter(launch, served, waits, is_timed).run();
  std::vector<MemoryProfile> profiles;
  for (std::size_t member = 0; member < served.num_members; ++member) {
    MemoryProfile& profile = profiles.emplace_back(launch.profile);
    estimate_rows(launch, served, member, profile);
    estimate_totals(launch, served.totals[member], profile);
    estimate_waits(launch, rows, member, profile);
    if (has_all_sets) {
      profile.totals[Total::l2_dirty_sectors] = l2.dirty_sectors(member);
    }
  }
  return profiles;
}

}  // namespace warpstack::memory
