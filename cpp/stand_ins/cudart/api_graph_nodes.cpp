// Nodes of graphs: adds them, and gets and changes their parameters, also in executable graphs.

#include <cstring>

#include "stand_ins/state/abi_version.h"
#include "stand_ins/state/graph.h"
#include "stand_ins/state/kernel_attributes.h"
#include "stand_ins/state/memory_operations.h"
#include "stand_ins/state/runtime.h"

using namespace warpstack::cudart;

namespace {

constexpr int cooperative_attribute = 2;
constexpr int cluster_attribute = 4;

KernelWork kernel_work(Runtime& runtime, const KernelNodeParameters* parameters,
                       const KernelWork* before = nullptr) {
  require(parameters != nullptr, "no parameters");
  if (parameters->extra != nullptr) {
    throw Failure(Error::not_supported,
                  "arguments of a kernel node as one buffer (extra) are not supported; pass "
                  "kernelParams",
                  true);
  }
  Runtime::Call call{parameters->grid, parameters->block, parameters->dynamic_shared_bytes, 0};
  KernelWork work;
  if (before != nullptr) {
    call.cooperative = before->launch.call.cooperative;
    call.cluster = before->launch.call.cluster;
    work.attributes = before->attributes;
  }
  work.launch = runtime.prepare(parameters->stub, call, parameters->arguments);
  return work;
}

CopyWork copy_work(Runtime& runtime, const Copy3D* copy) {
  require(copy != nullptr, "no copy is described");
  run_copy(runtime, *copy, true);
  return {*copy};
}

CopyWork checked_copy(Runtime& runtime, const CopyWork& work) {
  run_copy(runtime, work.copy, true);
  return work;
}

FillWork fill_work(Runtime& runtime, const FillParameters* fill) {
  require(fill != nullptr, "no fill is described");
  run_fill(runtime, *fill, true);
  return {*fill};
}

HostWork host_work(const HostParameters* host) {
  require(host != nullptr && host->function != nullptr, "there is no function to call");
  return {*host};
}

ChildWork child_work(const Graph* child) {
  require(!checked(child).has_memory_nodes(),
          "a graph with memory nodes can only become a child if the node takes it over",
          Error::not_supported);
  return {child->clone()};
}

AllocateWork allocate_work(Runtime& runtime, const Graph& graph, AllocationParameters* wanted) {
  require(wanted != nullptr && wanted->bytes > 0, "an allocation node needs a size");
  const MemoryPoolProperties& pool = wanted->pool;
  require(pool.allocation_kind == 1 && pool.handle_kinds == 0 &&
              pool.location.kind == MemoryLocation::Kind::device && pool.location.id == 0,
          "an allocation node allocates memory of device 0, for this process");
  AllocateWork work;
  if (wanted->num_access > 0) {
    runtime.check_host(address_of(wanted->access), wanted->num_access * sizeof *wanted->access,
                       false);
    work.access.assign(wanted->access, wanted->access + wanted->num_access);
  }
  work.allocation = runtime.graphs().memory.create(runtime, wanted->bytes);
  work.allocation->home = graph.number;
  wanted->pointer = pointer_to(work.allocation->address);
  work.parameters = *wanted;
  return work;
}

std::vector<Edge> edges_of(Runtime& runtime, Node* const* dependencies, const EdgeData* data,
                           std::size_t count) {
  std::vector<Edge> edges;
  if (count == 0) return edges;
  runtime.check_host(address_of(dependencies), count * sizeof *dependencies, false);
  if (data != nullptr) runtime.check_host(address_of(data), count * sizeof *data, false);
  for (std::size_t i = 0; i < count; ++i) {
    edges.push_back({&checked(dependencies[i]), data != nullptr ? data[i] : EdgeData{}});
    check_edge(edges.back());
  }
  return edges;
}

/// Adds a node with the work that `make(runtime)` returns.
template <typename Make>
Error add(const char* function, Node** node, Graph* graph, Node* const* dependencies,
          std::size_t count, Make make) {
  return call(function, [&](Runtime& runtime) {
    require(node != nullptr, "nowhere to put the node");
    checked(graph);
    std::vector<Edge> edges = edges_of(runtime, dependencies, nullptr, count);
    *node = graph->add(make(runtime), std::move(edges));
  });
}

/// The work of a node of this type. Throws Failure for nodes of other types.
template <typename Kind>
Kind& work_of(Node* node) {
  auto* const work = std::get_if<Kind>(&checked(node).work);
  require(work != nullptr, "the node is of another type");
  return *work;
}

/// The node of an executable graph that stands for this one.
Node& node_of(Runtime& runtime, Executable* executable, Node* node) {
  Node* const found = checked(runtime, executable)->graph->clone_of(checked(node).number);
  require(found != nullptr, "the executable graph was not made from this node's graph");
  return *found;
}

/// Changes the work of an executable graph's node to what `make(runtime, node)` returns.
template <typename Kind, typename Make>
Error set_executable(const char* function, Executable* executable, Node* node, Make make) {
  return call(function, [&](Runtime& runtime) {
    work_of<Kind>(node);
    Node& target = node_of(runtime, executable, node);
    Work work = make(runtime, target);
    require(change_error(runtime, target.work, work) == 0,
            "an executable node cannot change between kinds of memory, and rows of a fill stay as "
            "they are");
    require(is_one_dimensional(target.work) && is_one_dimensional(work),
            "an executable copy can only be changed from one line of memory to another");
    target.work = std::move(work);
  });
}

/// The work that cudaGraphNodeParams describe, for a node of `graph`.
Work described(Runtime& runtime, const Graph& graph, NodeParameters* parameters,
               const Work* before) {
  require(parameters != nullptr, "no parameters");
  require(parameters->reserved[0] == 0 && parameters->reserved[1] == 0 &&
              parameters->reserved[2] == 0 && parameters->reserved_end == 0,
          "reserved bytes of the parameters are not 0");
  switch (parameters->type) {
    case 0:
      return kernel_work(runtime, &parameters->kernel,
                         before != nullptr ? std::get_if<KernelWork>(before) : nullptr);
    case 1:
      return copy_work(runtime, &parameters->copy.parameters);
    case 2:
      return fill_work(runtime, &parameters->fill);
    case 3:
      return host_work(&parameters->host);
    case 4:
      require(&checked(parameters->child.graph) != &graph, "a graph cannot be its own child");
      if (parameters->child.ownership == 1) {
        auto& graphs = runtime.graphs().graphs;
        const auto found = graphs.find(parameters->child.graph);
        require(found != graphs.end() && !runtime.graphs().captures.into(parameters->child.graph),
                "the graph belongs to a node or a capture already");
        return ChildWork{graphs.extract(found).mapped()};
      }
      return child_work(parameters->child.graph);
    case 5:
      return EmptyWork{};
    case 6:
      runtime.event(parameters->event);
      return WaitWork{parameters->event};
    case 7:
      runtime.event(parameters->event);
      return RecordWork{parameters->event};
    case 10:
      require(before == nullptr, "memory nodes cannot be changed", Error::not_supported);
      return allocate_work(runtime, graph, &parameters->allocation);
    case 11:
      require(before == nullptr, "memory nodes cannot be changed", Error::not_supported);
      note_free_node(runtime, graph, address_of(parameters->freed));
      return FreeWork{address_of(parameters->freed)};
    default:
      throw Failure(Error::not_supported,
                    "nodes of this type (semaphores, conditions) are not supported", true);
  }
}

Error add_node(const char* function, Node** node, Graph* graph, Node* const* dependencies,
               const EdgeData* data, std::size_t count, NodeParameters* parameters) {
  return call(function, [&](Runtime& runtime) {
    require(node != nullptr, "nowhere to put the node");
    checked(graph);
    std::vector<Edge> edges = edges_of(runtime, dependencies, data, count);
    *node = graph->add(described(runtime, *graph, parameters, nullptr), std::move(edges));
  });
}

void set_attribute(Runtime& runtime, KernelWork& work, int attribute, const AttributeValue& value) {
  if (attribute == cooperative_attribute) {
    int cooperative = 0;
    std::memcpy(&cooperative, value.data(), sizeof cooperative);
    work.launch.call.cooperative = cooperative != 0;
  }
  if (attribute == cluster_attribute) {
    Runtime::Call call = work.launch.call;
    call.cluster = cluster_dimension(value.data());
    runtime.check_clusters(runtime.kernel(work.launch.stub), call);
    work.launch.call = call;
  }
  work.attributes[attribute] = value;
}

}  // namespace

