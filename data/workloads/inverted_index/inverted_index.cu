// Inverted index of the links in web pages: for each URL, the lines that link to it. Map finds the
// links of each line in two passes, count and emit; a bitonic sort by hash and text of the URL
// groups them; a last pass cuts the sorted links into one list per URL.

#define SCAN_BLOCK 256

// The first byte of the next URL, behind href=", or the end of the line.
__device__ __forceinline__ int find_url(const char* pages, int first, int end) {
  for (int at = first + 5; at < end; ++at)
    if (pages[at] == '"' && pages[at - 1] == '=' && pages[at - 2] == 'f' && pages[at - 3] == 'e' &&
        pages[at - 4] == 'r' && pages[at - 5] == 'h')
      return at + 1;
  return end;
}

// Map, first pass, one thread per line: its links.
extern "C" __global__ void count_links(int lines, const int* first_byte, const char* pages,
                                       int* links) {
  const int line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= lines) return;
  const int end = first_byte[line + 1];
  int found = 0;
  for (int at = find_url(pages, first_byte[line], end); at < end;
       at = find_url(pages, at + 1, end)) {
    while (at < end && pages[at] != '"') ++at;
    ++found;
  }
  links[line] = found;
}

// Map, second pass, one thread per line: hash and place of the URL of each link.
extern "C" __global__ void emit_links(int lines, const int* first_byte, const char* pages,
                                      const int* first_link, unsigned* hashes, int* url_first,
                                      int* url_bytes, int* line_of) {
  const int line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= lines) return;
  const int end = first_byte[line + 1];
  int link = first_link[line];
  for (int at = find_url(pages, first_byte[line], end); at < end;
       at = find_url(pages, at + 1, end)) {
    const int first = at;
    unsigned hash = 2166136261u;
    for (; at < end && pages[at] != '"'; ++at) hash = (hash ^ (unsigned char)pages[at]) * 16777619u;
    hashes[link] = hash;
    url_first[link] = first;
    url_bytes[link] = at - first;
    line_of[link] = line;
    ++link;
  }
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

// Compare the URLs of two links: by hash, then by length, then byte by byte.
__device__ __forceinline__ int compare(int a, int b, const unsigned* hashes, const int* url_first,
                                       const int* url_bytes, const char* pages) {
  const unsigned hash_a = hashes[a], hash_b = hashes[b];
  if (hash_a != hash_b) return hash_a < hash_b ? -1 : 1;
  const int bytes = url_bytes[a];
  if (bytes != url_bytes[b]) return bytes - url_bytes[b];
  const char* text_a = pages + url_first[a];
  const char* text_b = pages + url_first[b];
  for (int byte = 0; byte < bytes; ++byte)
    if (text_a[byte] != text_b[byte]) return text_a[byte] - text_b[byte];
  return 0;
}

// A step of the bitonic sort, one thread per pair: elements `distance` apart, in runs of `size`
// that are sorted alternately up and down. Links of one URL stay in the order of the pages;
// numbers past the last link fill the order up to a power of two and come last.
extern "C" __global__ void sort_step(int links, int pairs, int size, int distance,
                                     const unsigned* hashes, const int* url_first,
                                     const int* url_bytes, const char* pages, int* order) {
  const int pair = blockIdx.x * blockDim.x + threadIdx.x;
  if (pair >= pairs) return;
  const int low = 2 * pair - (pair & (distance - 1));
  const int high = low + distance;
  const int a = order[low], b = order[high];
  int difference = 0;
  if (a < links && b < links) difference = compare(a, b, hashes, url_first, url_bytes, pages);
  if (difference == 0) difference = a - b;
  if ((difference > 0) == !(low & size)) {
    order[low] = b;
    order[high] = a;
  }
}

// One thread per sorted link: whether a list starts with it.
extern "C" __global__ void mark_lists(int links, const int* order, const unsigned* hashes,
                                      const int* url_first, const int* url_bytes, const char* pages,
                                      int* marks) {
  const int place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= links) return;
  marks[place] = place == 0 ||
                 compare(order[place - 1], order[place], hashes, url_first, url_bytes, pages) != 0;
}

// One thread per sorted link: its line into the list of its URL; the first one starts the list.
extern "C" __global__ void emit_lists(int links, const int* order, const int* marks,
                                      const int* list_of, const int* line_of, int* list_first,
                                      int* listed) {
  const int place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= links) return;
  listed[place] = line_of[order[place]];
  if (marks[place]) list_first[list_of[place]] = place;
}
