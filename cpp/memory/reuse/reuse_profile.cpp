#include "memory/reuse/reuse_profile.h"

#include <algorithm>
#include <string>

#include "common/error.h"

namespace warpstack::memory {
namespace {

/// Accesses that are settled together: their distances stay in the nearest cache.
constexpr std::size_t accesses_at_a_time = 1 << 14;
constexpr std::uint32_t max_batches = 1024;

}  // namespace

void LineSampling::validate() const {
  if (!(rate > 0 && rate <= 1)) {
    throw InputError("rate = " + std::to_string(rate) +
                     " is not a share of the lines; it lies above 0 and at most at 1");
  }
  if (rate < 1 && (batches < 2 || batches > max_batches)) {
    throw InputError("batches = " + std::to_string(batches) +
                     "; the standard error of a sample takes 2 to " + std::to_string(max_batches));
  }
}

std::uint64_t sampling_hash(std::uint64_t line, std::uint64_t seed) {
  std::uint64_t hash = line + (seed + 1) * 0x9e3779b97f4a7c15;
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
  return hash ^ hash >> 31;
}

ReuseProfiler::ReuseProfiler(const LineSampling& sampling)
    : sampling_((sampling.validate(), sampling)),
      threshold_(sampling.rate < 1 ? static_cast<std::uint64_t>(sampling.rate * 0x1p64) : 0),
      batch_width_(sampling.rate < 1 ? threshold_ / sampling.batches + 1 : 1),
      batches_(sampling.rate < 1 ? sampling.batches : 0),
      distances_(accesses_at_a_time) {}

void ReuseProfiler::access(std::span<const std::uint64_t> lines,
                           std::span<const std::uint8_t> kinds, const InterruptCheck& interrupt) {
  for (std::size_t first = 0; first < lines.size(); first += accesses_at_a_time) {
    if (first / accesses_at_a_time % 64 == 0 && interrupt) interrupt();
    const std::size_t count = std::min(accesses_at_a_time, lines.size() - first);
    const auto part_lines = lines.subspan(first, count);
    const auto part_kinds = kinds.empty() ? kinds : kinds.subspan(first, count);
    if (kinds.empty()) accesses_[0] += count;
    for (const std::uint8_t kind : part_kinds) ++accesses_[kind];
    if (batches_.empty()) {
      settle(whole_, part_lines, part_kinds);
    } else {
      sample(part_lines, part_kinds);
    }
  }
}

void ReuseProfiler::sample(std::span<const std::uint64_t> lines,
                           std::span<const std::uint8_t> kinds) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::uint64_t hash = sampling_hash(lines[i], sampling_.seed);
    if (hash >= threshold_) continue;
    for (Part* part : {&whole_, &batches_[hash / batch_width_]}) {
      part->lines.push_back(lines[i]);
      part->kinds.push_back(kinds.empty() ? 0 : kinds[i]);
    }
  }
  const auto flush = [this](Part& part) {
    settle(part, part.lines, part.kinds);
    part.lines.clear();
    part.kinds.clear();
  };
  flush(whole_);
  for (Part& part : batches_) flush(part);
}

void ReuseProfiler::settle(Part& part, std::span<const std::uint64_t> lines,
                           std::span<const std::uint8_t> kinds) {
  const std::span distances(distances_.data(), lines.size());
  part.stack.access(lines, distances);
  if (kinds.empty()) {
    for (const std::uint64_t distance : distances) part.histograms[0].add(distance);
  } else {
    for (std::size_t i = 0; i < lines.size(); ++i) part.histograms[kinds[i]].add(distances[i]);
  }
}

void ReuseProfiler::end_stream() {
  whole_.stack = StackDistances();
  for (Part& part : batches_) part.stack = StackDistances();
}

}  // namespace warpstack::memory