// --- kernels ------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaGraphAddKernelNode(Node** node, Graph* graph, Node* const* dependencies,
                                           std::size_t count,
                                           const KernelNodeParameters* parameters) {
  return add(__func__, node, graph, dependencies, count,
             [&](Runtime& runtime) { return kernel_work(runtime, parameters); });
}

CUDART_EXPORT Error cudaGraphKernelNodeGetParams(Node* node, KernelNodeParameters* parameters) {
  return call(__func__, [&](Runtime& runtime) {
    require(parameters != nullptr, "nowhere to put the parameters");
    KernelWork& work = work_of<KernelWork>(node);
    KernelEntry& kernel = runtime.kernel(work.launch.stub);
    work.pointers.clear();
    for (const auto& slot : runtime.load(*kernel.module).arguments(kernel.name)) {
      work.pointers.push_back(work.launch.parameters.data() + slot.offset);
    }
    const Runtime::Call& call = work.launch.call;
    *parameters = {work.launch.stub,     call.grid,
                   call.block,           static_cast<std::uint32_t>(call.dynamic_shared_bytes),
                   work.pointers.data(), nullptr};
  });
}

CUDART_EXPORT Error cudaGraphKernelNodeSetParams(Node* node,
                                                 const KernelNodeParameters* parameters) {
  return call(__func__, [&](Runtime& runtime) {
    KernelWork& work = work_of<KernelWork>(node);
    work = kernel_work(runtime, parameters, &work);
  });
}

