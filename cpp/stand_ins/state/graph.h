#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "stand_ins/state/abi_graph.h"
#include "stand_ins/state/capture.h"
#include "stand_ins/state/runtime.h"

namespace warpstack::cudart {

/// cudaLaunchAttributeValue
using AttributeValue = std::array<std::byte, 64>;

struct GraphMemory;

/// Memory of an allocation node. Its address is fixed from the node's creation on, even when
/// nothing is allocated there.
struct GraphAllocation {
  GraphAllocation(GraphMemory& memory, std::uint64_t address, std::uint64_t bytes)
      : owner(memory), address(address), bytes(bytes) {}
  ~GraphAllocation();
  GraphAllocation(const GraphAllocation&) = delete;
  GraphAllocation& operator=(const GraphAllocation&) = delete;

  GraphMemory& owner;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t home = 0;      ///< number of the graph of the allocation node
  bool freed_at_home = false;  ///< the same graph has a free node
  bool freed_elsewhere = false;
};

/// The memory of all allocation nodes.
struct GraphMemory {
  std::map<std::uint64_t, std::weak_ptr<GraphAllocation>> by_address;
  std::map<std::uint64_t, std::shared_ptr<GraphAllocation>> live;  ///< allocated by a launch
  std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;

  std::shared_ptr<GraphAllocation> create(Runtime& runtime, std::uint64_t bytes);
  /// Null when no allocation node has this address.
  [[nodiscard]] std::shared_ptr<GraphAllocation> find(std::uint64_t address) const;
  void allocate(Runtime& runtime, const std::shared_ptr<GraphAllocation>& allocation);
  /// Frees memory allocated by a launch. Returns false if the address is not that of an allocation
  /// node; throws Failure if nothing is allocated there.
  bool free(std::uint64_t address);
  [[nodiscard]] static std::uint64_t rounded(std::uint64_t bytes);
};

// The kinds of work of nodes.

struct KernelWork {
  Runtime::Launch launch;
  std::map<int, AttributeValue> attributes;
  std::vector<void*> pointers;  ///< to the arguments, in case the program asks
};
struct CopyWork {
  Copy3D copy;
};
struct FillWork {
  FillParameters fill;
};
struct HostWork {
  HostParameters host;
};
struct ChildWork {
  std::shared_ptr<Graph> graph;
};
struct EmptyWork {};
struct WaitWork {
  EventHandle event;
};
struct RecordWork {
  EventHandle event;
};
struct AllocateWork {
  AllocationParameters parameters;
  std::vector<AccessDescription> access;
  std::shared_ptr<GraphAllocation> allocation;
};
struct FreeWork {
  std::uint64_t address;
};
/// What a library computes in place of kernels that are not known.
struct LibraryWork {
  bool (*run)(void* data, StreamHandle stream);  ///< see warpstack_cudart_capture
  std::shared_ptr<void> data;
};
using Work = std::variant<KernelWork, CopyWork, FillWork, HostWork, ChildWork, EmptyWork, WaitWork,
                          RecordWork, AllocateWork, FreeWork, LibraryWork>;

/// cudaGraphNodeType of a work.
int node_type(const Work& work);

struct Node {
  std::uint64_t number = 0;    ///< its own, never used again
  std::uint64_t original = 0;  ///< of the node that it was cloned from; 0: none
  Graph* graph = nullptr;
  Work work;
  std::vector<Edge> dependencies;
  bool enabled = true;
};

/// A reference-counted object of the program's that graphs keep alive (cudaUserObject_t).
struct UserObject {
  void* pointer = nullptr;
  void (*destroy)(void*) = nullptr;
  std::uint64_t references = 0;
};

/// cudaGraph_t
struct Graph {
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::uint64_t number;                      ///< its own, never used again
  std::uint64_t original = 0;                ///< of the graph that it was cloned from
  bool is_child = false;                     ///< it belongs to a node
  std::vector<std::unique_ptr<Node>> nodes;  ///< in order of their creation
  std::map<UserObject*, std::uint64_t> objects;

