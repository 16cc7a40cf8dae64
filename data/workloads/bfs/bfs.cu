// Breadth-first search by levels, two kernels a level: expand a queue of frontier nodes into the
// status arrays of the nodes, then collect the nodes reached into the next queue.

// One thread per node of the frontier: mark its unvisited neighbours. Threads that reach the same
// neighbour write the same values.
extern "C" __global__ void expand(int frontier_size, const int* frontier, const int* first_edge,
                                  const int* edges, const unsigned char* visited,
                                  unsigned char* reached, int* cost) {
  const int slot = blockIdx.x * blockDim.x + threadIdx.x;
  if (slot >= frontier_size) return;
  const int node = frontier[slot];
  const int next_cost = cost[node] + 1;
  const int end = first_edge[node + 1];
  for (int edge = first_edge[node]; edge < end; ++edge) {
    const int neighbour = edges[edge];
    if (!visited[neighbour]) {
      cost[neighbour] = next_cost;
      reached[neighbour] = 1;
    }
  }
}

// One thread per node: append the nodes that this level reached to the next frontier. Their order
// in the queue is free; the costs do not depend on it.
extern "C" __global__ void collect(int nodes, unsigned char* reached, unsigned char* visited,
                                   int* frontier, int* frontier_size) {
  const int node = blockIdx.x * blockDim.x + threadIdx.x;
  if (node >= nodes || !reached[node]) return;
  reached[node] = 0;
  visited[node] = 1;
  frontier[atomicAdd(frontier_size, 1)] = node;
}