CUDART_EXPORT Error cudaGraphExecKernelNodeSetParams(Executable* executable, Node* node,
                                                     const KernelNodeParameters* parameters) {
  return set_executable<KernelWork>(
      __func__, executable, node, [&](Runtime& runtime, const Node& target) {
        return kernel_work(runtime, parameters, std::get_if<KernelWork>(&target.work));
      });
}

CUDART_EXPORT Error cudaGraphKernelNodeSetAttribute(Node* node, int attribute,
                                                    const AttributeValue* value) {
  return call(__func__, [&](Runtime& runtime) {
    require(value != nullptr, "there is no value");
    set_attribute(runtime, work_of<KernelWork>(node), attribute, *value);
  });
}

CUDART_EXPORT Error cudaGraphKernelNodeGetAttribute(Node* node, int attribute,
                                                    AttributeValue* value) {
  return call(__func__, [&](Runtime&) {
    require(value != nullptr, "nowhere to put the value");
    const KernelWork& work = work_of<KernelWork>(node);
    const auto found = work.attributes.find(attribute);
    *value = found != work.attributes.end() ? found->second : AttributeValue{};
    if (attribute == cooperative_attribute) {
      const int cooperative = work.launch.call.cooperative ? 1 : 0;
      std::memcpy(value->data(), &cooperative, sizeof cooperative);
    }
  });
}

CUDART_EXPORT Error cudaGraphKernelNodeCopyAttributes(Node* target, Node* source) {
  return call(__func__, [&](Runtime&) {
    KernelWork& to = work_of<KernelWork>(target);
    const KernelWork& from = work_of<KernelWork>(source);
    to.attributes = from.attributes;
    to.launch.call.cooperative = from.launch.call.cooperative;
    to.launch.call.cluster = from.launch.call.cluster;
  });
}

