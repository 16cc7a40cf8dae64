#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace warpstack::memory {

/// A bit for each of up to 32 caches that get the same requests.
using Members = std::uint32_t;
inline constexpr std::size_t most_members = 32;

/// The first `count` of them.
constexpr Members all_members(std::size_t count) {
  return count >= most_members ? ~Members{0} : (Members{1} << count) - 1;
}

template <typename Visit>
void for_each_member(Members members, const Visit& visit) {
  for (; members != 0; members &= members - 1) {
    visit(static_cast<std::size_t>(std::countr_zero(members)));
  }
}

/// A count per member. An event of all members costs as little as one count: most requests hit in
/// all caches or miss in all.
class MemberCounter {
 public:
  void add(Members members, Members all, std::int64_t count = 1) {
    if (members == all) {
      of_all_ += count;
      return;
    }
    for_each_member(members, [&](std::size_t member) { of_each_[member] += count; });
  }
  /// Adds one for each of several sets of members, many of which are equal.
  void add_each(std::span<const Members> several, Members all) {
    for (std::size_t i = 0; i < several.size();) {
      std::size_t next = i + 1;
      while (next < several.size() && several[next] == several[i]) ++next;
      add(several[i], all, static_cast<std::int64_t>(next - i));
      i = next;
    }
  }
  [[nodiscard]] std::uint64_t of(std::size_t member) const {
    return static_cast<std::uint64_t>(of_all_ + of_each_[member]);
  }

 private:
  std::int64_t of_all_ = 0;
  std::array<std::int64_t, most_members> of_each_{};
};

}  // namespace warpstack::memory
