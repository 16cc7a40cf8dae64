#include "stand_ins/state/graph.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "stand_ins/state/recording.h"

namespace warpstack::cudart {
namespace {

/// The existing graphs and nodes, to detect invalid handles.
std::unordered_set<const void*>& existing() {
  static auto* const set = new std::unordered_set<const void*>;  // programs still call at exit
  return *set;
}

std::unordered_map<const UserObject*, std::unique_ptr<UserObject>>& objects() {
  static auto* const map = new std::unordered_map<const UserObject*, std::unique_ptr<UserObject>>;
  return *map;
}

std::uint64_t next_number() {
  static std::uint64_t number = 0;  // the runtime is locked
  return ++number;
}

/// Unlocks the runtime while a function of the program runs, which may wait for another thread's
/// call.
class Unlocked {
 public:
  explicit Unlocked(Runtime& runtime) : runtime_(runtime) { runtime_.mutex().unlock(); }
  ~Unlocked() { runtime_.mutex().lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  Runtime& runtime_;
};

/// Rows of the log of operations.
using Rows = std::vector<std::int64_t>;

/// Runs all nodes. In the log, those without dependencies wait for the rows of `before`. Returns
/// the rows for which waits whoever waits for the graph.
Rows run_nodes(Runtime& runtime, const Graph& graph, StreamHandle stream, const Rows& before);

/// Runs the work of one node other than a graph.
struct RunWork {
  Runtime& runtime;
  StreamHandle stream;
  bool programmatic;  ///< a kernel may overlap with those that it depends on