// --- copies -------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaGraphAddMemcpyNode(Node** node, Graph* graph, Node* const* dependencies,
                                           std::size_t count, const Copy3D* copy) {
  return add(__func__, node, graph, dependencies, count,
             [&](Runtime& runtime) { return copy_work(runtime, copy); });
}

CUDART_EXPORT Error cudaGraphAddMemcpyNode1D(Node** node, Graph* graph, Node* const* dependencies,
                                             std::size_t count, void* target, const void* source,
                                             std::size_t bytes, MemcpyKind kind) {
  return add(__func__, node, graph, dependencies, count, [&](Runtime& runtime) {
    return checked_copy(runtime, plain_copy(target, source, bytes, kind));
  });
}

CUDART_EXPORT Error cudaGraphAddMemcpyNodeToSymbol(Node** node, Graph* graph,
                                                   Node* const* dependencies, std::size_t count,
                                                   const void* symbol, const void* source,
                                                   std::size_t bytes, std::size_t offset,
                                                   MemcpyKind kind) {
  return add(__func__, node, graph, dependencies, count, [&](Runtime& runtime) {
    return checked_copy(runtime, copy_work_to_symbol(runtime, symbol, source, bytes, offset, kind));
  });
}

CUDART_EXPORT Error cudaGraphAddMemcpyNodeFromSymbol(Node** node, Graph* graph,
                                                     Node* const* dependencies, std::size_t count,
                                                     void* target, const void* symbol,
                                                     std::size_t bytes, std::size_t offset,
                                                     MemcpyKind kind) {
  return add(__func__, node, graph, dependencies, count, [&](Runtime& runtime) {
    return checked_copy(runtime,
                        copy_work_from_symbol(runtime, target, symbol, bytes, offset, kind));
  });
}

CUDART_EXPORT Error cudaGraphMemcpyNodeGetParams(Node* node, Copy3D* copy) {
  return call(__func__, [&](Runtime&) {
    require(copy != nullptr, "nowhere to put the parameters");
    *copy = work_of<CopyWork>(node).copy;
  });
}

CUDART_EXPORT Error cudaGraphMemcpyNodeSetParams(Node* node, const Copy3D* copy) {
  return call(__func__,
              [&](Runtime& runtime) { work_of<CopyWork>(node) = copy_work(runtime, copy); });
}

CUDART_EXPORT Error cudaGraphMemcpyNodeSetParams1D(Node* node, void* target, const void* source,
                                                   std::size_t bytes, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    work_of<CopyWork>(node) = checked_copy(runtime, plain_copy(target, source, bytes, kind));
  });
}

CUDART_EXPORT Error cudaGraphMemcpyNodeSetParamsToSymbol(Node* node, const void* symbol,
                                                         const void* source, std::size_t bytes,
                                                         std::size_t offset, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    work_of<CopyWork>(node) =
        checked_copy(runtime, copy_work_to_symbol(runtime, symbol, source, bytes, offset, kind));
  });
}

CUDART_EXPORT Error cudaGraphMemcpyNodeSetParamsFromSymbol(Node* node, void* target,
                                                           const void* symbol, std::size_t bytes,
                                                           std::size_t offset, MemcpyKind kind) {
  return call(__func__, [&](Runtime& runtime) {
    work_of<CopyWork>(node) =
        checked_copy(runtime, copy_work_from_symbol(runtime, target, symbol, bytes, offset, kind));
  });
}

CUDART_EXPORT Error cudaGraphExecMemcpyNodeSetParams(Executable* executable, Node* node,
                                                     const Copy3D* copy) {
  return set_executable<CopyWork>(__func__, executable, node, [&](Runtime& runtime, const Node&) {
    return copy_work(runtime, copy);
  });
}

CUDART_EXPORT Error cudaGraphExecMemcpyNodeSetParams1D(Executable* executable, Node* node,
                                                       void* target, const void* source,
                                                       std::size_t bytes, MemcpyKind kind) {
  return set_executable<CopyWork>(__func__, executable, node, [&](Runtime& runtime, const Node&) {
    return checked_copy(runtime, plain_copy(target, source, bytes, kind));
  });
}