  /// Throws Failure when a dependency is not a node of this graph, or is named twice.
  Node* add(Work work, std::vector<Edge> dependencies);
  void remove(Node* node);
  [[nodiscard]] bool has_memory_nodes() const;
  /// The nodes in topological order, otherwise in order of creation. Throws Failure for a cycle,
  /// after setting `bad` to one of its nodes.
  std::vector<Node*> order(Node** bad = nullptr) const;
  /// Another graph with the same nodes, children included.
  [[nodiscard]] std::unique_ptr<Graph> clone() const;
  /// The clone of a node of the graph that this one was cloned from, also within children; or null.
  [[nodiscard]] Node* clone_of(std::uint64_t number) const;
};

/// cudaGraphExec_t
struct Executable {
  std::unique_ptr<Graph> graph;  ///< a clone
  unsigned long long flags = 0;
};

inline constexpr unsigned long long auto_free_on_launch = 1;

/// The graphs of a process.
struct GraphState {
  GraphMemory memory;
  std::map<const Graph*, std::shared_ptr<Graph>> graphs;  ///< that the program owns
  std::map<const Executable*, std::shared_ptr<Executable>> executables;
  Captures captures;
};

/// Throws Failure unless the data of an edge are valid for its node.
void check_edge(const Edge& edge);

/// The graph, node or executable graph of a handle. These throw Failure when there is none.
Graph& checked(const Graph* graph);
Node& checked(const Node* node);
std::shared_ptr<Executable> checked(Runtime& runtime, const Executable* executable);

/// Creates an object with a number of references, finds the object of a handle, and releases
/// references; the last release calls its destructor.
UserObject* create_object(void* pointer, void (*destroy)(void*), std::uint64_t references);
UserObject& checked(UserObject* object);
void release(UserObject* object, std::uint64_t count);

/// Notes a free node in `graph`. Refuses it if the memory is not an allocation node's, or has a
/// free node that excludes another.
void note_free_node(Runtime& runtime, const Graph& graph, std::uint64_t address);

/// If the stream is capturing, makes `work` a node of its graph and returns true; else returns
/// false. Throws as capture_of() does.
bool capture(Runtime& runtime, StreamHandle stream, Work work);

/// Makes a graph executable. Throws Failure, after setting `bad` to the offending node.
Executable* instantiate(Runtime& runtime, const Graph& graph, unsigned long long flags,
                        Node** bad = nullptr);

/// Runs all nodes in a valid order. Throws Failure when one fails; those after it do not run.
void run(Runtime& runtime, const std::shared_ptr<Executable>& executable, StreamHandle stream);

/// The copies of cudaMemcpy, cudaMemcpyToSymbol and cudaMemcpyFromSymbol as work of a node.
CopyWork plain_copy(const void* target, const void* source, std::size_t bytes, MemcpyKind kind);
CopyWork copy_work_to_symbol(Runtime& runtime, const void* symbol, const void* source,
                             std::size_t bytes, std::size_t offset, MemcpyKind kind);
CopyWork copy_work_from_symbol(Runtime& runtime, void* target, const void* symbol,
                               std::size_t bytes, std::size_t offset, MemcpyKind kind);

/// Run cudaMemcpy3D and the fill of a memset node now. With `check_only` they only check.
void run_copy(Runtime& runtime, const Copy3D& copy, bool check_only = false);
void run_fill(Runtime& runtime, const FillParameters& fill, bool check_only = false);

/// Gives the nodes of an executable graph the parameters of those of `graph`. If a change is not
/// allowed, nothing is changed, and the result is not 0 and names the node.
UpdateResult update(Runtime& runtime, Graph& target, const Graph& graph);

/// 0 when an executable node may get this work, otherwise a cudaGraphExecUpdateResult.
int change_error(Runtime& runtime, const Work& from, const Work& to);
/// Whether a copy is between plain memory without rows; true for other work.
bool is_one_dimensional(const Work& work);

}  // namespace warpstack::cudart
