#include "memory/cache/own_policy.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "common/error.h"

namespace warpstack::memory {
namespace {

struct OwnPolicies {
  std::mutex mutex;
  std::map<Replacement, MakeOwnPolicy> makers;
};

/// Never destroyed: what makes policies may belong to an interpreter that ends before.
OwnPolicies& own() {
  static auto* all = new OwnPolicies;
  return *all;
}

std::unique_ptr<OwnPolicy> made(Replacement policy, std::uint64_t sets, std::uint32_t ways) {
  MakeOwnPolicy make;
  {
    OwnPolicies& all = own();
    const std::scoped_lock lock(all.mutex);
    make = all.makers.at(policy);
  }
  return make(sets, ways);
}

}  // namespace

Replacement register_policy(std::string_view name, MakeOwnPolicy make) {
  const Replacement policy = gpu::own_policy(name);
  OwnPolicies& all = own();
  const std::scoped_lock lock(all.mutex);
  all.makers.insert_or_assign(policy, std::move(make));
  return policy;
}

OwnOrder::OwnOrder(Replacement policy, std::uint64_t sets, std::uint32_t ways,
                   std::uint32_t line_bytes)
    : ways_(ways),
      line_bytes_(line_bytes),
      policy_(made(policy, sets, ways)),
      filled_(sets),
      placed_(sets) {}

OwnOrder::OwnOrder(const OwnOrder& other)
    : ways_(other.ways_),
      line_bytes_(other.line_bytes_),
      policy_(other.policy_->copy()),
      filled_(other.filled_),
      placed_(other.placed_) {}

OwnOrder& OwnOrder::operator=(const OwnOrder& other) {
  if (this != &other) *this = OwnOrder(other);
  return *this;
}

std::uint32_t OwnOrder::last(std::uint32_t set) {
  if (filled_[set] < ways_) return filled_[set];
  if (!placed_[set].empty()) return placed_[set].back();
  const std::uint32_t way = policy_->victim(set);
  if (way >= ways_) throw InputError("a replacement policy returned a way that there is not");
  return way;
}

void OwnOrder::use(std::uint32_t set, std::uint32_t way, std::uint64_t line, bool is_there) {
  std::erase(placed_[set], way);
  if (is_there) return policy_->hit(set, way);
  if (way == filled_[set]) ++filled_[set];
  policy_->fill(set, way, line * line_bytes_);
}

void OwnOrder::place_last(std::uint32_t set, std::uint32_t way) {
  std::erase(placed_[set], way);
  placed_[set].push_back(way);
}

}  // namespace warpstack::memory
