#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <vector>

namespace warpstack::timelines {

/// Queues by which calls reach the device. Only the head of one looks whether all that it waits for
/// has happened: what was called before an operation, in its queue, passes before it.
///
/// Operations of a queue are in the order of their rows. One that has not been called yet holds up
/// nobody, so that nothing waits for a later row.
class Connections {
 public:
  /// `of` has the queue of each operation, or a negative number: it passes none.
  explicit Connections(std::span<const std::int32_t> of) : of_(of), has_arrived_(of.size(), 0) {
    std::int32_t last = -1;
    for (const std::int32_t queue : of) last = std::max(last, queue);
    queues_.resize(static_cast<std::size_t>(last + 1));
  }

  /// An operation has been called.
  void enter(std::size_t i) {
    if (of_[i] >= 0) queues_[static_cast<std::size_t>(of_[i])].push(static_cast<std::int32_t>(i));
  }

  /// All that an operation waits for has happened. `pass` is told, in order, of each operation that
  /// passes: this one, and those behind it that waited for nothing else; nobody, if it is held up.
  template <typename Pass>
  void arrive(std::size_t i, Pass pass) {
    if (of_[i] < 0) {
      pass(i);
      return;
    }
    has_arrived_[i] = 1;
    Queue& queue = queues_[static_cast<std::size_t>(of_[i])];
    while (!queue.empty() && has_arrived_[static_cast<std::size_t>(queue.top())]) {
      const auto head = static_cast<std::size_t>(queue.top());
      queue.pop();
      pass(head);
    }
  }

 private:
  using Queue =
      std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<std::int32_t>>;
  std::span<const std::int32_t> of_;
  std::vector<char> has_arrived_;
  std::vector<Queue> queues_;
};

}  // namespace warpstack::timelines