  void operator()(const KernelWork& work) const {
    Runtime::Launch launch = work.launch;
    launch.call.stream = stream;
    launch.call.programmatic = programmatic;
    runtime.run(launch);
  }
  void operator()(const CopyWork& work) const { run_copy(runtime, work.copy); }
  void operator()(const FillWork& work) const { run_fill(runtime, work.fill); }
  void operator()(const HostWork& work) const {
    const HostParameters host = work.host;
    record_stream(runtime, OperationKind::host_function, stream);
    const Unlocked unlocked(runtime);
    const HostFunctionTime time(runtime.log());
    host.function(host.data);
  }
  void operator()(const ChildWork&) const {}
  void operator()(const EmptyWork&) const {}
  // All earlier work is done.
  void operator()(const WaitWork& work) const {
    record_event(runtime, OperationKind::event_wait, work.event, stream);
  }
  void operator()(const RecordWork& work) const {
    Runtime::Event& event = runtime.event(work.event);
    event = {.time = runtime.now(), .recorded = true, .captured = {}, .number = event.number};
    record_event(runtime, OperationKind::event_record, work.event, stream);
  }
  void operator()(const AllocateWork& work) const {
    runtime.graphs().memory.allocate(runtime, work.allocation);
    record_allocation(runtime, work.allocation->bytes, false);
  }
  void operator()(const FreeWork& work) const {
    record_free(runtime, work.address);
    runtime.graphs().memory.free(work.address);
  }
  void operator()(const LibraryWork& work) const {
    const LibraryWork kept = work;
    const Unlocked unlocked(runtime);
    require(kept.run(kept.data.get(), stream), "a captured call of a library failed",
            Error::launch_failure);
  }
};

/// Whether a node may start once the kernels that it depends on let it: all its edges say so, or it
/// was captured from such a launch, whose stream had a kernel before it.
bool is_programmatic(const Node& node) {
  constexpr std::uint8_t programmatic_type = 1;
  constexpr std::uint8_t trigger_port = 1;
  const auto* const kernel = std::get_if<KernelWork>(&node.work);
  if (kernel == nullptr || node.dependencies.empty()) return false;
  const bool is_of_stream = kernel->launch.call.programmatic && node.dependencies.size() == 1;
  return std::ranges::all_of(node.dependencies, [&](const Edge& edge) {
    return edge.from->enabled && std::holds_alternative<KernelWork>(edge.from->work) &&
           (is_of_stream ||
            (edge.data.type == programmatic_type && edge.data.from_port == trigger_port));
  });
}

void add_rows(Rows& rows, const Rows& more) {
  for (const std::int64_t row : more) {
    if (std::ranges::find(rows, row) == rows.end()) rows.push_back(row);
  }
}

Rows run_nodes(Runtime& runtime, const Graph& graph, StreamHandle stream, const Rows& before) {
  // Of each node: what those that depend on it wait for. A node without a row passes on what it
  // waits for itself.
  std::unordered_map<const Node*, Rows> ends;
  std::unordered_set<const Node*> inner;
  for (const Node* node : graph.order()) {
    Rows after;
    if (node->dependencies.empty()) after = before;
    for (const Edge& edge : node->dependencies) {
      add_rows(after, ends[edge.from]);
      inner.insert(edge.from);
    }
    if (!node->enabled) {
      ends[node] = std::move(after);
    } else if (const auto* child = std::get_if<ChildWork>(&node->work)) {
      ends[node] = run_nodes(runtime, *child->graph, stream, after);
    } else {
      CallContext& context = log_thread().call;
      context.after = &after;
      context.first_row = -1;
      std::visit(RunWork{runtime, stream, is_programmatic(*node)}, node->work);
      context.after = nullptr;
      if (context.first_row >= 0) after = {context.first_row};
      ends[node] = std::move(after);
    }
  }
  Rows last;
  for (const auto& node : graph.nodes) {
    if (!inner.contains(node.get())) add_rows(last, ends[node.get()]);
  }
  return graph.nodes.empty() ? before : last;
}

template <typename Visit>
void for_each_allocation(const Graph& graph, Visit visit) {
  for (const auto& node : graph.nodes) {
    if (const auto* work = std::get_if<AllocateWork>(&node->work)) visit(work->allocation);
    if (const auto* work = std::get_if<ChildWork>(&node->work)) {
      for_each_allocation(*work->graph, visit);
    }
  }
}

/// Whether memory belongs to the device, the host, or both.
int mapping_of(Runtime& runtime, const Array* array, const void* pointer) {
  if (array != nullptr) return 0;
  using Kind = PointerAttributes::Kind;
  const Kind kind = runtime.kind_of(address_of(pointer));
  return kind == Kind::device ? 1 : kind == Kind::managed ? 2 : 3;
}

bool is_line(const Copy3D& copy) {
  return copy.source_array == nullptr && copy.target_array == nullptr && copy.extent.height <= 1 &&
         copy.extent.depth <= 1;
}

/// Places of the dependencies of a node within its graph, in ascending order.
std::vector<std::size_t> places(const Node& node,
                                const std::unordered_map<const Node*, std::size_t>& place_of) {
  std::vector<std::size_t> result;
  for (const Edge& edge : node.dependencies) result.push_back(place_of.at(edge.from));
  std::sort(result.begin(), result.end());
  return result;
}

std::unordered_map<const Node*, std::size_t> places_in(const Graph& graph) {
  std::unordered_map<const Node*, std::size_t> result;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) result[graph.nodes[i].get()] = i;
  return result;
}

/// Why the nodes of `target` cannot get the parameters of those of `graph`. Nodes are paired in
/// order of creation.
UpdateResult find_change(Runtime& runtime, const Graph& target, const Graph& graph) {
  constexpr int topology = 2;
  constexpr int type = 3;
  if (target.nodes.size() != graph.nodes.size()) return {topology, nullptr, nullptr};
  const auto target_places = places_in(target);
  const auto graph_places = places_in(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node* const node = graph.nodes[i].get();
    const Node& old = *target.nodes[i];
    const auto before = places(old, target_places);
    const auto now = places(*node, graph_places);
    if (before.size() != now.size()) return {topology, node, nullptr};
    const auto other = std::mismatch(now.begin(), now.end(), before.begin()).first;
    if (other != now.end()) return {topology, node, graph.nodes[*other].get()};
    if (node_type(old.work) != node_type(node->work)) return {type, node, nullptr};
    if (const auto* child = std::get_if<ChildWork>(&node->work)) {
      const auto& old_child = std::get<ChildWork>(old.work);
      const UpdateResult inner = find_change(runtime, *old_child.graph, *child->graph);
      if (inner.result != 0) return inner;
    } else if (const int error = change_error(runtime, old.work, node->work)) {
      return {error, node, nullptr};
    }
  }
  return {};
}

void take_parameters(Graph& target, const Graph& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (const auto* child = std::get_if<ChildWork>(&graph.nodes[i]->work)) {
      take_parameters(*std::get<ChildWork>(target.nodes[i]->work).graph, *child->graph);
    } else {
      target.nodes[i]->work = graph.nodes[i]->work;
    }
  }
}

}  // namespace

