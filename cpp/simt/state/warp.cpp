#include "simt/state/warp.h"

#include "simt/program/registers.h"

namespace warpstack::simt {

std::uint32_t Warp::reachable() const {
  std::uint32_t lanes = 0;
  for (std::size_t i = frames.back().first_path; i < paths.size(); ++i) {
    lanes |= paths[i].mask;
  }
  return lanes;
}

std::uint32_t Warp::elsewhere(std::uint32_t members) const { return members & live & ~reachable(); }

void Warp::diverge(std::uint32_t reconvergence,
                   std::span<const std::pair<std::uint32_t, std::uint32_t>> ways) {
  PathEntry& path = paths.back();
  const bool meets = reconvergence < frames.back().function->steps.size();
  if (!meets) reconvergence = path.reconvergence;
  const bool same_end = path.reconvergence == reconvergence;
  if (same_end) {
    paths.pop_back();
  } else {
    path.pc = reconvergence;
  }
  for (const auto& [target, lanes] : ways) {
    if (meets && target == reconvergence) continue;  // waits already
    paths.push_back({target, reconvergence, lanes});
  }
  spins = 0;
}

void Warp::park(std::uint32_t mask, std::uint32_t members) {
  const std::byte* const values = registers();
  const PathEntry path = paths.back();
  paths.pop_back();
  for (std::uint32_t rest = mask; rest != 0;) {
    const std::uint32_t same = members == none ? rest : alike(values, members, rest);
    paths.push_back({parked, path.reconvergence, same, path.pc,
                     members == none ? 0 : lane_u32(values, members, std::countr_zero(same))});
    rest &= ~same;
  }
  const std::uint32_t others = path.mask & ~mask;
  if (others != 0) paths.push_back({path.pc + 1, path.reconvergence, others});
  spins = 0;
}

void Warp::rotate() {
  spins = 0;
  const std::size_t bottom = frames.back().first_path;
  const std::size_t size = paths.size();
  if (size - bottom < 2) return;
  may_part = true;
  const PathEntry top = paths[size - 1];
  std::size_t siblings = size - 1;
  while (siblings > bottom && paths[siblings - 1].reconvergence == top.reconvergence &&
         paths[siblings - 1].pc != top.reconvergence) {
    --siblings;
  }
  if (siblings < size - 1) {
    std::rotate(paths.begin() + static_cast<std::ptrdiff_t>(siblings), paths.end() - 1,
                paths.end());
    return;
  }
  if (out_of_order) {
    let_others_go();
    return;
  }
  PathEntry& below = paths[size - 2];
  if (below.pc != top.reconvergence) return;
  const std::uint32_t waiting = below.mask & ~top.mask;
  if (waiting == 0) return;
  // They no longer reconverge here, but where the entry below would.
  const PathEntry ahead{below.pc, below.reconvergence, waiting};
  below = {top.pc, below.reconvergence, top.mask};
  paths.back() = ahead;
}

bool Warp::let_others_go() {
  const std::size_t bottom = frames.back().first_path;
  std::uint32_t above = paths.back().mask;
  for (std::size_t i = paths.size() - 1; i-- > bottom;) {
    PathEntry& path = paths[i];
    const std::uint32_t waiting = path.mask & ~above;
    above |= path.mask;
    if (waiting == 0 || path.pc == parked) continue;
    out_of_order = true;
    const PathEntry ahead{path.pc, path.reconvergence, waiting};
    path.mask &= ~waiting;
    paths.push_back(ahead);
    drop_empty_paths();
    return true;
  }
  return false;
}

void Warp::join_paths(std::uint32_t lanes) {
  out_of_order = true;
  const std::size_t bottom = frames.back().first_path;
  for (std::size_t i = paths.size(); i-- > bottom;) {
    if ((paths[i].mask & lanes) == 0 || paths[i].pc == parked) continue;
    for (std::size_t j = i; j-- > bottom;) {
      PathEntry& other = paths[j];
      if ((other.mask & ~lanes) != 0 || other.pc != paths[i].pc ||
          other.reconvergence != paths[i].reconvergence) {
        continue;
      }
      paths[i].mask |= other.mask;
      other.mask = 0;
    }
    // A path that no other meets may lie above all others.
    std::rotate(paths.begin() + static_cast<std::ptrdiff_t>(i),
                paths.begin() + static_cast<std::ptrdiff_t>(i) + 1, paths.end());
    break;
  }
  drop_empty_paths();
}

void Warp::drop_empty_paths() {
  const auto first = paths.begin() + static_cast<std::ptrdiff_t>(frames.back().first_path);
  paths.erase(
      std::remove_if(first, paths.end(), [](const PathEntry& path) { return path.mask == 0; }),
      paths.end());
}

}  // namespace warpstack::simt
