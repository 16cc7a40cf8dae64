// Graphs, their edges and clones; executable graphs: instantiation, launch, update.

#include <algorithm>
#include <fstream>
#include <string>

#include "stand_ins/state/abi_version.h"
#include "stand_ins/state/graph.h"
#include "stand_ins/state/runtime.h"

using namespace warpstack::cudart;

namespace {

/// Returns a list as cudaGraphGetNodes does: only its length if `place` is null, else as many
/// entries as fit; the rest of the room becomes null.
void give(const std::vector<Node*>& list, Node** place, std::size_t* count) {
  require(count != nullptr, "nowhere to put the number");
  if (place == nullptr) {
    *count = list.size();
    return;
  }
  for (std::size_t i = 0; i < *count; ++i) place[i] = i < list.size() ? list[i] : nullptr;
  *count = std::min(*count, list.size());
}

/// Returns the data of edges; goes with give().
void give_data(const std::vector<EdgeData>& list, const Node* const* place, EdgeData* data,
               std::size_t room) {
  require(data == nullptr || place != nullptr, "data of edges without their nodes");
  if (place == nullptr) return;
  for (std::size_t i = 0; i < std::min(room, list.size()); ++i) {
    require(data != nullptr || list[i] == EdgeData{},
            "an edge has data, for which there is no place", Error::lossy_query);
    if (data != nullptr) data[i] = list[i];
  }
}

Error get_edges(const char* function, Graph* graph, Node** from, Node** to, EdgeData* data,
                std::size_t* count) {
  return call(function, [&](Runtime&) {
    require((from == nullptr) == (to == nullptr), "one of two places is null");
    require(count != nullptr, "nowhere to put the number");
    std::vector<Node*> sources;
    std::vector<Node*> targets;
    std::vector<EdgeData> all_data;
    for (const auto& node : checked(graph).nodes) {
      for (const Edge& edge : node->dependencies) {
        sources.push_back(edge.from);
        targets.push_back(node.get());
        all_data.push_back(edge.data);
      }
    }
    give_data(all_data, from, data, *count);
    std::size_t room = *count;
    give(sources, from, &room);
    give(targets, to, count);
  });
}

Error get_dependencies(const char* function, Node* node, Node** place, EdgeData* data,
                       std::size_t* count) {
  return call(function, [&](Runtime&) {
    require(count != nullptr, "nowhere to put the number");
    std::vector<Node*> list;
    std::vector<EdgeData> all_data;
    for (const Edge& edge : checked(node).dependencies) {
      list.push_back(edge.from);
      all_data.push_back(edge.data);
    }
    give_data(all_data, place, data, *count);
    give(list, place, count);
  });
}

Error get_dependents(const char* function, Node* node, Node** place, EdgeData* data,
                     std::size_t* count) {
  return call(function, [&](Runtime&) {
    require(count != nullptr, "nowhere to put the number");
    std::vector<Node*> list;
    std::vector<EdgeData> all_data;
    for (const auto& other : checked(node).graph->nodes) {
      for (const Edge& edge : other->dependencies) {
        if (edge.from != node) continue;
        list.push_back(other.get());
        all_data.push_back(edge.data);
      }
    }
    give_data(all_data, place, data, *count);
    give(list, place, count);
  });
}

/// Checks the edges of a call and passes on each: its end, and a dependency for it.
template <typename Take>
void for_each_edge(Runtime& runtime, Graph* graph, Node* const* from, Node* const* to,
                   const EdgeData* data, std::size_t count, Take take) {
  checked(graph);
  if (count == 0) return;
  runtime.check_host(address_of(from), count * sizeof *from, false);
  runtime.check_host(address_of(to), count * sizeof *to, false);
  if (data != nullptr) runtime.check_host(address_of(data), count * sizeof *data, false);
  for (std::size_t i = 0; i < count; ++i) {
    Node& end = checked(to[i]);
    require(checked(from[i]).graph == graph && end.graph == graph,
            "a node belongs to another graph");
    require(from[i] != to[i], "a node cannot depend on itself");
    take(end, Edge{from[i], data != nullptr ? data[i] : EdgeData{}});
  }
}

auto find_edge(Node& end, const Node* from) {
  return std::ranges::find_if(end.dependencies,
                              [from](const Edge& edge) { return edge.from == from; });
}

Error add_dependencies(const char* function, Graph* graph, Node* const* from, Node* const* to,
                       const EdgeData* data, std::size_t count) {
  return call(function, [&](Runtime& runtime) {
    for_each_edge(runtime, graph, from, to, data, count, [](Node& end, const Edge& edge) {
      check_edge(edge);
      require(find_edge(end, edge.from) == end.dependencies.end(), "there is such an edge already");
      end.dependencies.push_back(edge);
    });
  });
}

Error remove_dependencies(const char* function, Graph* graph, Node* const* from, Node* const* to,
                          const EdgeData* data, std::size_t count) {
  return call(function, [&](Runtime& runtime) {
    require(!checked(graph).has_memory_nodes(),
            "edges of a graph with memory nodes cannot be removed");
    for_each_edge(runtime, graph, from, to, data, count, [](Node& end, const Edge& edge) {
      const auto found = find_edge(end, edge.from);
      require(found != end.dependencies.end() && found->data == edge.data, "there is no such edge");
      end.dependencies.erase(found);
    });
  });
}

Error update_executable(const char* function, Executable* executable, Graph* graph,
                        UpdateResult& result) {
  result = {1, nullptr, nullptr};
  return call(function, [&](Runtime& runtime) {
    const auto target = checked(runtime, executable);
    result = update(runtime, *target->graph, checked(graph));
    if (result.result == 0) return;
    const char* const reasons[] = {"",
                                   "",
                                   "nodes or edges are others",
                                   "a node is of another type",
                                   "",
                                   "the memory or the shape of a copy or fill is another",
                                   "memory nodes cannot be updated",
                                   "",
                                   "a kernel is cooperative and was not, or was"};
    throw Failure(Error::graph_update_failure,
                  std::string("the executable graph stays as it was: ") + reasons[result.result]);
  });
}

const char* const type_names[] = {"kernel",     "copy",  "fill", "host", "graph",    "empty",
                                  "event wait", "event", "",     "",     "allocate", "free"};

}  // namespace