// --- memory -------------------------------------------------------------------------------------

GraphAllocation::~GraphAllocation() {
  owner.by_address.erase(address);
  Runtime::get().memory().free(address);
}

std::uint64_t GraphMemory::rounded(std::uint64_t bytes) {
  constexpr std::uint64_t page = 2 << 20;
  return (bytes + page - 1) / page * page;
}

std::shared_ptr<GraphAllocation> GraphMemory::create(Runtime& runtime, std::uint64_t bytes) {
  auto allocation = std::make_shared<GraphAllocation>(*this, runtime.allocate(bytes), bytes);
  by_address[allocation->address] = allocation;
  return allocation;
}

std::shared_ptr<GraphAllocation> GraphMemory::find(std::uint64_t address) const {
  const auto found = by_address.find(address);
  return found == by_address.end() ? nullptr : found->second.lock();
}

void GraphMemory::allocate(Runtime& runtime, const std::shared_ptr<GraphAllocation>& allocation) {
  if (!live.emplace(allocation->address, allocation).second) return;
  used += rounded(allocation->bytes);
  used_high = std::max(used_high, used);
  reserved = std::max(reserved, used);
  reserved_high = std::max(reserved_high, reserved);
  assign_zeros(runtime.memory().find(allocation->address)->written, allocation->bytes);
}

bool GraphMemory::free(std::uint64_t address) {
  const std::shared_ptr<GraphAllocation> allocation = find(address);
  if (allocation == nullptr) return false;
  require(live.erase(address) > 0,
          "this address belongs to an allocation node of a graph, and no launch of the graph has "
          "memory there");
  used -= rounded(allocation->bytes);
  return true;
}

void note_free_node(Runtime& runtime, const Graph& graph, std::uint64_t address) {
  const std::shared_ptr<GraphAllocation> found = runtime.graphs().memory.find(address);
  require(found != nullptr, "this memory is not that of an allocation node of a graph");
  require(!found->freed_at_home, "the graph of the allocation node frees this memory already");
  const bool at_home = graph.number == found->home;
  require(!at_home || !found->freed_elsewhere, "another graph frees this memory already");
  require(std::ranges::none_of(graph.nodes,
                               [address](const auto& node) {
                                 const auto* work = std::get_if<FreeWork>(&node->work);
                                 return work != nullptr && work->address == address;
                               }),
          "the graph frees this memory already");
  (at_home ? found->freed_at_home : found->freed_elsewhere) = true;
}

// --- nodes --------------------------------------------------------------------------------------

int node_type(const Work& work) {
  // What libraries compute are kernels to a program.
  constexpr int types[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 0};
  static_assert(std::variant_size_v<Work> == std::size(types));
  return types[work.index()];
}

Graph::Graph() : number(next_number()) { existing().insert(this); }

Graph::~Graph() {
  existing().erase(this);
  for (const auto& node : nodes) existing().erase(node.get());
  for (const auto& [object, count] : objects) {
    // The program may have released more references than it had.
    const auto found = cudart::objects().find(object);
    if (found != cudart::objects().end()) release(object, std::min(count, object->references));
  }
}

Node* Graph::add(Work work, std::vector<Edge> dependencies) {
  std::unordered_set<const Node*> seen;
  for (const Edge& edge : dependencies) {
    require(checked(edge.from).graph == this, "a dependency is a node of another graph");
    require(seen.insert(edge.from).second, "a dependency is named twice");
  }
  auto node = std::make_unique<Node>();
  node->number = next_number();
  node->graph = this;
  node->work = std::move(work);
  node->dependencies = std::move(dependencies);
  if (auto* child = std::get_if<ChildWork>(&node->work)) child->graph->is_child = true;
  existing().insert(node.get());
  nodes.push_back(std::move(node));
  return nodes.back().get();
}

void Graph::remove(Node* node) {
  for (const auto& other : nodes) {
    std::erase_if(other->dependencies, [node](const Edge& edge) { return edge.from == node; });
  }
  existing().erase(node);
  std::erase_if(nodes, [node](const auto& entry) { return entry.get() == node; });
}

