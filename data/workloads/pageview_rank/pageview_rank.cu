// Pages by popularity, from a list of lines "URL <tab> views": map each line to its number of
// views, then sort. The sort moves line numbers and looks up the keys that it compares.

// Map, one thread per line: find the tab, and read the number behind it.
extern "C" __global__ void read_views(int lines, const int* first_byte, const char* list,
                                      int* url_bytes, int* views) {
  const int line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= lines) return;
  const int first = first_byte[line];
  int at = first;
  while (list[at] != '\t') ++at;
  url_bytes[line] = at - first;
  int number = 0;
  for (char digit = list[++at]; digit != '\n'; digit = list[++at])
    number = 10 * number + (digit - '0');
  views[line] = number;
}

// Whether line a ranks before line b: more views, or as many and further up in the list. Numbers
// past the end of the list fill it up to a power of two and come last.
__device__ __forceinline__ bool before(int a, int b, int lines, const int* views) {
  if (a >= lines || b >= lines) return a < b;
  const int views_a = views[a], views_b = views[b];
  return views_a != views_b ? views_a > views_b : a < b;
}

// A step of the bitonic sort, one thread per pair: elements `distance` apart, in runs of `size`
// that are sorted alternately up and down.
extern "C" __global__ void sort_step(int lines, int pairs, int size, int distance, const int* views,
                                     int* order) {
  const int pair = blockIdx.x * blockDim.x + threadIdx.x;
  if (pair >= pairs) return;
  const int low = 2 * pair - (pair & (distance - 1));
  const int high = low + distance;
  const int a = order[low], b = order[high];
  if (before(b, a, lines, views) == !(low & size)) {
    order[low] = b;
    order[high] = a;
  }
}

// One thread per rank: the views and the place of the page's URL in the list.
extern "C" __global__ void emit_ranked(int lines, const int* order, const int* first_byte,
                                       const int* url_bytes, const int* views, int* ranked_first,
                                       int* ranked_bytes, int* ranked_views) {
  const int rank = blockIdx.x * blockDim.x + threadIdx.x;
  if (rank >= lines) return;
  const int line = order[rank];
  ranked_first[rank] = first_byte[line];
  ranked_bytes[rank] = url_bytes[line];
  ranked_views[rank] = views[line];
}
