#include "ptx/text/source_lines.h"

namespace warpstack::ptx {
namespace {

constexpr int max_inline_depth = 64;

}  // namespace

void SourceLines::set(const Location& at, std::optional<Location> caller) {
  location_ = at;
  outermost_ = at.position();
  // Only the direct caller is given. If that was inlined itself, an earlier .loc has said so.
  if (!caller) {
    if (!inlined_at_.empty()) inlined_at_.erase(location_);
    return;
  }
  inlined_at_.insert_or_assign(location_, *caller);
  for (int depth = 0; depth < max_inline_depth; ++depth) {
    const auto found = inlined_at_.find(*caller);
    if (found == inlined_at_.end()) break;
    caller = found->second;
  }
  outermost_ = caller->position();
}

void SourceLines::clear() {
  location_ = {};
  outermost_ = {};
}

}  // namespace warpstack::ptx
