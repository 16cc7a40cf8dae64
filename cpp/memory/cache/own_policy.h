#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "gpu/own_policies.h"

namespace warpstack::memory {

using gpu::Replacement;

/// A replacement policy from outside the core: the state of all sets of one cache.
class OwnPolicy {
 public:
  OwnPolicy() = default;
  OwnPolicy(const OwnPolicy&) = delete;
  OwnPolicy& operator=(const OwnPolicy&) = delete;
  virtual ~OwnPolicy() = default;

  /// A line that is there was used.
  virtual void hit(std::uint32_t set, std::uint32_t way) = 0;
  /// A line has taken a way. `address` is that of its first byte.
  virtual void fill(std::uint32_t set, std::uint32_t way, std::uint64_t address) = 0;
  /// The way that makes room in a full set; fill() follows.
  virtual std::uint32_t victim(std::uint32_t set) = 0;
  /// A policy in the same state.
  [[nodiscard]] virtual std::unique_ptr<OwnPolicy> copy() const = 0;
};

using MakeOwnPolicy =
    std::function<std::unique_ptr<OwnPolicy>(std::uint64_t sets, std::uint32_t ways)>;

/// Adds a policy, or replaces the one of that name in caches that are made from now on.
Replacement register_policy(std::string_view name, MakeOwnPolicy make);

/// The order of an own policy: empty ways come first, then those that were placed last, then what
/// the policy says.
class OwnOrder {
 public:
  OwnOrder(Replacement policy, std::uint64_t sets, std::uint32_t ways, std::uint32_t line_bytes);
  OwnOrder(const OwnOrder& other);
  OwnOrder& operator=(const OwnOrder& other);
  OwnOrder(OwnOrder&&) = default;
  OwnOrder& operator=(OwnOrder&&) = default;
  ~OwnOrder() = default;

  [[nodiscard]] std::uint32_t last(std::uint32_t set);
  void use(std::uint32_t set, std::uint32_t way, std::uint64_t line, bool is_there);
  void place_last(std::uint32_t set, std::uint32_t way);

 private:
  std::uint32_t ways_;
  std::uint32_t line_bytes_;
  std::unique_ptr<OwnPolicy> policy_;
  std::vector<std::uint32_t> filled_;  ///< number of filled ways, by set
  std::vector<std::vector<std::uint32_t>>
      placed_;  ///< last ones, by set; the first to go at the end
};

}  // namespace warpstack::memory
