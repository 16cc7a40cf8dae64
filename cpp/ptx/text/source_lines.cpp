#include "ptx/text/source_lines.h"

#include <utility>

namespace warpstack::ptx {
namespace {

constexpr int max_inline_depth = 64;

}  // namespace

void SourceLines::set(const Location& at, std::optional<Location> caller,
                      const FunctionName& function) {
  source_ = {at.file, at.line, 0};
  // Only the direct caller is given. If that was inlined itself, an earlier .loc has said so.
  if (!caller) {
    if (!inlined_at_.empty()) inlined_at_.erase(at);
    return;
  }
  const auto found = inlined_at_.find(*caller);
  std::uint32_t outer = found == inlined_at_.end() ? 0 : found->second;
  if (outer != 0 && depths_[outer - 1] >= max_inline_depth) outer = 0;
  const auto next = static_cast<std::uint32_t>(calls_.size() + 1);
  const auto [entry, is_new] = numbers_.try_emplace(
      Key{caller->file, caller->line, outer, function.label, function.offset}, next);
  if (is_new) {
    calls_.push_back({{}, caller->file, caller->line, outer});
    functions_.push_back(function);
    depths_.push_back(outer == 0 ? 1 : depths_[outer - 1] + 1);
  }
  source_.inlined_at = entry->second;
  inlined_at_.insert_or_assign(at, entry->second);
}

std::vector<trace::InlinedCall> SourceLines::take_calls() {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const auto label = labels_.find(functions_[i].label);
    if (label == labels_.end()) continue;
    const std::uint64_t first = label->second + static_cast<std::uint64_t>(functions_[i].offset);
    if (first >= names_.size()) continue;
    calls_[i].function = names_.substr(first, names_.find('\0', first) - first);
  }
  return std::move(calls_);
}

}  // namespace warpstack::ptx