bool Graph::has_memory_nodes() const {
  return std::ranges::any_of(nodes, [](const auto& node) {
    const auto* child = std::get_if<ChildWork>(&node->work);
    return std::holds_alternative<AllocateWork>(node->work) ||
           std::holds_alternative<FreeWork>(node->work) ||
           (child != nullptr && child->graph->has_memory_nodes());
  });
}

std::vector<Node*> Graph::order(Node** bad) const {
  const auto place_of = places_in(*this);
  std::vector<std::size_t> waits_for(nodes.size());
  std::vector<std::vector<std::size_t>> dependents(nodes.size());
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    waits_for[i] = nodes[i]->dependencies.size();
    for (const Edge& edge : nodes[i]->dependencies) dependents[place_of.at(edge.from)].push_back(i);
    if (waits_for[i] == 0) ready.push(i);
  }
  std::vector<Node*> result;
  while (!ready.empty()) {
    const std::size_t next = ready.top();
    ready.pop();
    result.push_back(nodes[next].get());
    for (const std::size_t dependent : dependents[next]) {
      if (--waits_for[dependent] == 0) ready.push(dependent);
    }
  }
  if (result.size() < nodes.size()) {
    const auto left = std::ranges::find_if(waits_for, [](std::size_t count) { return count > 0; });
    if (bad != nullptr) *bad = nodes[static_cast<std::size_t>(left - waits_for.begin())].get();
    throw Failure(Error::invalid_value, "nodes of the graph depend on each other in a cycle");
  }
  return result;
}

std::unique_ptr<Graph> Graph::clone() const {
  auto result = std::make_unique<Graph>();
  result->original = number;
  std::unordered_map<const Node*, Node*> clone_of_node;
  for (const auto& node : nodes) {
    Work work = node->work;
    if (auto* child = std::get_if<ChildWork>(&work)) child->graph = child->graph->clone();
    Node* const copy = result->add(std::move(work), {});
    copy->original = node->number;
    copy->enabled = node->enabled;
    clone_of_node[node.get()] = copy;
  }
  for (const auto& node : nodes) {
    for (const Edge& edge : node->dependencies) {
      clone_of_node[node.get()]->dependencies.push_back({clone_of_node[edge.from], edge.data});
    }
  }
  for (const auto& [object, count] : objects) {
    object->references += count;
    result->objects[object] += count;
  }
  return result;
}

Node* Graph::clone_of(std::uint64_t original_number) const {
  for (const auto& node : nodes) {
    if (node->original == original_number) return node.get();
    if (const auto* child = std::get_if<ChildWork>(&node->work)) {
      if (Node* const inner = child->graph->clone_of(original_number)) return inner;
    }
  }
  return nullptr;
}

void check_edge(const Edge& edge) {
  const bool is_kernel = std::holds_alternative<KernelWork>(edge.from->work);
  const EdgeData& data = edge.data;
  require(data.type <= 1 && data.to_port == 0 && data.from_port <= 2 &&
              (is_kernel || (data.type == 0 && data.from_port == 0)),
          "data of an edge that its nodes do not know");
}

// --- handles ------------------------------------------------------------------------------------

Graph& checked(const Graph* graph) {
  require(existing().contains(graph), "there is no such graph");
  return const_cast<Graph&>(*graph);
}

Node& checked(const Node* node) {
  require(existing().contains(node), "there is no such node of a graph");
  return const_cast<Node&>(*node);
}

std::shared_ptr<Executable> checked(Runtime& runtime, const Executable* executable) {
  const auto found = runtime.graphs().executables.find(executable);
  require(found != runtime.graphs().executables.end(), "there is no such executable graph");
  return found->second;
}

UserObject* create_object(void* pointer, void (*destroy)(void*), std::uint64_t references) {
  auto object = std::make_unique<UserObject>(UserObject{pointer, destroy, references});
  UserObject* const handle = object.get();
  objects()[handle] = std::move(object);
  return handle;
}

UserObject& checked(UserObject* object) {
  require(objects().contains(object), "there is no such user object");
  return *object;
}

void release(UserObject* object, std::uint64_t count) {
  require(count <= object->references, "more references are given up than there are");
  object->references -= count;
  if (object->references > 0) return;
  const UserObject last = *object;
  objects().erase(object);
  last.destroy(last.pointer);
}

