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

}  // namespace

Replacement own_policy(std::string_view name) {
  OwnNames& all = own();
  const std::scoped_lock lock(all.mutex);
  auto found = std::ranges::find(all.names, name);
  const auto place = static_cast<std::size_t>(found - all.names.begin());
  const std::size_t value = num_values<Replacement> + place;
  if (value > std::numeric_limits<std::underlying_type_t<Replacement>>::max()) {
    throw InputError("too many replacement policies; start another process");
  }
  if (found == all.names.end()) all.names.emplace_back(name);
  return static_cast<Replacement>(value);
}

std::string_view policy_name(Replacement policy) {
  if (!is_own(policy)) return warpstack::name_of(policy);
  OwnNames& all = own();
  const std::scoped_lock lock(all.mutex);
  return all.names[static_cast<std::size_t>(policy) - num_values<Replacement>];
}

Replacement policy_of(std::string_view name) {
  {
    OwnNames& all = own();
    const std::scoped_lock lock(all.mutex);
    const auto found = std::ranges::find(all.names, name);
    if (found != all.names.end()) {
      return static_cast<Replacement>(num_values<Replacement> +
                                      static_cast<std::size_t>(found - all.names.begin()));
    }
  }
  return enum_of<Replacement>(name);
}

}  // namespace warpstack::gpu