// --- graphs -------------------------------------------------------------------------------------

CUDART_EXPORT Error cudaGraphCreate(Graph** graph, unsigned flags) {
  return call(__func__, [&](Runtime& runtime) {
    require(graph != nullptr && flags == 0, "no place for the graph, or unknown flags");
    auto made = std::make_shared<Graph>();
    *graph = made.get();
    runtime.graphs().graphs[made.get()] = std::move(made);
  });
}

CUDART_EXPORT Error cudaGraphDestroy(Graph* graph) {
  return call(__func__, [&](Runtime& runtime) {
    GraphState& state = runtime.graphs();
    require(state.graphs.contains(graph), "there is no such graph, or it belongs to a node");
    require(!state.captures.into(graph), "a stream captures into this graph");
    state.graphs.erase(graph);
  });
}

CUDART_EXPORT Error cudaGraphClone(Graph** clone, Graph* graph) {
  return call(__func__, [&](Runtime& runtime) {
    require(clone != nullptr, "nowhere to put the graph");
    require(!checked(graph).has_memory_nodes(), "a graph with memory nodes cannot be cloned");
    const std::shared_ptr<Graph> made = graph->clone();
    *clone = made.get();
    runtime.graphs().graphs[made.get()] = made;
  });
}

CUDART_EXPORT Error cudaGraphNodeFindInClone(Node** found, Node* original, Graph* clone) {
  return call(__func__, [&](Runtime&) {
    require(found != nullptr, "nowhere to put the node");
    *found = checked(clone).clone_of(checked(original).number);
    require(*found != nullptr, "the graph has no clone of this node");
  });
}

