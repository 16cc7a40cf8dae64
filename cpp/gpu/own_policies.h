#pragma once

#include <string>
#include <string_view>

#include "gpu/choices.h"

namespace warpstack::gpu {

/// Replacement policies from outside the core are values of Replacement after those that it has.
constexpr bool is_own(Replacement policy) {
  return static_cast<std::size_t>(policy) >= num_values<Replacement>;
}
/// Returns the value that stands for the policy of this name, a new one for a new name. Throws
/// InputError where there are too many.
Replacement own_policy(std::string_view name);
/// The name of any policy. Lives as long as the program.
std::string_view policy_name(Replacement policy);
/// The policy of that name, of the core's or an own one. Throws InputError.
Replacement policy_of(std::string_view name);

}  // namespace warpstack::gpu