// --- executable graphs --------------------------------------------------------------------------

Executable* instantiate(Runtime& runtime, const Graph& graph, unsigned long long flags,
                        Node** bad) {
  constexpr unsigned long long known = 0xf;
  constexpr unsigned long long device_launch = 4;
  require((flags & ~known) == 0, "unknown flags");
  if ((flags & device_launch) != 0) {
    throw Failure(Error::not_supported, "graphs that kernels launch are not supported", true);
  }
  auto& executables = runtime.graphs().executables;
  require(!graph.has_memory_nodes() ||
              std::ranges::none_of(
                  executables,
                  [&](const auto& entry) { return entry.second->graph->original == graph.number; }),
          "a graph with memory nodes can have one executable graph at a time");
  require(!graph.is_child || !graph.has_memory_nodes(),
          "a graph that became a node of another cannot be instantiated");
  graph.order(bad);
  for (const auto& node : graph.nodes) {
    if (const auto* child = std::get_if<ChildWork>(&node->work)) child->graph->order(bad);
  }
  auto executable = std::make_shared<Executable>();
  executable->graph = graph.clone();
  executable->flags = flags;
  Executable* const handle = executable.get();
  executables[handle] = std::move(executable);
  return handle;
}

void run(Runtime& runtime, const std::shared_ptr<Executable>& executable, StreamHandle stream) {
  const std::shared_ptr<Executable> kept = executable;  // the program's function may destroy it
  for_each_allocation(*kept->graph, [&](const std::shared_ptr<GraphAllocation>& allocation) {
    GraphMemory& memory = runtime.graphs().memory;
    if (!memory.live.contains(allocation->address)) return;
    require((kept->flags & auto_free_on_launch) != 0,
            "memory that the last launch of the graph allocated has not been freed: free it, or "
            "instantiate the graph with cudaGraphInstantiateFlagAutoFreeOnLaunch");
    memory.free(allocation->address);
  });
  CallContext& context = log_thread().call;
  context.graph = runtime.log().next_graph();
  record_stream(runtime, OperationKind::graph_launch, stream);
  run_nodes(runtime, *kept->graph, stream, {});
}

int change_error(Runtime& runtime, const Work& from, const Work& to) {
  constexpr int parameters = 5;
  constexpr int not_supported = 6;
  constexpr int attributes = 8;
  if (from.index() != to.index()) return not_supported;
  if (const auto* now = std::get_if<KernelWork>(&to)) {
    const auto& before = std::get<KernelWork>(from);
    return before.launch.call.cooperative == now->launch.call.cooperative ? 0 : attributes;
  }
  if (const auto* now = std::get_if<CopyWork>(&to)) {
    const auto mapping = [&runtime](const Copy3D& copy) {
      return std::pair(mapping_of(runtime, copy.source_array, copy.source.pointer),
                       mapping_of(runtime, copy.target_array, copy.target.pointer));
    };
    return mapping(std::get<CopyWork>(from).copy) == mapping(now->copy) ? 0 : parameters;
  }
  if (const auto* now = std::get_if<FillWork>(&to)) {
    const FillParameters& a = std::get<FillWork>(from).fill;
    const FillParameters& b = now->fill;
    if (mapping_of(runtime, nullptr, a.target) != mapping_of(runtime, nullptr, b.target)) {
      return parameters;
    }
    if (a.height <= 1 && b.height <= 1) return 0;
    return a.height == b.height && a.width == b.width && a.element_bytes == b.element_bytes &&
                   a.pitch == b.pitch
               ? 0
               : parameters;
  }
  if (std::holds_alternative<AllocateWork>(to) || std::holds_alternative<FreeWork>(to)) {
    return not_supported;
  }
  return 0;
}

bool is_one_dimensional(const Work& work) {
  const auto* copy = std::get_if<CopyWork>(&work);
  return copy == nullptr || is_line(copy->copy);
}

UpdateResult update(Runtime& runtime, Graph& target, const Graph& graph) {
  const UpdateResult result = find_change(runtime, target, graph);
  if (result.result == 0) take_parameters(target, graph);
  return result;
}

}  // namespace warpstack::cudart