CUDART_EXPORT Error cudaGraphGetNodes(Graph* graph, Node** place, std::size_t* count) {
  return call(__func__, [&](Runtime&) {
    std::vector<Node*> list;
    for (const auto& node : checked(graph).nodes) list.push_back(node.get());
    give(list, place, count);
  });
}

CUDART_EXPORT Error cudaGraphGetRootNodes(Graph* graph, Node** place, std::size_t* count) {
  return call(__func__, [&](Runtime&) {
    std::vector<Node*> list;
    for (const auto& node : checked(graph).nodes) {
      if (node->dependencies.empty()) list.push_back(node.get());
    }
    give(list, place, count);
  });
}

CUDART_EXPORT Error cudaGraphNodeGetType(Node* node, int* type) {
  return call(__func__, [&](Runtime&) {
    require(type != nullptr, "nowhere to put the type");
    *type = node_type(checked(node).work);
  });
}

CUDART_EXPORT Error cudaGraphDestroyNode(Node* node) {
  return call(__func__, [&](Runtime& runtime) {
    Graph& graph = *checked(node).graph;
    require(!graph.has_memory_nodes(), "nodes of a graph with memory nodes cannot be removed");
    require(!runtime.graphs().captures.into(&graph), "a stream captures into this graph");
    graph.remove(node);
  });
}

/// Writes the graph in the language of Graphviz.
CUDART_EXPORT Error cudaGraphDebugDotPrint(Graph* graph, const char* path, unsigned) {
  return call(__func__, [&](Runtime& runtime) {
    require(path != nullptr, "no file is named");
    std::ofstream file(path);
    file << "digraph graph_" << checked(graph).number << " {\n";
    for (const auto& node : graph->nodes) {
      std::string label = type_names[node_type(node->work)];
      if (const auto* work = std::get_if<KernelWork>(&node->work)) {
        label = runtime.kernel(work->launch.stub).name;
      }
      file << "  node_" << node->number << " [label=\"" << label << "\"];\n";
      for (const Edge& edge : node->dependencies) {
        file << "  node_" << edge.from->number << " -> node_" << node->number << ";\n";
      }
    }
    file << "}\n";
    require(file.flush().good(), "the file cannot be written", Error{304});
  });
}

// --- edges: CUDA 13 has the arguments of the second versions ------------------------------------

CUDART_EXPORT Error cudaGraphGetEdges_v2(Graph* graph, Node** from, Node** to, EdgeData* data,
                                         std::size_t* count) {
  return get_edges(__func__, graph, from, to, data, count);
}

CUDART_EXPORT Error cudaGraphGetEdges(Graph* graph, Node** from, Node** to, void* data_or_count,
                                      std::size_t* count) {
  if (abi_version() >= 13) {
    return get_edges(__func__, graph, from, to, static_cast<EdgeData*>(data_or_count), count);
  }
  return get_edges(__func__, graph, from, to, nullptr, static_cast<std::size_t*>(data_or_count));
}

CUDART_EXPORT Error cudaGraphNodeGetDependencies_v2(Node* node, Node** place, EdgeData* data,
                                                    std::size_t* count) {
  return get_dependencies(__func__, node, place, data, count);
}

CUDART_EXPORT Error cudaGraphNodeGetDependencies(Node* node, Node** place, void* data_or_count,
                                                 std::size_t* count) {
  if (abi_version() >= 13) {
    return get_dependencies(__func__, node, place, static_cast<EdgeData*>(data_or_count), count);
  }
  return get_dependencies(__func__, node, place, nullptr, static_cast<std::size_t*>(data_or_count));
}

CUDART_EXPORT Error cudaGraphNodeGetDependentNodes_v2(Node* node, Node** place, EdgeData* data,
                                                      std::size_t* count) {
  return get_dependents(__func__, node, place, data, count);
}

