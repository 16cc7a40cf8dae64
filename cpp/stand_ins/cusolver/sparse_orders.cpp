// Orders of the rows and columns of sparse matrices that leave their factors sparse.

#include <algorithm>
#include <numeric>
#include <set>

#include "stand_ins/cusolver/sparse.h"

namespace warpstack::cusolver::sparse {
namespace {

/// The nodes that can be reached from one, in the order of their distance; of equal distance those
/// of fewer neighbours first. `seen` are left out, and become more.
std::vector<int> breadth_first(const Neighbours& graph, int from, std::vector<char>& seen) {
  std::vector<int> found{from};
  seen[place(from)] = true;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto begin = static_cast<std::ptrdiff_t>(found.size());
    for (const int next : graph[place(found[i])]) {
      if (std::exchange(seen[place(next)], true)) continue;
      found.push_back(next);
    }
    std::stable_sort(found.begin() + begin, found.end(),
                     [&](int a, int b) { return graph[place(a)].size() < graph[place(b)].size(); });
  }
  return found;
}

/// How far the farthest node is.
int eccentricity(const Neighbours& graph, const std::vector<int>& found, std::vector<int>& level) {
  level[place(found.front())] = 0;
  for (const int node : found) level[place(node)] = node == found.front() ? 0 : -1;
  for (const int node : found) {
    for (const int next : graph[place(node)]) {
      if (level[place(next)] < 0) level[place(next)] = level[place(node)] + 1;
    }
  }
  return level[place(found.back())];
}

}  // namespace

std::vector<int> reverse_cuthill_mckee(const Neighbours& graph) {
  std::vector<int> order, level(graph.size());
  std::vector<char> seen(graph.size());
  for (std::size_t start = 0; start < graph.size(); ++start) {
    if (seen[start]) continue;
    // The next start is the node that is farthest away, as long as that goes farther.
    int root = static_cast<int>(start), farthest = -1;
    while (true) {
      std::vector<char> here = seen;
      const std::vector<int> found = breadth_first(graph, root, here);
      const int depth = eccentricity(graph, found, level);
      if (depth <= farthest) break;
      farthest = depth;
      root = *std::ranges::min_element(found, {}, [&](int node) {
        return std::pair(-level[place(node)], graph[place(node)].size());
      });
    }
    const std::vector<int> found = breadth_first(graph, root, seen);
    order.insert(order.end(), found.begin(), found.end());
  }
  std::ranges::reverse(order);
  return order;
}

std::vector<int> minimum_degree(const Neighbours& graph) {
  // A node that has gone stands for its neighbours, which are beside each other: they share one
  // list of them.
  std::vector<std::set<int>> beside(graph.size()), within(graph.size()), members(graph.size());
  std::set<std::pair<std::size_t, int>> by_degree;
  std::vector<std::size_t> degree(graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    beside[i].insert(graph[i].begin(), graph[i].end());
    degree[i] = beside[i].size();
    by_degree.insert({degree[i], static_cast<int>(i)});
  }
  std::vector<int> order;
  while (!by_degree.empty()) {
    const int node = by_degree.begin()->second;
    by_degree.erase(by_degree.begin());
    order.push_back(node);
    std::set<int> reached = beside[place(node)];
    for (const int group : within[place(node)]) {
      reached.insert(members[place(group)].begin(), members[place(group)].end());
    }
    reached.erase(node);
    for (const int other : reached) {
      beside[place(other)].erase(node);
      for (const int group : within[place(node)]) within[place(other)].erase(group);
      // Those in the new group need no list of each other.
      for (const int next : reached) beside[place(other)].erase(next);
      within[place(other)].insert(node);
    }
    for (const int group : within[place(node)]) members[place(group)].clear();
    members[place(node)] = reached;
    for (const int other : reached) {
      by_degree.erase({degree[place(other)], other});
      // At most so many: groups may share some.
      std::size_t most = beside[place(other)].size();
      for (const int group : within[place(other)]) most += members[place(group)].size() - 1;
      degree[place(other)] = most;
      by_degree.insert({most, other});
    }
  }
  return order;
}

}  // namespace warpstack::cusolver::sparse