CUDART_EXPORT Error cudaGraphExecMemcpyNodeSetParamsToSymbol(Executable* executable, Node* node,
                                                             const void* symbol, const void* source,
                                                             std::size_t bytes, std::size_t offset,
                                                             MemcpyKind kind) {
  return set_executable<CopyWork>(__func__, executable, node, [&](Runtime& runtime, const Node&) {
    return checked_copy(runtime, copy_work_to_symbol(runtime, symbol, source, bytes, offset, kind));
  });
}

CUDART_EXPORT Error cudaGraphExecMemcpyNodeSetParamsFromSymbol(Executable* executable, Node* node,
                                                               void* target, const void* symbol,
                                                               std::size_t bytes,
                                                               std::size_t offset,
                                                               MemcpyKind kind) {
  return set_executable<CopyWork>(__func__, executable, node, [&](Runtime& runtime, const Node&) {
    return checked_copy(runtime,
                        copy_work_from_symbol(runtime, target, symbol, bytes, offset, kind));
  });
}

// --- fills --------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaGraphAddMemsetNode(Node** node, Graph* graph, Node* const* dependencies,
                                           std::size_t count, const FillParameters* fill) {
  return add(__func__, node, graph, dependencies, count,
             [&](Runtime& runtime) { return fill_work(runtime, fill); });
}

CUDART_EXPORT Error cudaGraphMemsetNodeGetParams(Node* node, FillParameters* fill) {
  return call(__func__, [&](Runtime&) {
    require(fill != nullptr, "nowhere to put the parameters");
    *fill = work_of<FillWork>(node).fill;
  });
}

CUDART_EXPORT Error cudaGraphMemsetNodeSetParams(Node* node, const FillParameters* fill) {
  return call(__func__,
              [&](Runtime& runtime) { work_of<FillWork>(node) = fill_work(runtime, fill); });
}

CUDART_EXPORT Error cudaGraphExecMemsetNodeSetParams(Executable* executable, Node* node,
                                                     const FillParameters* fill) {
  return set_executable<FillWork>(__func__, executable, node, [&](Runtime& runtime, const Node&) {
    return fill_work(runtime, fill);
  });
}

// --- functions of the host ----------------------------------------------------------------------

CUDART_EXPORT Error cudaGraphAddHostNode(Node** node, Graph* graph, Node* const* dependencies,
                                         std::size_t count, const HostParameters* host) {
  return add(__func__, node, graph, dependencies, count, [&](Runtime&) { return host_work(host); });
}

CUDART_EXPORT Error cudaGraphHostNodeGetParams(Node* node, HostParameters* host) {
  return call(__func__, [&](Runtime&) {
    require(host != nullptr, "nowhere to put the parameters");
    *host = work_of<HostWork>(node).host;
  });
}

CUDART_EXPORT Error cudaGraphHostNodeSetParams(Node* node, const HostParameters* host) {
  return call(__func__, [&](Runtime&) { work_of<HostWork>(node) = host_work(host); });
}

CUDART_EXPORT Error cudaGraphExecHostNodeSetParams(Executable* executable, Node* node,
                                                   const HostParameters* host) {
  return set_executable<HostWork>(__func__, executable, node,
                                  [&](Runtime&, const Node&) { return host_work(host); });
}

// --- children, empty nodes ----------------------------------------------------------------------

CUDART_EXPORT Error cudaGraphAddChildGraphNode(Node** node, Graph* graph, Node* const* dependencies,
                                               std::size_t count, Graph* child) {
  return add(__func__, node, graph, dependencies, count, [&](Runtime&) {
    require(child != graph, "a graph cannot be its own child");
    return child_work(child);
  });
}