CUDART_EXPORT Error cudaGraphNodeGetDependentNodes(Node* node, Node** place, void* data_or_count,
                                                   std::size_t* count) {
  if (abi_version() >= 13) {
    return get_dependents(__func__, node, place, static_cast<EdgeData*>(data_or_count), count);
  }
  return get_dependents(__func__, node, place, nullptr, static_cast<std::size_t*>(data_or_count));
}

CUDART_EXPORT Error cudaGraphAddDependencies_v2(Graph* graph, Node* const* from, Node* const* to,
                                                const EdgeData* data, std::size_t count) {
  return add_dependencies(__func__, graph, from, to, data, count);
}

CUDART_EXPORT Error cudaGraphAddDependencies(Graph* graph, Node* const* from, Node* const* to,
                                             std::uintptr_t data_or_count, std::size_t count) {
  if (abi_version() >= 13) {
    return add_dependencies(__func__, graph, from, to,
                            reinterpret_cast<const EdgeData*>(data_or_count), count);
  }
  return add_dependencies(__func__, graph, from, to, nullptr, data_or_count);
}

CUDART_EXPORT Error cudaGraphRemoveDependencies_v2(Graph* graph, Node* const* from, Node* const* to,
                                                   const EdgeData* data, std::size_t count) {
  return remove_dependencies(__func__, graph, from, to, data, count);
}

CUDART_EXPORT Error cudaGraphRemoveDependencies(Graph* graph, Node* const* from, Node* const* to,
                                                std::uintptr_t data_or_count, std::size_t count) {
  if (abi_version() >= 13) {
    return remove_dependencies(__func__, graph, from, to,
                               reinterpret_cast<const EdgeData*>(data_or_count), count);
  }
  return remove_dependencies(__func__, graph, from, to, nullptr, data_or_count);
}

// --- executable graphs --------------------------------------------------------------------------

CUDART_EXPORT Error cudaGraphInstantiateWithFlags(Executable** executable, Graph* graph,
                                                  unsigned long long flags) {
  return call(__func__, [&](Runtime& runtime) {
    require(executable != nullptr, "nowhere to put the executable graph");
    *executable = instantiate(runtime, checked(graph), flags);
  });
}

/// Instead of flags, CUDA 11 has outputs for a node and an error text.
CUDART_EXPORT Error cudaGraphInstantiate(Executable** executable, Graph* graph,
                                         std::uintptr_t flags_or_node, char* text,
                                         std::size_t bytes) {
  if (abi_version() >= 12) {
    return cudaGraphInstantiateWithFlags(executable, graph, flags_or_node);
  }
  return call(__func__, [&](Runtime& runtime) {
    require(executable != nullptr, "nowhere to put the executable graph");
    if (text != nullptr && bytes > 0) *text = '\0';
    Node* bad = nullptr;
    try {
      *executable = instantiate(runtime, checked(graph), 0, &bad);
    } catch (const Failure& failure) {
      if (auto** const place = reinterpret_cast<Node**>(flags_or_node)) *place = bad;
      if (text != nullptr && bytes > 0) {
        text[std::string(failure.what()).copy(text, bytes - 1)] = '\0';
      }
      throw;
    }
  });
}

CUDART_EXPORT Error cudaGraphInstantiateWithParams(Executable** executable, Graph* graph,
                                                   InstantiateParameters* parameters) {
  return call(__func__, [&](Runtime& runtime) {
    require(executable != nullptr && parameters != nullptr, "a pointer is null");
    Node* bad = nullptr;
    parameters->error_node = nullptr;
    parameters->result = 1;
    try {
      *executable = instantiate(runtime, checked(graph), parameters->flags, &bad);
      parameters->result = 0;
    } catch (const Failure&) {
      parameters->error_node = bad;
      if (bad != nullptr) parameters->result = 2;  // a cycle
      throw;
    }
  });
}
CUDART_PER_THREAD(cudaGraphInstantiateWithParams_ptsz, cudaGraphInstantiateWithParams);

