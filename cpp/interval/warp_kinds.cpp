#include "interval/warp_kinds.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <unordered_map>

namespace warpstack::interval {
namespace {

/// What a warp executes.
struct Stream {
  std::span<const std::uint32_t> rows;
  std::span<const std::uint32_t> masks;
};

bool is_same(const Stream& a, const Stream& b) {
  const std::size_t count = a.rows.size();
  if (b.rows.size() != count) return false;
  if (count == 0) return true;
  if (std::memcmp(a.rows.data(), b.rows.data(), a.rows.size_bytes()) != 0) return false;
  if (std::memcmp(a.masks.data(), b.masks.data(), a.masks.size_bytes()) == 0) return true;
  std::uint32_t different = 0;
  for (std::size_t k = 0; k < count; ++k) {
    different |= static_cast<std::uint32_t>((a.masks[k] == 0) != (b.masks[k] == 0));
  }
  return different == 0;
}

/// Four chains, so that multiplications need not wait for each other.
std::uint64_t hash_of(const Stream& stream) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  std::array<std::uint64_t, 4> chains = {1, 2, 3, 4};
  const std::size_t count = stream.rows.size();
  const auto mix = [&stream](std::uint64_t chain, std::size_t k) {
    const std::uint64_t word = std::uint64_t{stream.rows[k]} << 1 | (stream.masks[k] != 0);
    return (chain ^ word) * odd;
  };
  std::size_t k = 0;
  for (; k + 4 <= count; k += 4) {
    for (std::size_t c = 0; c < 4; ++c) chains[c] = mix(chains[c], k + c);
  }
  for (; k < count; ++k) chains[0] = mix(chains[0], k);
  std::uint64_t hash = count;
  for (const std::uint64_t chain : chains) {
    hash = (hash ^ chain ^ chain >> 29) * odd;
  }
  return hash;
}

}  // namespace

WarpKinds::WarpKinds(const trace::KernelTrace& trace, const InterruptCheck& interrupt) {
  const trace::BlockStorage& blocks = trace.blocks();
  of_warps_.reserve(blocks.num_warps());
  std::vector<Stream> streams;  // by kind
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> kinds_of_hash;
  std::vector<std::byte> scratch;
  std::vector<std::size_t> first_warps(blocks.num_classes());  // in `of_warps_`, by class
  std::uint32_t last = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (interrupt && b % 1024 == 0) interrupt();
    const std::span<const trace::WarpEntry> warps = blocks.warps(b);
    const auto add = [&](std::uint32_t w) {
      first_.push_back({static_cast<std::uint32_t>(b), w});
      return static_cast<std::uint32_t>(first_.size() - 1);
    };
    if (blocks.spilled()) {
      for (std::uint32_t w = 0; w < warps.size(); ++w) of_warps_.push_back(add(w));
      continue;
    }
    // All blocks of a class have the kinds of the first.
    std::size_t& start = first_warps[blocks.class_of(b)];
    if (!blocks.is_first_of_class(b)) {
      for (std::size_t w = 0; w < warps.size(); ++w) of_warps_.push_back(of_warps_[start + w]);
      continue;
    }
    start = of_warps_.size();
    const trace::ColumnView columns =
        blocks.read(b, {}, {blocks.counts(b).instructions, 0, 0, 0}, scratch);
    std::size_t begin = 0;
    for (std::uint32_t w = 0; w < warps.size(); ++w) {
      const std::size_t count = warps[w].instructions;
      const Stream stream{columns.instruction.subspan(begin, count),
                          columns.active_mask.subspan(begin, count)};
      begin += count;
      // Neighbours are often of one kind.
      if (streams.empty() || !is_same(stream, streams[last])) {
        std::vector<std::uint32_t>& candidates = kinds_of_hash[hash_of(stream)];
        const auto found = std::ranges::find_if(
            candidates, [&](std::uint32_t kind) { return is_same(stream, streams[kind]); });
        if (found != candidates.end()) {
          last = *found;
        } else {
          last = add(w);
          streams.push_back(stream);
          candidates.push_back(last);
        }
      }
      of_warps_.push_back(last);
    }
  }
}

}  // namespace warpstack::interval
