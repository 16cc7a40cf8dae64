// Distinct visitors of each page in a log of lines "URL <tab> address <tab> cookie", as two rounds
// of MapReduce: the first groups equal pairs of URL and address, the second groups the distinct
// pairs by URL and counts them. Keys are text of any length in one buffer; a hash table groups
// them. What each round gives is in the order in which keys first appear, whatever the order in
// which threads win slots of the table.

#define SCAN_BLOCK 256
#define EMPTY -1

// Map, first pass, one thread per line: the bytes of its key, "URL <tab> address".
extern "C" __global__ void count_key_bytes(int lines, const int* first_byte, const char* log,
                                           int* key_bytes) {
  const int line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= lines) return;
  const int first = first_byte[line];
  int end = first;
  for (int tabs = 0; tabs < 2; ++end) tabs += log[end] == '\t';
  key_bytes[line] = end - 1 - first;
}

// Map, second pass, one thread per line: copy its key to its place among all keys, and note how
// many bytes of it are the URL.
extern "C" __global__ void emit_keys(int lines, const int* first_byte, const char* log,
                                     const int* key_first, const int* key_bytes, char* keys,
                                     int* url_bytes) {
  const int line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= lines) return;
  const char* from = log + first_byte[line];
  char* to = keys + key_first[line];
  const int bytes = key_bytes[line];
  int url = bytes;
  for (int byte = 0; byte < bytes; ++byte) {
    const char letter = from[byte];
    if (letter == '\t') url = byte;
    to[byte] = letter;
  }
  url_bytes[line] = url;
}

// Sums of the values before each, within a thread block, and the total of each block.
extern "C" __global__ void scan_blocks(int count, const int* values, int* sums, int* totals) {
  __shared__ int partial[SCAN_BLOCK];
  const int at = blockIdx.x * SCAN_BLOCK + threadIdx.x;
  const int value = at < count ? values[at] : 0;
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int distance = 1; distance < SCAN_BLOCK; distance *= 2) {
    const int before = threadIdx.x >= distance ? partial[threadIdx.x - distance] : 0;
    __syncthreads();
    partial[threadIdx.x] += before;
    __syncthreads();
  }
  if (at < count) sums[at] = partial[threadIdx.x] - value;
  if (threadIdx.x == SCAN_BLOCK - 1) totals[blockIdx.x] = partial[threadIdx.x];
}

// Add to the sums within each block what all blocks before it hold.
extern "C" __global__ void add_totals(int count, const int* totals, int* sums) {
  const int at = blockIdx.x * SCAN_BLOCK + threadIdx.x;
  if (at < count) sums[at] += totals[blockIdx.x];
}

__device__ __forceinline__ bool same_text(const char* a, const char* b, int bytes) {
  for (int byte = 0; byte < bytes; ++byte)
    if (a[byte] != b[byte]) return false;
  return true;
}

// Group, one thread per key: hash its bytes, then look from the slot of the hash on for one that
// is free or has an equal key. A slot counts its keys and knows the lowest.
extern "C" __global__ void group(int count, const int* first, const int* bytes, const char* text,
                                 int mask, int* table, int* slots, int* lowest, int* sizes) {
  const int key = blockIdx.x * blockDim.x + threadIdx.x;
  if (key >= count) return;
  const char* own = text + first[key];
  const int own_bytes = bytes[key];
  unsigned hash = 2166136261u;
  for (int byte = 0; byte < own_bytes; ++byte) hash = (hash ^ (unsigned char)own[byte]) * 16777619u;
  int slot = (hash ^ hash >> 15) & mask;
  while (true) {
    const int other = atomicCAS(&table[slot], EMPTY, key);
    if (other == EMPTY) break;
    if (bytes[other] == own_bytes && same_text(own, text + first[other], own_bytes)) break;
    slot = (slot + 1) & mask;
  }
  slots[key] = slot;
  atomicMin(&lowest[slot], key);
  atomicAdd(&sizes[slot], 1);
}

// One thread per key: whether it is the first of its group.
extern "C" __global__ void mark_first(int count, const int* slots, const int* lowest, int* marks) {
  const int key = blockIdx.x * blockDim.x + threadIdx.x;
  if (key < count) marks[key] = lowest[slots[key]] == key;
}

// Reduce of the first round, one thread per pair: pass the distinct ones on, keyed by URL.
extern "C" __global__ void emit_distinct(int lines, const int* marks, const int* places,
                                         const int* key_first, const int* url_bytes, int* first,
                                         int* bytes, int* line_of) {
  const int line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= lines || !marks[line]) return;
  const int place = places[line];
  first[place] = key_first[line];
  bytes[place] = url_bytes[line];
  line_of[place] = line;
}

// Reduce of the second round, one thread per distinct pair: the first of each URL gives its line
// and the number of pairs with this URL.
extern "C" __global__ void emit_views(int count, const int* marks, const int* places,
                                      const int* slots, const int* sizes, const int* line_of,
                                      int* lines, int* views) {
  const int key = blockIdx.x * blockDim.x + threadIdx.x;
  if (key >= count || !marks[key]) return;
  const int place = places[key];
  lines[place] = line_of[key];
  views[place] = sizes[slots[key]];
}