CUDART_EXPORT Error cudaGraphChildGraphNodeGetGraph(Node* node, Graph** child) {
  return call(__func__, [&](Runtime&) {
    require(child != nullptr, "nowhere to put the graph");
    *child = work_of<ChildWork>(node).graph.get();
  });
}

CUDART_EXPORT Error cudaGraphExecChildGraphNodeSetParams(Executable* executable, Node* node,
                                                         Graph* child) {
  return call(__func__, [&](Runtime& runtime) {
    work_of<ChildWork>(node);
    Node& target = node_of(runtime, executable, node);
    const UpdateResult result =
        update(runtime, *std::get<ChildWork>(target.work).graph, checked(child));
    require(result.result == 0, "the child has other nodes or edges, or a change is not allowed");
  });
}

CUDART_EXPORT Error cudaGraphAddEmptyNode(Node** node, Graph* graph, Node* const* dependencies,
                                          std::size_t count) {
  return add(__func__, node, graph, dependencies, count, [](Runtime&) { return EmptyWork{}; });
}

// --- events -------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaGraphAddEventRecordNode(Node** node, Graph* graph,
                                                Node* const* dependencies, std::size_t count,
                                                EventHandle event) {
  return add(__func__, node, graph, dependencies, count, [&](Runtime& runtime) {
    runtime.event(event);
    return RecordWork{event};
  });
}

CUDART_EXPORT Error cudaGraphAddEventWaitNode(Node** node, Graph* graph, Node* const* dependencies,
                                              std::size_t count, EventHandle event) {
  return add(__func__, node, graph, dependencies, count, [&](Runtime& runtime) {
    runtime.event(event);
    return WaitWork{event};
  });
}

CUDART_EXPORT Error cudaGraphEventRecordNodeGetEvent(Node* node, EventHandle* event) {
  return call(__func__, [&](Runtime&) {
    require(event != nullptr, "nowhere to put the event");
    *event = work_of<RecordWork>(node).event;
  });
}

CUDART_EXPORT Error cudaGraphEventWaitNodeGetEvent(Node* node, EventHandle* event) {
  return call(__func__, [&](Runtime&) {
    require(event != nullptr, "nowhere to put the event");
    *event = work_of<WaitWork>(node).event;
  });
}

CUDART_EXPORT Error cudaGraphEventRecordNodeSetEvent(Node* node, EventHandle event) {
  return call(__func__, [&](Runtime& runtime) {
    runtime.event(event);
    work_of<RecordWork>(node).event = event;
  });
}

CUDART_EXPORT Error cudaGraphEventWaitNodeSetEvent(Node* node, EventHandle event) {
  return call(__func__, [&](Runtime& runtime) {
    runtime.event(event);
    work_of<WaitWork>(node).event = event;
  });
}

CUDART_EXPORT Error cudaGraphExecEventRecordNodeSetEvent(Executable* executable, Node* node,
                                                         EventHandle event) {
  return set_executable<RecordWork>(__func__, executable, node, [&](Runtime& runtime, const Node&) {
    runtime.event(event);
    return RecordWork{event};
  });
}

CUDART_EXPORT Error cudaGraphExecEventWaitNodeSetEvent(Executable* executable, Node* node,
                                                       EventHandle event) {
  return set_executable<WaitWork>(__func__, executable, node, [&](Runtime& runtime, const Node&) {
    runtime.event(event);
    return WaitWork{event};
  });
}

// --- memory -------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaGraphAddMemAllocNode(Node** node, Graph* graph, Node* const* dependencies,
                                             std::size_t count, AllocationParameters* parameters) {
  return add(__func__, node, graph, dependencies, count,
             [&](Runtime& runtime) { return allocate_work(runtime, *graph, parameters); });
}

CUDART_EXPORT Error cudaGraphMemAllocNodeGetParams(Node* node, AllocationParameters* parameters) {
  return call(__func__, [&](Runtime&) {
    require(parameters != nullptr, "nowhere to put the parameters");
    const AllocateWork& work = work_of<AllocateWork>(node);
    *parameters = work.parameters;
    parameters->access = work.access.data();
    parameters->num_access = work.access.size();
  });
}

