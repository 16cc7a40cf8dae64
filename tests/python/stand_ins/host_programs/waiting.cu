// Blocks of plain launches that wait for each other, a barrier in a loop, and clocks. Its argument
// names a scenario.

#include <cstdio>
#include <cstring>

constexpr int blocks = 20;
constexpr int threads = 96;

/// Arrivals of all blocks, and what they wait for.
struct Barrier {
  unsigned count;
  volatile unsigned sense;
};

__device__ void meet(Barrier* barrier) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned before = barrier->sense;
    if (atomicAdd(&barrier->count, 1) == gridDim.x - 1) {
      barrier->count = 0;
      __threadfence();
      barrier->sense = before + 1;
    } else {
      while (barrier->sense == before) {
      }
    }
  }
  __syncthreads();
}

__device__ Barrier grid_barrier;

/// Thread i adds what thread i + 1 has, over and over.
__global__ void add_neighbours(volatile unsigned* values, int rounds) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned next = (i + 1) % (gridDim.x * blockDim.x);
  for (int round = 0; round < rounds; ++round) {
    const unsigned sum = values[i] + values[next];
    meet(&grid_barrier);
    values[i] = sum;
    meet(&grid_barrier);
  }
}

void barrier() {
  constexpr int count = blocks * threads;
  static unsigned expected[count], values[count];
  for (int i = 0; i < count; ++i) values[i] = 7 * i + 1;
  unsigned* device;
  cudaMalloc(&device, sizeof values);
  cudaMemcpy(device, values, sizeof values, cudaMemcpyHostToDevice);
  add_neighbours<<<blocks, threads>>>(device, 5);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < count; ++i) expected[i] = values[i] + values[(i + 1) % count];
    memcpy(values, expected, sizeof values);
  }
  cudaMemcpy(values, device, sizeof values, cudaMemcpyDeviceToHost);
  printf("%d\n", memcmp(values, expected, sizeof values));
}

struct TicketLock {
  unsigned next;
  volatile unsigned serving;
};

/// A lock that blocks hold until the next but one has come: none of them ends by itself.
__global__ void take_turns(TicketLock* lock, unsigned* order, volatile unsigned* arrived) {
  if (threadIdx.x != 0) return;
  atomicAdd(const_cast<unsigned*>(arrived), 1);
  const unsigned ticket = atomicAdd(&lock->next, 1);
  while (lock->serving != ticket) __nanosleep(50);
  while (*arrived < min(ticket + 3, gridDim.x)) {
  }
  order[ticket] = blockIdx.x;
  __threadfence();
  lock->serving = ticket + 1;
}

void ticket() {
  unsigned* memory;
  cudaMalloc(&memory, 4096);
  cudaMemset(memory, 0, 4096);
  take_turns<<<blocks, 32>>>(reinterpret_cast<TicketLock*>(memory), memory + 3, memory + 2);
  unsigned result[blocks + 3];
  cudaMemcpy(result, memory, sizeof result, cudaMemcpyDeviceToHost);
  unsigned sum = 0;
  for (int i = 0; i < blocks; ++i) sum += result[3 + i];
  printf("%u %u %u\n", result[0], result[1], sum);
}

/// A ring of 8 slots between the first half of the blocks, which take, and the second, which give.
__global__ void pass_on(unsigned* counts, unsigned* turns, unsigned* slots, unsigned* sum) {
  if (threadIdx.x != 0) return;
  const bool gives = blockIdx.x >= gridDim.x / 2;
  for (int i = 0; i < 10; ++i) {
    const unsigned item = atomicAdd(&counts[gives], 1);
    const unsigned turn = item / 8 * 2 + !gives;
    while (atomicAdd(&turns[item % 8], 0) != turn) __threadfence();
    if (gives) {
      slots[item % 8] = item;
    } else {
      atomicAdd(sum, slots[item % 8]);
    }
    __threadfence();
    atomicAdd(&turns[item % 8], 1);
  }
}

void queue() {
  unsigned* memory;
  cudaMalloc(&memory, 4096);
  cudaMemset(memory, 0, 4096);
  pass_on<<<blocks, 32>>>(memory, memory + 2, memory + 10, memory + 18);
  unsigned sum;
  cudaMemcpy(&sum, memory + 18, 4, cudaMemcpyDeviceToHost);
  printf("%u\n", sum);  // of 0 to 99
}

__global__ void wait(long long ticks, long long* waited) {
  const long long begin = clock64();
  long long now;
  do {
    now = clock64();
  } while (now - begin < ticks);
  if (threadIdx.x == 0) waited[blockIdx.x] = now - begin;
}

void clocks() {
  long long* device;
  cudaMalloc(&device, 8 * blocks);
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  cudaEventRecord(begin);
  wait<<<blocks, threads>>>(50'000'000, device);
  cudaEventRecord(end);
  cudaEventSynchronize(end);
  float milliseconds;
  cudaEventElapsedTime(&milliseconds, begin, end);
  long long waited[blocks];
  cudaMemcpy(waited, device, sizeof waited, cudaMemcpyDeviceToHost);
  bool all_long = true;
  for (long long each : waited) all_long &= each >= 50'000'000 && each < 60'000'000;
  printf("%d %d\n", all_long, milliseconds >= 50 * blocks);
}

/// Each thread goes round its own number of times, over a barrier.
__global__ void leave_early(int* out) {
  __shared__ int board[threads];
  board[threadIdx.x] = 0;
  for (int i = 0; i < threadIdx.x % 5; ++i) {
    board[threadIdx.x] += 10;
    __syncthreads();
  }
  out[threadIdx.x] = board[threadIdx.x];
}

void loop() {
  int* device;
  int out[threads];
  cudaMalloc(&device, sizeof out);
  leave_early<<<1, threads>>>(device);
  cudaMemcpy(out, device, sizeof out, cudaMemcpyDeviceToHost);
  int bad = 0;
  for (int i = 0; i < threads; ++i) bad += out[i] != i % 5 * 10;
  printf("%d\n", bad);
}

/// All blocks wait for the last one, and the GPU does not hold that many.
__global__ void wait_for_last(volatile int* flag) {
  if (blockIdx.x == gridDim.x - 1) *flag = 1;
  while (*flag == 0) {
  }
}

void crowd(int count) {
  int* flag;
  cudaMalloc(&flag, 4);
  cudaMemset(flag, 0, 4);
  wait_for_last<<<count, 1024>>>(flag);
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}

int main(int, char** arguments) {
  const auto is = [&](const char* name) { return strcmp(arguments[1], name) == 0; };
  if (is("barrier")) barrier();
  if (is("ticket")) ticket();
  if (is("queue")) queue();
  if (is("clocks")) clocks();
  if (is("loop")) loop();
  if (is("room")) crowd(4);
  if (is("crowd")) crowd(5);
}
