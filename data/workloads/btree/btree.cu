// Searches in a B+ tree: a block per query, a thread per key of a node. Keys and children of a node
// are rows of ORDER values; unused keys are the largest integer, and the first key of an inner node
// the smallest. Leaves hold record numbers for children, in ascending order.

#define ORDER 256
#define LARGEST 0x7fffffff

// Descends from the root to the leaf whose range the key is in, and leaves that node's keys in
// `keys`.
__device__ __forceinline__ int find_leaf(const int* __restrict__ tree_keys,
                                         const int* __restrict__ children, int inner_levels,
                                         int key, int* keys, int* next) {
  const int slot = threadIdx.x;
  int node = 0;
  for (int level = 0; level < inner_levels; ++level) {
    keys[slot] = tree_keys[node * ORDER + slot];
    __syncthreads();
    if (keys[slot] <= key && key < keys[slot + 1]) *next = children[node * ORDER + slot];
    __syncthreads();
    node = *next;
  }
  keys[slot] = tree_keys[node * ORDER + slot];
  __syncthreads();
  return node;
}

// The value of the record that has the key, if any.
extern "C" __global__ void find_keys(const int* __restrict__ tree_keys,
                                     const int* __restrict__ children,
                                     const int* __restrict__ values,
                                     const int* __restrict__ queries, int inner_levels,
                                     int* __restrict__ answers) {
  __shared__ int keys[ORDER + 1];
  __shared__ int next;
  const int slot = threadIdx.x;
  if (slot == 0) keys[ORDER] = LARGEST;
  const int key = queries[blockIdx.x];
  const int leaf = find_leaf(tree_keys, children, inner_levels, key, keys, &next);
  if (keys[slot] == key) answers[blockIdx.x] = values[children[leaf * ORDER + slot]];
}

// The first record with a key of at least `from`, and how many up to and including `to` there are.
extern "C" __global__ void find_ranges(const int* __restrict__ tree_keys,
                                       const int* __restrict__ children,
                                       const int* __restrict__ from, const int* __restrict__ to,
                                       int inner_levels, int* __restrict__ first,
                                       int* __restrict__ length) {
  __shared__ int keys[ORDER + 1];
  __shared__ int next;
  __shared__ int begin;
  __shared__ int end;
  const int slot = threadIdx.x;
  if (slot == 0) keys[ORDER] = LARGEST;

  // Records before a bound: those of the leaf's predecessors and of its smaller keys.
  const int low = from[blockIdx.x];
  int leaf = find_leaf(tree_keys, children, inner_levels, low, keys, &next);
  if (slot == 0 && keys[0] >= low) begin = children[leaf * ORDER];
  if (keys[slot] < low && low <= keys[slot + 1]) begin = children[leaf * ORDER + slot] + 1;
  __syncthreads();

  const int high = to[blockIdx.x];
  leaf = find_leaf(tree_keys, children, inner_levels, high, keys, &next);
  if (slot == 0 && keys[0] > high) end = children[leaf * ORDER];
  if (keys[slot] <= high && high < keys[slot + 1]) end = children[leaf * ORDER + slot] + 1;
  __syncthreads();

  if (slot == 0) {
    first[blockIdx.x] = begin;
    length[blockIdx.x] = end - begin;
  }
}
