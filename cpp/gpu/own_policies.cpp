#include "gpu/own_policies.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>

namespace warpstack::gpu {
namespace {

/// Names are only added, and keep their places.
struct OwnNames {
  std::mutex mutex;
  std::deque<std::string> names;
};

OwnNames& own() {
  static OwnNames all;
  return all;
}

/// Returns the place of a name among the names, or their number; only with the lock.
std::size_t place_of(const OwnNames& all, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(all.names, name) - all.names.begin());
}

constexpr std::size_t first_value = num_values<Replacement>;

}  // namespace

Replacement own_policy(std::string_view name) {
  OwnNames& all = own();
  const std::scoped_lock lock(all.mutex);
  const std::size_t place = place_of(all, name);
  if (first_value + place > std::numeric_limits<std::underlying_type_t<Replacement>>::max()) {
    throw InputError("too many replacement policies; start another process");
  }
  if (place == all.names.size()) all.names.emplace_back(name);
  return static_cast<Replacement>(first_value + place);
}

std::string_view policy_name(Replacement policy) {
  if (!is_own(policy)) return warpstack::name_of(policy);
  OwnNames& all = own();
  const std::scoped_lock lock(all.mutex);
  return all.names[static_cast<std::size_t>(policy) - first_value];
}

Replacement policy_of(std::string_view name) {
  {
    OwnNames& all = own();
    const std::scoped_lock lock(all.mutex);
    const std::size_t place = place_of(all, name);
    if (place < all.names.size()) return static_cast<Replacement>(first_value + place);
  }
  return enum_of<Replacement>(name);
}

}  // namespace warpstack::gpu