CUDART_EXPORT Error cudaGraphAddMemFreeNode(Node** node, Graph* graph, Node* const* dependencies,
                                            std::size_t count, void* pointer) {
  return add(__func__, node, graph, dependencies, count, [&](Runtime& runtime) {
    note_free_node(runtime, *graph, address_of(pointer));
    return FreeWork{address_of(pointer)};
  });
}

CUDART_EXPORT Error cudaGraphMemFreeNodeGetParams(Node* node, void* pointer) {
  return call(__func__, [&](Runtime&) {
    require(pointer != nullptr, "nowhere to put the address");
    const std::uint64_t address = work_of<FreeWork>(node).address;
    std::memcpy(pointer, &address, sizeof address);
  });
}

// --- nodes of any type --------------------------------------------------------------------------

CUDART_EXPORT Error cudaGraphAddNode_v2(Node** node, Graph* graph, Node* const* dependencies,
                                        const EdgeData* data, std::size_t count,
                                        NodeParameters* parameters) {
  return add_node(__func__, node, graph, dependencies, data, count, parameters);
}

/// CUDA 13 has the arguments of the second version.
CUDART_EXPORT Error cudaGraphAddNode(Node** node, Graph* graph, Node* const* dependencies,
                                     std::uintptr_t data_or_count,
                                     std::uintptr_t count_or_parameters,
                                     NodeParameters* parameters) {
  if (abi_version() >= 13) {
    return add_node(__func__, node, graph, dependencies,
                    reinterpret_cast<const EdgeData*>(data_or_count), count_or_parameters,
                    parameters);
  }
  return add_node(__func__, node, graph, dependencies, nullptr, data_or_count,
                  reinterpret_cast<NodeParameters*>(count_or_parameters));
}

CUDART_EXPORT Error cudaGraphNodeSetParams(Node* node, NodeParameters* parameters) {
  return call(__func__, [&](Runtime& runtime) {
    Work& work = checked(node).work;
    require(parameters != nullptr && parameters->type == node_type(work),
            "the node is of another type");
    require(parameters->type != 4, "the graph of a child node cannot be changed",
            Error::not_supported);
    work = described(runtime, *node->graph, parameters, &work);
  });
}

CUDART_EXPORT Error cudaGraphExecNodeSetParams(Executable* executable, Node* node,
                                               NodeParameters* parameters) {
  return call(__func__, [&](Runtime& runtime) {
    Node& target = node_of(runtime, executable, node);
    require(parameters != nullptr && parameters->type == node_type(target.work),
            "the node is of another type");
    if (parameters->type == 4) {
      const UpdateResult result = update(runtime, *std::get<ChildWork>(target.work).graph,
                                         checked(parameters->child.graph));
      require(result.result == 0, "the child has other nodes or edges, or a change is not allowed");
      return;
    }
    Work work = described(runtime, *target.graph, parameters, &target.work);
    require(change_error(runtime, target.work, work) == 0 && is_one_dimensional(target.work) &&
                is_one_dimensional(work),
            "an executable node cannot change between kinds of memory or its shape");
    target.work = std::move(work);
  });
}

CUDART_EXPORT Error cudaGraphNodeSetEnabled(Executable* executable, Node* node, unsigned enabled) {
  return call(__func__, [&](Runtime& runtime) {
    Node& target = node_of(runtime, executable, node);
    require(node_type(target.work) <= 2, "only kernels, copies and fills can be disabled");
    target.enabled = enabled != 0;
  });
}

CUDART_EXPORT Error cudaGraphNodeGetEnabled(Executable* executable, Node* node, unsigned* enabled) {
  return call(__func__, [&](Runtime& runtime) {
    require(enabled != nullptr, "nowhere to put the answer");
    const Node& target = node_of(runtime, executable, node);
    require(node_type(target.work) <= 2, "only kernels, copies and fills can be disabled");
    *enabled = target.enabled ? 1 : 0;
  });
}