CUDART_EXPORT Error cudaGraphExecGetFlags(Executable* executable, unsigned long long* flags) {
  return call(__func__, [&](Runtime& runtime) {
    require(flags != nullptr, "nowhere to put the flags");
    *flags = checked(runtime, executable)->flags;
  });
}

CUDART_EXPORT Error cudaGraphExecDestroy(Executable* executable) {
  return call(__func__, [&](Runtime& runtime) {
    checked(runtime, executable);
    runtime.graphs().executables.erase(executable);
  });
}

CUDART_EXPORT Error cudaGraphUpload(Executable* executable, StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    checked(runtime, executable);
    capture_of(runtime, stream);
  });
}
CUDART_PER_THREAD(cudaGraphUpload_ptsz, cudaGraphUpload);

/// A launch into a capturing stream becomes a node with the graph as its child.
CUDART_EXPORT Error cudaGraphLaunch(Executable* executable, StreamHandle stream) {
  return call(__func__, [&](Runtime& runtime) {
    const auto found = checked(runtime, executable);
    if (capture_of(runtime, stream) == nullptr) return run(runtime, found, stream);
    require(!found->graph->has_memory_nodes(),
            "a graph with memory nodes cannot be the child of another", Error::not_supported);
    capture(runtime, stream, ChildWork{found->graph->clone()});
  });
}
CUDART_PER_THREAD(cudaGraphLaunch_ptsz, cudaGraphLaunch);

/// CUDA 11 has separate outputs for the node and the result.
CUDART_EXPORT Error cudaGraphExecUpdate(Executable* executable, Graph* graph, void* place,
                                        int* number) {
  UpdateResult result{};
  const Error error = update_executable(__func__, executable, graph, result);
  if (abi_version() >= 12) {
    if (place != nullptr) *static_cast<UpdateResult*>(place) = result;
  } else {
    if (place != nullptr) *static_cast<Node**>(place) = result.error_node;
    if (number != nullptr) *number = result.result;
  }
  return error;
}

// --- objects that live as long as a graph -------------------------------------------------------

CUDART_EXPORT Error cudaUserObjectCreate(UserObject** object, void* pointer, void (*destroy)(void*),
                                         unsigned references, unsigned flags) {
  return call(__func__, [&](Runtime&) {
    require(object != nullptr && destroy != nullptr, "a pointer is null");
    require(references > 0 && flags == 1,
            "an object needs a reference and the flag cudaUserObjectNoDestructorSync");
    *object = create_object(pointer, destroy, references);
  });
}

CUDART_EXPORT Error cudaUserObjectRetain(UserObject* object, unsigned count) {
  return call(__func__, [&](Runtime&) {
    require(count > 0, "the number of references is 0");
    checked(object).references += count;
  });
}

CUDART_EXPORT Error cudaUserObjectRelease(UserObject* object, unsigned count) {
  return call(__func__, [&](Runtime&) {
    require(count > 0, "the number of references is 0");
    release(&checked(object), count);
  });
}

CUDART_EXPORT Error cudaGraphRetainUserObject(Graph* graph, UserObject* object, unsigned count,
                                              unsigned flags) {
  return call(__func__, [&](Runtime&) {
    constexpr unsigned move = 1;
    require(count > 0 && flags <= move, "the number of references is 0, or unknown flags");
    checked(graph);
    require(flags != move || checked(object).references >= count,
            "more references are given to the graph than there are");
    if (flags != move) checked(object).references += count;
    graph->objects[object] += count;
  });
}

CUDART_EXPORT Error cudaGraphReleaseUserObject(Graph* graph, UserObject* object, unsigned count) {
  return call(__func__, [&](Runtime&) {
    const auto held = checked(graph).objects.find(object);
    require(count > 0 && held != graph->objects.end() && held->second >= count,
            "the graph has not so many references to this object");
    held->second -= count;
    if (held->second == 0) graph->objects.erase(held);
    release(object, count);
  });
}
