// Measures what a GPU description of warpstack needs.
//
//     nvcc -arch=native calibrate.cu -o calibrate && ./calibrate > run.txt
//     warpstack calibrate run.txt --base h100-pcie --name my-gpu -o my-gpu.yaml
//
// It needs nothing but CUDA (11 or later), runs on one GPU since Maxwell, on which nothing else
// should run, and takes some seconds. `./calibrate quick` does less of everything, for a trial
// where there is no GPU. Standard output has one measurement per line,
//
//     KEY [PARAMETER=VALUE]... VALUE UNIT
//
// raw samples, from which `warpstack calibrate` computes slopes and knees; the last line counts the
// lines, so that a run that was cut off can be told. Two times are taken: "cycles", from the first
// start to the last end of a block's warps by the SM's own counter, and "ns", between two events
// around a launch. Both contain a constant; only differences between runs of more and less work are
// used.

// --- kernels
// --------------------------------------------------------------------------------------

namespace {

constexpr int warp_threads = 32;

// Writes a warp's start and end, the warps of all blocks in order.
__device__ __forceinline__ void record(long long* clocks, long long start, long long end) {
  if (threadIdx.x % warp_threads != 0) return;
  const unsigned warps = (blockDim.x + warp_threads - 1) / warp_threads;
  const unsigned warp = blockIdx.x * warps + threadIdx.x / warp_threads;
  clocks[2 * warp] = start;
  clocks[2 * warp + 1] = end;
}

}  // namespace

// Chains of LENGTH dependent instructions in a loop, WIDTH of them in turn: one for a latency,
// eight for a rate, so that a single warp can be enough and it does not matter which warp a
// scheduler prefers. Two lengths tell the instructions from the loop. INSTRUCTIONS are how many one
// STEP has. The inputs are arguments and differ by thread, so that the compiler can fold nothing
// nor use the uniform datapath, and the results are stored if `iterations` is negative, which never
// happens.
#define CHAIN(NAME, TYPE, INSTRUCTIONS, WIDTH, LENGTH, STEP)                                \
  extern "C" __global__ void NAME##_##LENGTH(long long* clocks, TYPE* sink, TYPE a, TYPE b, \
                                             int iterations) {                              \
    TYPE xs[WIDTH];                                                                         \
    unsigned ys[WIDTH];                                                                     \
    _Pragma("unroll") for (int k = 0; k < WIDTH; ++k) {                                     \
      xs[k] = a + static_cast<TYPE>(threadIdx.x + k);                                       \
      ys[k] = threadIdx.x + k;                                                              \
    }                                                                                       \
    const long long start = clock64();                                                      \
    _Pragma("unroll 1") for (int i = 0; i < iterations; ++i) {                              \
      _Pragma("unroll") for (int k = 0; k < LENGTH / INSTRUCTIONS; ++k) {                   \
        TYPE& x = xs[k % WIDTH];                                                            \
        unsigned& y = ys[k % WIDTH];                                                        \
        const bool is_odd = k / WIDTH % 2 != 0;                                             \
        STEP;                                                                               \
        (void)x, (void)y, (void)is_odd;                                                     \
      }                                                                                     \
    }                                                                                       \
    record(clocks, start, clock64());                                                       \
    if (iterations >= 0) return;                                                            \
    _Pragma("unroll") for (int k = 0; k < WIDTH; ++k) {                                     \
      sink[k * blockDim.x + threadIdx.x] = xs[k] + static_cast<TYPE>(ys[k]);                \
    }                                                                                       \
  }
#define LATENCY(NAME, TYPE, INSTRUCTIONS, STEP) \
  CHAIN(NAME, TYPE, INSTRUCTIONS, 1, 64, STEP)  \
  CHAIN(NAME, TYPE, INSTRUCTIONS, 1, 192, STEP)
#define LATENCY_AND_RATE(NAME, TYPE, INSTRUCTIONS, STEP) \
  LATENCY(NAME, TYPE, INSTRUCTIONS, STEP)                \
  CHAIN(NAME##_wide, TYPE, INSTRUCTIONS, 8, 64, STEP)    \
  CHAIN(NAME##_wide, TYPE, INSTRUCTIONS, 8, 192, STEP)

// An addition and an exclusive or in turn: two of one kind would be made one instruction of three
// operands.
#define ADD_OR_XOR(WORD, OPERAND)                                    \
  if (is_odd) {                                                      \
    asm volatile("xor.b32 %0, %0, %1;" : "+r"(WORD) : "r"(OPERAND)); \
  } else {                                                           \
    asm volatile("add.u32 %0, %0, %1;" : "+r"(WORD) : "r"(OPERAND)); \
  }
LATENCY_AND_RATE(integer, unsigned, 1, ADD_OR_XOR(x, a))
LATENCY_AND_RATE(fp32, float, 1,
                 asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(a), "f"(b)))
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 530
LATENCY_AND_RATE(fp16, unsigned, 1,
                 asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b)))
#else  // the host has these names, too, and does not call them there
LATENCY_AND_RATE(fp16, unsigned, 1, asm volatile("add.u32 %0, %0, %1;" : "+r"(x) : "r"(a)))
#endif
LATENCY_AND_RATE(fp64, double, 1,
                 asm volatile("fma.rn.f64 %0, %0, %1, %2;" : "+d"(x) : "d"(a), "d"(b)))
LATENCY_AND_RATE(sfu, float, 1, asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x)))
// Integer to single precision and back, in turn.
#define CONVERT                                        \
  if (is_odd) {                                        \
    asm volatile("cvt.rzi.s32.f32 %0, %0;" : "+r"(x)); \
  } else {                                             \
    asm volatile("cvt.rn.f32.s32 %0, %0;" : "+r"(x));  \
  }
LATENCY_AND_RATE(conversion, unsigned, 1, CONVERT)
LATENCY(shuffle, unsigned, 1,
        asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;" : "+r"(x)))
LATENCY(barrier, unsigned, 1, asm volatile("bar.sync 0;" : : : "memory"))
// Two kinds of chains for different units, in turn: what the schedulers can issue.
#define FP32_AND_INTEGER                                                 \
  asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(a), "f"(b)); \
  ADD_OR_XOR(y, iterations)
CHAIN(issue_wide, float, 2, 8, 64, FP32_AND_INTEGER)
CHAIN(issue_wide, float, 2, 8, 192, FP32_AND_INTEGER)

// Every word points at itself, so that lanes do not conflict.
extern "C" __global__ void chase_shared(long long* clocks, unsigned* sink, int steps) {
  __shared__ unsigned words[warp_threads];
  unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(&words[threadIdx.x]));
  words[threadIdx.x] = place;
  __syncthreads();
  const long long start = clock64();
#pragma unroll 8
  for (int i = 0; i < steps; ++i) {
    asm volatile("ld.volatile.shared.u32 %0, [%0];" : "+r"(place) : : "memory");
  }
  record(clocks, start, clock64());
  if (steps < 0) sink[threadIdx.x] = place;
}

// A place in constant memory that the host lets point at itself; `where_constant` says where it is.
__constant__ unsigned long long constant_place;

extern "C" __global__ void where_constant(unsigned long long* place) {
  asm volatile("mov.u64 %0, constant_place;" : "=l"(*place) : "l"(constant_place));
}

extern "C" __global__ void chase_constant(long long* clocks, unsigned long long* sink, int steps) {
  unsigned long long place = sink[0];
  const long long start = clock64();
#pragma unroll 8
  for (int i = 0; i < steps; ++i) asm volatile("ld.const.u64 %0, [%0];" : "+l"(place));
  record(clocks, start, clock64());
  if (steps < 0) sink[threadIdx.x] = place;
}

// Makes `count` places, `stride` bytes apart, point at each other in one ring: from each to the one
// `step` further on, which has no divisor in common with `count`.
extern "C" __global__ void ring(char* data, unsigned count, unsigned stride, unsigned step) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const unsigned next = (i + static_cast<unsigned long long>(step)) % count;
  *reinterpret_cast<char**>(data + static_cast<size_t>(i) * stride) =
      data + static_cast<size_t>(next) * stride;
}

#define CHASE(NAME, CACHES)                                                          \
  extern "C" __global__ void NAME(long long* clocks, unsigned long long* sink,       \
                                  unsigned long long place, int steps) {             \
    const long long start = clock64();                                               \
    _Pragma("unroll 8") for (int i = 0; i < steps; ++i) {                            \
      asm volatile("ld.global." CACHES ".u64 %0, [%0];" : "+l"(place) : : "memory"); \
    }                                                                                \
    record(clocks, start, clock64());                                                \
    if (steps < 0) *sink = place;                                                    \
  }
CHASE(chase_ca, "ca")  // cached in L1 and L2
CHASE(chase_cg, "cg")  // cached in L2 alone

// One warp asks for `lines` lines at once, at most 32 x 32, and waits for all of them, in `rounds`
// of new lines.
extern "C" __global__ void misses(long long* clocks, unsigned* sink, const char* data,
                                  unsigned lines, int rounds) {
  constexpr int most = 32;
  constexpr int line_bytes = 128;
  const char* place = data + threadIdx.x * line_bytes;
  unsigned sum = 0;
  const long long start = clock64();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    unsigned word[most];
#pragma unroll
    for (int k = 0; k < most; ++k) {
      word[k] = 0;
      asm volatile("{ .reg .pred p; setp.lt.u32 p, %2, %3; @p ld.global.ca.u32 %0, [%1]; }"
                   : "+r"(word[k])
                   : "l"(place + k * warp_threads * line_bytes),
                     "r"(k * warp_threads + threadIdx.x), "r"(lines)
                   : "memory");
    }
#pragma unroll
    for (int k = 0; k < most; ++k) sum += word[k];
    // The next round begins when this one has all its data: the sum is never that large.
    place += most * warp_threads * line_bytes + (sum == 0xffffffffu ? 1 : 0);
  }
  record(clocks, start, clock64());
  if (rounds < 0) sink[threadIdx.x] = sum;
}

// All threads together read `count` times 16 bytes, `passes` times, from L2 or DRAM.
extern "C" __global__ void stream(const char* data, unsigned* sink, unsigned count, int passes) {
  constexpr int at_once = 4;
  const unsigned threads = gridDim.x * blockDim.x;
  unsigned sum = 0;
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += at_once * threads) {
      unsigned word[at_once][4];
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        word[k][0] = word[k][1] = word[k][2] = word[k][3] = 0;
        const unsigned item = i + k * threads;
        asm volatile(
            "{ .reg .pred p; setp.lt.u32 p, %5, %6; @p ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4]; "
            "}"
            : "+r"(word[k][0]), "+r"(word[k][1]), "+r"(word[k][2]), "+r"(word[k][3])
            : "l"(data + static_cast<size_t>(item) * 16), "r"(item), "r"(count)
            : "memory");
      }
#pragma unroll
      for (int k = 0; k < at_once; ++k) sum ^= word[k][0] ^ word[k][1] ^ word[k][2] ^ word[k][3];
    }
  }
  if (passes < 0) sink[threadIdx.x] = sum;
}

// Every warp loads 32 times per iteration from L1: a line as it is (`lines` = 1), or a word of each
// of several lines, all in banks and as evenly as possible in sectors of their own. Lanes beyond
// them load the word of the last one.
extern "C" __global__ void loads(long long* clocks, unsigned* sink, const char* data,
                                 unsigned lines, int iterations) {
  constexpr int at_once = 32;
  constexpr int line_bytes = 128;
  const unsigned lane = threadIdx.x % warp_threads;
  const unsigned own = lane < lines ? lane : lines - 1;
  const char* place =
      data + (lines == 1 ? lane * 4 : own * line_bytes + own % 4 * 32 + own / 4 * 4);
  unsigned sum = 0;
  const long long start = clock64();
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
    unsigned word[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      asm volatile("ld.global.ca.u32 %0, [%1];"
                   : "=r"(word[k])
                   : "l"(place + k * line_bytes)
                   : "memory");
    }
#pragma unroll
    for (int k = 0; k < at_once; ++k) sum ^= word[k];
    // The sum is never that large; the compiler cannot know, and loads anew.
    place += sum == 0xffffffffu ? 4 : 0;
  }
  record(clocks, start, clock64());
  if (iterations < 0) sink[threadIdx.x] = sum;
}

// The same from shared memory: `passes` lanes, a power of two, meet in each bank.
extern "C" __global__ void shared_loads(long long* clocks, unsigned* sink, unsigned passes,
                                        int iterations) {
  constexpr int at_once = 32;
  constexpr int most_passes = 32;
  __shared__ unsigned words[warp_threads * most_passes];
  for (unsigned i = threadIdx.x; i < warp_threads * most_passes; i += blockDim.x) words[i] = i;
  __syncthreads();
  const unsigned lane = threadIdx.x % warp_threads;
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(&words[lane * passes]));
  unsigned sum = 0;
  const long long start = clock64();
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
    unsigned word[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(word[k]) : "r"(place) : "memory");
    }
#pragma unroll
    for (int k = 0; k < at_once; ++k) sum ^= word[k];
  }
  record(clocks, start, clock64());
  if (iterations < 0) sink[threadIdx.x] = sum;
}

// A chain, and a store at its end or none.
extern "C" __global__ void turnover(float* sink, int iterations, int stores) {
  constexpr int length = 64;
  constexpr int blocks = 256;  // with places of their own, all of which L2 holds
  auto x = static_cast<float>(threadIdx.x);
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int k = 0; k < length; ++k) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));
  }
  // The same instructions in both.
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p st.global.f32 [%0], %1; }"
               :
               : "l"(sink + blockIdx.x % blocks * blockDim.x + threadIdx.x), "f"(x), "r"(stores)
               : "memory");
}

// All threads together write `sectors` sectors, of a line each, `passes` times: all their bytes, or
// one word of each.
extern "C" __global__ void stores(char* data, unsigned sectors, int passes, int whole) {
  constexpr unsigned apart = 160;  // another sector of each line, so that they share no bank of L1
  const unsigned threads = gridDim.x * blockDim.x;
  const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    if (whole != 0) {  // by two lanes
#pragma unroll 1
      for (unsigned i = first; i < 2 * sectors; i += threads) {
        char* place = data + static_cast<size_t>(i / 2) * apart + i % 2 * 16;
        asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};"
                     :
                     : "l"(place), "r"(pass)
                     : "memory");
      }
    } else {
#pragma unroll 1
      for (unsigned i = first; i < sectors; i += threads) {
        char* place = data + static_cast<size_t>(i) * apart;
        asm volatile("st.global.u32 [%0], %1;" : : "l"(place), "r"(pass) : "memory");
      }
    }
  }
}

// All threads together write `count` times 16 bytes once.
extern "C" __global__ void fill(char* data, unsigned count) {
  const unsigned threads = gridDim.x * blockDim.x;
#pragma unroll 1
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
    asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};"
                 :
                 : "l"(data + static_cast<size_t>(i) * 16), "r"(0)
                 : "memory");
  }
}

// All threads together add to `count` words, `spread` bytes apart (0: to one), `passes` times, or
// store to them, which takes the same of everything on the way to L2.
extern "C" __global__ void reductions(char* data, unsigned count, unsigned spread, int passes,
                                      int adds) {
  const unsigned threads = gridDim.x * blockDim.x;
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
      asm volatile(
          "{ .reg .pred p; setp.ne.s32 p, %1, 0; @p red.global.add.u32 [%0], 1; "
          "@!p st.global.u32 [%0], 1; }"
          :
          : "l"(data + static_cast<size_t>(i) * spread), "r"(adds)
          : "memory");
    }
  }
}

// An atomic, LENGTH dependent instructions that do not need its result, and one that needs both.
#define BESIDE_ATOMIC(LENGTH)                                                                    \
  extern "C" __global__ void beside_atomic_##LENGTH(long long* clocks, unsigned* words, float a, \
                                                    int iterations) {                            \
    auto x = static_cast<float>(threadIdx.x);                                                    \
    unsigned* place = words;                                                                     \
    const long long start = clock64();                                                           \
    _Pragma("unroll 1") for (int i = 0; i < iterations; ++i) {                                   \
      unsigned old;                                                                              \
      asm volatile("atom.global.add.u32 %0, [%1], 0;" : "=r"(old) : "l"(place) : "memory");      \
      _Pragma("unroll") for (int k = 0; k < LENGTH; ++k) {                                       \
        asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(a));                           \
      }                                                                                          \
      place += (old ^ __float_as_uint(x)) == 0xffffffffu ? 1 : 0; /* it never is */              \
    }                                                                                            \
    record(clocks, start, clock64());                                                            \
    if (iterations < 0) *place = __float_as_uint(x);                                             \
  }
BESIDE_ATOMIC(8)
BESIDE_ATOMIC(24)

// `parts` times 1024 dependent instructions in a row, of at most 10, without a jump back before the
// end of them: more than an instruction cache holds.
#define FOUR(TEXT) TEXT TEXT TEXT TEXT
#define STRAIGHT FOUR(FOUR(FOUR(FOUR(FOUR("mad.lo.u32 %0, %0, %1, %2;\n")))))
extern "C" __global__ void straight(long long* clocks, unsigned* sink, unsigned a, unsigned b,
                                    int parts, int iterations) {
  constexpr int most_parts = 10;
  unsigned x = threadIdx.x;
  const long long start = clock64();
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int part = 0; part < most_parts; ++part) {
      if (part >= parts) break;
      asm volatile(STRAIGHT : "+r"(x) : "r"(a), "r"(b));
    }
  }
  record(clocks, start, clock64());
  if (iterations < 0) sink[threadIdx.x] = x;
}

extern "C" __global__ void nothing() {}

// When each warp starts.
extern "C" __global__ void starts(long long* clocks) {
  const long long start = clock64();
  record(clocks, start, start);
}

// Which SM each block runs on.
extern "C" __global__ void where(unsigned* sm) {
  unsigned number;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
  if (threadIdx.x == 0) sm[blockIdx.x] = number;
}

// --- host
// -----------------------------------------------------------------------------------------

#ifndef __CUDACC_RTC__  // NVRTC compiles the kernels alone

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

#define CHECK(CALL) check((CALL), #CALL, __LINE__)

void check(cudaError_t status, const char* call, int line) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "calibrate: line %d: %s: %s (%s)\n", line, call, cudaGetErrorString(status),
               cudaGetErrorName(status));
  std::exit(1);
}

unsigned common_divisor(unsigned a, unsigned b) { return b == 0 ? a : common_divisor(b, a % b); }

int num_lines = 0;

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void emit(const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::vprintf(format, values);
  va_end(values);
  std::putchar('\n');
  std::fflush(stdout);  // what was measured is there if a later part fails
  ++num_lines;
}

// Device memory of one type.
template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t count) : count_(count) {
    CHECK(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)));
    CHECK(cudaMemset(data_, 0, count * sizeof(T)));
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* get() const { return data_; }
  std::vector<T> read(size_t count) const {
    std::vector<T> values(std::min(count, count_));
    CHECK(cudaMemcpy(values.data(), data_, values.size() * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

struct Device {
  int sms = 0;
  int threads_per_sm = 0;
  int l2_bytes = 0;
};

class Calibration {
 public:
  Calibration(const Device& device, bool quick)
      : device_(device),
        quick_(quick),
        repeats_(quick ? 1 : 5),
        clocks_(2 * most_warps),
        sink_(4096) {
    CHECK(cudaEventCreate(&begin_));
    CHECK(cudaEventCreate(&end_));
  }
  ~Calibration() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Calibration(const Calibration&) = delete;
  Calibration& operator=(const Calibration&) = delete;

  void warm_up();
  void clock();
  void chains();
  void near_memories();
  void l1();
  void l2_and_dram_latency();
  void bandwidth();
  void misses_in_flight();
  void memory_instructions();
  void atomics();
  void l2_writes();
  void l2_contents();
  void launch();
  void dispatch();
  void ends_of_blocks();
  void straight_code();
  void map();

 private:
  static constexpr size_t most_warps = 1 << 16;
  static constexpr int shared_bytes = 48 << 10;  // of blocks of which few are resident

  // Nanoseconds between two events around what `work` launches. `ahead` iterations of a chain run
  // before, so that all launches of short kernels wait in the queue when the first one begins.
  template <typename Work>
  double nanoseconds(Work work, int ahead = 0) {
    if (ahead > 0) {
      fp32_64<<<1, warp_threads>>>(clocks_.get(), sink<float>(), 0.5f, 0.25f, ahead);
      CHECK(cudaGetLastError());
    }
    CHECK(cudaEventRecord(begin_));
    work();
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(end_));
    CHECK(cudaEventSynchronize(end_));
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return milliseconds * 1e6;
  }

  // Cycles of the first block of what `work` launches, which has so many warps and records their
  // clocks.
  template <typename Work>
  long long cycles(int warps, Work work) {
    work();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    const std::vector<long long> clocks = clocks_.read(2 * warps);
    long long first = clocks[0];
    long long last = clocks[1];
    for (int w = 1; w < warps; ++w) {
      first = std::min(first, clocks[2 * w]);
      last = std::max(last, clocks[2 * w + 1]);
    }
    return last - first;
  }

  // A kernel that runs a chain.
  template <typename Type>
  using Chain = void (*)(long long*, Type*, Type, Type, int);
  // Its latency with one warp, or its rate with many.
  template <typename Type>
  void chain(const char* what, const char* name, int warps, Chain<Type> short_one,
             Chain<Type> long_one, Type a, Type b);

  void make_ring(char* data, size_t bytes, unsigned stride);
  // Blocks of 256 threads that fill the GPU.
  int full_grid() const { return device_.sms * std::max(device_.threads_per_sm / 256, 1); }
  // Lines of a quarter of L2, as many for each thread of a block of 256 per SM.
  unsigned some_lines() const {
    const unsigned threads = 256 * device_.sms;
    return threads * std::max(1u, quick_ ? 1u : device_.l2_bytes / 4 / 128 / threads);
  }
  template <typename T>
  T* sink() const {
    return reinterpret_cast<T*>(sink_.get());
  }

  Device device_;
  bool quick_;
  int repeats_;
  Buffer<long long> clocks_;
  Buffer<unsigned long long> sink_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

// Until the clock of the GPU is up: 200 ms.
void Calibration::warm_up() {
  double spent = 0;
  const int most = quick_ ? 1 : 2000;
  for (int i = 0; i < most && spent < 200e6; ++i) {
    spent += nanoseconds([&] {
      fp32_192<<<device_.sms * 2, 512>>>(clocks_.get(), sink<float>(), 0.5f, 0.25f,
                                         quick_ ? 1 : 1000);
    });
  }
}

void Calibration::clock() {
  for (const int iterations : {quick_ ? 4 : 4000, quick_ ? 12 : 12000}) {
    for (int repeat = 0; repeat < repeats_; ++repeat) {
      double time = 0;
      const long long count = cycles(8, [&] {
        time = nanoseconds([&] {
          fp32_64<<<device_.sms, 256>>>(clocks_.get(), sink<float>(), 0.5f, 0.25f, iterations);
        });
      });
      emit("clock.cycles iterations=%d %lld cycles", iterations, count);
      emit("clock.time iterations=%d %.1f ns", iterations, time);
    }
  }
}

template <typename Type>
void Calibration::chain(const char* what, const char* name, int warps, Chain<Type> short_one,
                        Chain<Type> long_one, Type a, Type b) {
  for (const int length : {64, 192}) {
    const auto kernel = length == 64 ? short_one : long_one;
    for (const int iterations : {quick_ ? 2 : 16, quick_ ? 6 : 48}) {
      for (int repeat = -1; repeat < repeats_;
           ++repeat) {  // the first fills the instruction caches
        const long long taken = cycles(warps, [&] {
          kernel<<<1, warps * warp_threads>>>(clocks_.get(), sink<Type>(), a, b, iterations);
        });
        if (repeat < 0) continue;
        emit("%s.%s warps=%d length=%d iterations=%d %lld cycles", what, name, warps, length,
             iterations, taken);
      }
    }
  }
}

void Calibration::chains() {
  constexpr int many = 16;  // of eight chains each
#define LATENCY_OF(NAME, A, B) chain("latency", #NAME, 1, NAME##_64, NAME##_192, A, B)
#define RATE_OF(NAME, A, B) chain("interval", #NAME, many, NAME##_wide_64, NAME##_wide_192, A, B)
#define BOTH_OF(NAME, A, B) LATENCY_OF(NAME, A, B), RATE_OF(NAME, A, B)
  BOTH_OF(integer, 3u, 5u);
  BOTH_OF(fp32, 0.5f, 0.25f);
  cudaFuncAttributes attributes{};
  CHECK(cudaFuncGetAttributes(&attributes, fp16_64));
  if (attributes.ptxVersion >= 53) BOTH_OF(fp16, 0x38003800u, 0x34003400u);
  BOTH_OF(fp64, 0.5, 0.25);
  BOTH_OF(sfu, 2.0f, 2.0f);
  BOTH_OF(conversion, 1000u, 1000u);
  LATENCY_OF(shuffle, 1u, 1u);
  LATENCY_OF(barrier, 1u, 1u);
  RATE_OF(issue, 0.5f, 0.25f);
}

void Calibration::near_memories() {
  where_constant<<<1, 1>>>(sink<unsigned long long>());
  CHECK(cudaGetLastError());
  const unsigned long long place = sink_.read(1)[0];
  CHECK(cudaMemcpyToSymbol(constant_place, &place, sizeof place));
  for (const int steps : {256, 768}) {
    for (int repeat = -1; repeat < repeats_; ++repeat) {
      const long long of_shared = cycles(
          1, [&] { chase_shared<<<1, warp_threads>>>(clocks_.get(), sink<unsigned>(), steps); });
      const long long of_constant = cycles(
          1, [&] { chase_constant<<<1, 1>>>(clocks_.get(), sink<unsigned long long>(), steps); });
      if (repeat < 0) continue;
      emit("latency.shared steps=%d %lld cycles", steps, of_shared);
      emit("latency.constant steps=%d %lld cycles", steps, of_constant);
    }
  }
}

void Calibration::make_ring(char* data, size_t bytes, unsigned stride) {
  const auto count = static_cast<unsigned>(bytes / stride);
  unsigned step = std::max(1u, static_cast<unsigned>(count * 0.618));
  while (common_divisor(step, count) != 1) ++step;
  ring<<<(count + 255) / 256, 256>>>(data, count, stride, step);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}

// L1 and, where it does not hold the footprint, L2. The first lap fills L1; all runs have it, and
// end in a later one.
void Calibration::l1() {
  constexpr unsigned line_bytes = 128;
  constexpr int most_kib = 512;
  const Buffer<char> data(most_kib << 10);
  CHECK(cudaFuncSetAttribute(chase_ca, cudaFuncAttributePreferredSharedMemoryCarveout,
                             cudaSharedmemCarveoutMaxL1));
  for (int kib = 4; kib <= most_kib; kib += std::max(1, kib / (quick_ ? 1 : 12))) {
    make_ring(data.get(), static_cast<size_t>(kib) << 10, line_bytes);
    const int count = (kib << 10) / line_bytes;
    const int steps = count * (2 + 512 / count);
    for (const int times : {1, 2}) {
      for (int repeat = 0; repeat < std::min(repeats_, 3); ++repeat) {
        const long long taken = cycles(1, [&] {
          chase_ca<<<1, 1>>>(clocks_.get(), sink<unsigned long long>(),
                             reinterpret_cast<unsigned long long>(data.get()), times * steps);
        });
        emit("chase.ca footprint=%d steps=%d %lld cycles", kib << 10, times * steps, taken);
      }
    }
  }
}

void Calibration::l2_and_dram_latency() {
  constexpr unsigned line_bytes = 128;
  const int largest = std::max(device_.l2_bytes / 4, 64 << 10);
  {
    const Buffer<char> data(largest);
    for (int bytes = 64 << 10; bytes <= std::min(largest, quick_ ? 64 << 10 : 8 << 20);
         bytes *= 4) {
      make_ring(data.get(), bytes, line_bytes);
      const auto place = reinterpret_cast<unsigned long long>(data.get());
      chase_cg<<<1, 1>>>(clocks_.get(), sink<unsigned long long>(), place, bytes / line_bytes);
      CHECK(cudaGetLastError());
      for (const int steps : {quick_ ? 64 : 1024, quick_ ? 192 : 3072}) {
        for (int repeat = 0; repeat < repeats_; ++repeat) {
          const long long taken = cycles(1, [&] {
            chase_cg<<<1, 1>>>(clocks_.get(), sink<unsigned long long>(), place, steps);
          });
          emit("chase.cg footprint=%d steps=%d %lld cycles", bytes, steps, taken);
        }
      }
    }
  }
  // Places that nothing else is near, none of them in L2: a buffer of several times its size is
  // read first.
  constexpr unsigned apart = 2048;
  const int places = quick_ ? 512 : 8192;
  const size_t flush_bytes = static_cast<size_t>(device_.l2_bytes) * (quick_ ? 1 : 3);
  const Buffer<char> data(static_cast<size_t>(places) * apart);
  const Buffer<char> flush(flush_bytes);
  make_ring(data.get(), static_cast<size_t>(places) * apart, apart);
  for (const int steps : {places / 8, 3 * places / 8}) {
    for (int repeat = 0; repeat < repeats_; ++repeat) {
      stream<<<device_.sms * 4, 256>>>(flush.get(), sink<unsigned>(),
                                       static_cast<unsigned>(flush_bytes / 16), 1);
      CHECK(cudaGetLastError());
      const long long taken = cycles(1, [&] {
        chase_cg<<<1, 1>>>(clocks_.get(), sink<unsigned long long>(),
                           reinterpret_cast<unsigned long long>(data.get()), steps);
      });
      emit("chase.dram steps=%d %lld cycles", steps, taken);
    }
  }
}

// All SMs read: footprints that L2 may hold in several passes, for its bandwidth; more than it
// holds once, for DRAM's; and footprints around its size a second time, to see which it held.
void Calibration::bandwidth() {
  const auto eighth = static_cast<size_t>(device_.l2_bytes) / 8 / 4096 * 4096;
  const size_t most = eighth * 32;
  const Buffer<char> data(most);
  const int blocks = full_grid();
  const int repeats = std::min(repeats_, 3);
  const auto read = [&](size_t bytes, int passes) {
    return nanoseconds([&] {
      stream<<<blocks, 256>>>(data.get(), sink<unsigned>(), static_cast<unsigned>(bytes / 16),
                              passes);
    });
  };
  for (size_t eighths = 2; eighths <= 8; eighths += quick_ ? 4 : 1) {
    const size_t bytes = eighths * eighth;
    const int passes = quick_ ? 1 : static_cast<int>(std::max<size_t>((256u << 20) / bytes, 4));
    for (const int times : {1, 3}) {
      for (int repeat = -1; repeat < repeats; ++repeat) {  // the first fills L2
        const double time = read(bytes, times * passes);
        if (repeat < 0) continue;
        emit("stream.passes footprint=%zu passes=%d %.1f ns", bytes, times * passes, time);
      }
    }
  }
  for (const size_t eighths : {16, 24, 32}) {
    for (int repeat = -1; repeat < repeats; ++repeat) {
      const double time = read(eighths * eighth, 1);
      if (repeat < 0) continue;
      emit("stream.once footprint=%zu %.1f ns", eighths * eighth, time);
    }
  }
  for (const size_t eighths : {4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16}) {
    for (int repeat = -1; repeat < repeats; ++repeat) {  // each leaves what the next one reads
      const double time = read(eighths * eighth, 1);
      if (repeat < 0) continue;
      emit("stream.again footprint=%zu %.1f ns", eighths * eighth, time);
    }
  }
}

void Calibration::misses_in_flight() {
  constexpr int most_rounds = 6;
  constexpr int round_bytes = 32 * 32 * 128;
  const Buffer<char> data(static_cast<size_t>(most_rounds) * round_bytes);
  CHECK(cudaFuncSetAttribute(misses, cudaFuncAttributePreferredSharedMemoryCarveout,
                             cudaSharedmemCarveoutMaxL1));
  for (int lines = 4; lines <= 1024; lines += lines < 128 ? 4 : lines < 256 ? 8 : 32) {
    if (quick_ && (lines & (lines - 1)) != 0) continue;
    for (const int rounds : {2, most_rounds}) {
      for (int repeat = -1; repeat < std::min(repeats_, 3); ++repeat) {  // the first fills L2
        const long long taken = cycles(1, [&] {
          misses<<<1, warp_threads>>>(clocks_.get(), sink<unsigned>(), data.get(), lines, rounds);
        });
        if (repeat < 0) continue;
        emit("misses lines=%d rounds=%d %lld cycles", lines, rounds, taken);
      }
    }
  }
}

// How many instructions and passes the load-store unit takes: more warps than it needs, of two
// numbers, so that what the last ones wait for when the others are done does not count.
void Calibration::memory_instructions() {
  const Buffer<char> data(64 << 10);
  CHECK(cudaFuncSetAttribute(loads, cudaFuncAttributePreferredSharedMemoryCarveout,
                             cudaSharedmemCarveoutMaxL1));
  for (const int warps : {16, 32}) {
    for (const int iterations : {quick_ ? 1 : 8, quick_ ? 2 : 24}) {
      for (int repeat = -1; repeat < repeats_; ++repeat) {
        for (const unsigned lines : {1, 8, 16, 24, 32}) {
          const long long taken = cycles(warps, [&] {
            loads<<<1, warps * warp_threads>>>(clocks_.get(), sink<unsigned>(), data.get(), lines,
                                               iterations);
          });
          if (repeat < 0) continue;
          emit("loads.global lines=%u warps=%d iterations=%d %lld cycles", lines, warps, iterations,
               taken);
        }
        for (const unsigned passes : {1, 2, 4, 8, 16, 32}) {
          const long long taken = cycles(warps, [&] {
            shared_loads<<<1, warps * warp_threads>>>(clocks_.get(), sink<unsigned>(), passes,
                                                      iterations);
          });
          if (repeat < 0) continue;
          emit("loads.shared passes=%u warps=%d iterations=%d %lld cycles", passes, warps,
               iterations, taken);
        }
      }
    }
  }
}

// What a lane of an atomic takes of L2, and whether a warp goes on behind one.
void Calibration::atomics() {
  const unsigned lines = some_lines();
  const Buffer<char> data(static_cast<size_t>(lines) * 128);
  const auto time_of = [&](unsigned lanes, int passes, int adds) {  // of a warp in each line
    return nanoseconds([&] {
      reductions<<<full_grid(), 256>>>(data.get(), lines * lanes, 128 / lanes, passes, adds);
    });
  };
  for (const int passes : {quick_ ? 1 : 4, quick_ ? 2 : 12}) {
    for (int repeat = -1; repeat < repeats_; ++repeat) {
      for (const unsigned lanes : {1, 4, 8, 16, 32}) {
        const double time = time_of(lanes, passes, 1);
        if (repeat < 0) continue;
        emit("reductions.lines lanes=%u requests=%u %.1f ns", lanes, lines * passes, time);
      }
      const double time = time_of(32, passes, 0);
      if (repeat < 0) continue;
      emit("reductions.stores lanes=32 requests=%u %.1f ns", lines * passes, time);
    }
  }
  for (const unsigned count : {quick_ ? 1u << 10 : 1u << 16, quick_ ? 1u << 11 : 1u << 18}) {
    for (int repeat = -1; repeat < repeats_; ++repeat) {
      const double time =
          nanoseconds([&] { reductions<<<full_grid(), 256>>>(data.get(), count, 0, 1, 1); });
      if (repeat >= 0) emit("reductions.word lanes=%u %.1f ns", count, time);
    }
  }
  for (const int length : {8, 24}) {
    const auto kernel = length == 8 ? beside_atomic_8 : beside_atomic_24;
    for (const int iterations : {quick_ ? 2 : 64, quick_ ? 4 : 192}) {
      for (int repeat = -1; repeat < repeats_; ++repeat) {
        const long long taken = cycles(1, [&] {
          kernel<<<1, warp_threads>>>(clocks_.get(), sink<unsigned>(), 0.5f, iterations);
        });
        if (repeat < 0) continue;
        emit("atomic.beside length=%d iterations=%d %lld cycles", length, iterations, taken);
      }
    }
  }
}

// Sectors that are written as a whole and in part, all in L2.
void Calibration::l2_writes() {
  const unsigned sectors = some_lines();
  const Buffer<char> data(static_cast<size_t>(sectors) * 160);
  const auto time_of = [&](int passes, int whole) {
    return nanoseconds([&] { stores<<<device_.sms, 256>>>(data.get(), sectors, passes, whole); });
  };
  for (const int passes : {quick_ ? 1 : 32, quick_ ? 2 : 96}) {
    for (int repeat = -1; repeat < repeats_; ++repeat) {
      const double whole = time_of(passes, 1);
      const double partial = time_of(passes, 0);
      if (repeat < 0) continue;
      emit("stores.whole sectors=%u %.1f ns", sectors * passes, whole);
      emit("stores.partial sectors=%u %.1f ns", sectors * passes, partial);
    }
  }
}

// Which footprints L2 keeps from one launch to the next, and what written lines in it cost.
void Calibration::l2_contents() {
  const auto sixteenth = static_cast<size_t>(device_.l2_bytes) / 16 / 4096 * 4096;
  const size_t most = sixteenth * 24;
  const Buffer<char> data(most);
  const Buffer<char> other(most);
  const int repeats = std::min(repeats_, 3);
  const auto read = [&](const Buffer<char>& from, size_t bytes) {
    stream<<<device_.sms, 512>>>(from.get(), sink<unsigned>(), static_cast<unsigned>(bytes / 16),
                                 1);
  };
  for (size_t part = 4; part <= 24; part += quick_ ? 10 : 1) {
    for (const int launches : {quick_ ? 1 : 4, quick_ ? 2 : 12}) {
      for (int repeat = -1; repeat < repeats; ++repeat) {
        const double time = nanoseconds(
            [&] {
              for (int i = 0; i < launches; ++i) read(data, part * sixteenth);
            },
            quick_ ? 1 : 600);
        if (repeat < 0) continue;
        emit("stream.curve footprint=%zu launches=%d %.1f ns", part * sixteenth, launches, time);
      }
    }
  }
  for (const int written : {0, 1}) {
    for (int repeat = -1; repeat < repeats_; ++repeat) {
      if (written == 0) read(other, most);
      if (written == 1) {
        fill<<<full_grid(), 256>>>(other.get(), static_cast<unsigned>(most / 16));
      }
      CHECK(cudaGetLastError());
      const double time = nanoseconds([&] { read(data, 8 * sixteenth); });
      if (repeat < 0) continue;
      emit("stream.behind written=%d footprint=%zu %.1f ns", written, 8 * sixteenth, time);
    }
  }
}

void Calibration::launch() {
  const auto empty = [] { nothing<<<1, warp_threads>>>(); };
  for (int repeat = -10; repeat < (quick_ ? 1 : 50); ++repeat) {
    const double time = nanoseconds(empty);
    if (repeat >= 0) emit("launch.events %.1f ns", time);
  }
  for (const int launches : {quick_ ? 2 : 200, quick_ ? 4 : 600}) {
    for (int repeat = 0; repeat < repeats_; ++repeat) {
      const double time = nanoseconds([&] {
        for (int i = 0; i < launches; ++i) empty();
      });
      emit("launch.rate launches=%d %.1f ns", launches, time);
    }
  }
}

void Calibration::dispatch() {
  // Empty grids: the time of one more block.
  for (const int threads : {32, 64, 128, 256, 512, 1024}) {
    for (const int blocks : {quick_ ? 64 : 16384, quick_ ? 128 : 32768, quick_ ? 192 : 65536}) {
      for (int repeat = -1; repeat < repeats_; ++repeat) {
        const double time = nanoseconds([&] { nothing<<<blocks, threads>>>(); });
        if (repeat >= 0) emit("dispatch.grid threads=%d blocks=%d %.1f ns", threads, blocks, time);
      }
    }
  }
  // Warps of one block: how much later the last one starts.
  for (const int warps : {1, 2, 4, 8, 16, 24, 32}) {
    for (int repeat = -1; repeat < repeats_; ++repeat) {
      const long long taken =
          cycles(warps, [&] { starts<<<1, warps * warp_threads>>>(clocks_.get()); });
      if (repeat >= 0) emit("dispatch.warps warps=%d %lld cycles", warps, taken);
    }
  }
  // One block after the other in the same place: blocks of one warp with so much shared memory that
  // few are resident. What a wave takes beyond the block itself is the replacement.
  const int iterations = quick_ ? 4 : 20;
  int resident = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, fp32_64, warp_threads,
                                                      shared_bytes));
  const int wave = std::max(resident, 1) * device_.sms;
  for (const int waves : {4, 8, 16, 32}) {
    if (static_cast<size_t>(waves) * wave > most_warps) continue;
    for (int repeat = -1; repeat < repeats_; ++repeat) {
      const double time = nanoseconds([&] {
        fp32_64<<<waves * wave, warp_threads, shared_bytes>>>(clocks_.get(), sink<float>(), 0.5f,
                                                              0.25f, iterations);
      });
      if (repeat < 0) continue;
      emit("dispatch.waves iterations=%d waves=%d %.1f ns", iterations, waves, time);
      std::vector<long long> clocks = clocks_.read(2 * static_cast<size_t>(waves) * wave);
      std::vector<long long> taken;
      for (size_t i = 0; i + 1 < clocks.size(); i += 2) taken.push_back(clocks[i + 1] - clocks[i]);
      std::nth_element(taken.begin(), taken.begin() + taken.size() / 2, taken.end());
      emit("dispatch.block iterations=%d %lld cycles", iterations, taken[taken.size() / 2]);
    }
  }
}

// Blocks that end with a store or without one: when another takes their place, and when a kernel
// ends. The kernels take longer than it takes to launch one.
void Calibration::ends_of_blocks() {
  const int iterations = quick_ ? 2 : 20;
  int resident = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, turnover, warp_threads,
                                                      shared_bytes));
  const int wave = std::max(resident, 1) * device_.sms;
  for (const int stores : {0, 1}) {
    for (const int waves : {4, quick_ ? 8 : 16, quick_ ? 12 : 64}) {
      for (int repeat = -1; repeat < repeats_; ++repeat) {
        const double time = nanoseconds([&] {
          turnover<<<waves * wave, warp_threads, shared_bytes>>>(sink<float>(), iterations, stores);
        });
        if (repeat >= 0) emit("turnover.waves stores=%d waves=%d %.1f ns", stores, waves, time);
      }
    }
  }
  for (const int launches : {quick_ ? 2 : 100, quick_ ? 4 : 300}) {
    for (int repeat = -1; repeat < repeats_; ++repeat) {
      for (const int stores : {0, 1}) {  // in turn, so that a drift of the clock meets both
        const double time = nanoseconds([&] {
          for (int i = 0; i < launches; ++i) {
            turnover<<<1, warp_threads>>>(sink<float>(), 4 * iterations, stores);
          }
        });
        if (repeat < 0) continue;
        emit("turnover.launches stores=%d launches=%d %.1f ns", stores, launches, time);
      }
    }
  }
}

void Calibration::straight_code() {
  constexpr int part_length = 1024;
  for (int parts = 1; parts <= 10; parts += quick_ ? 9 : 1) {
    for (const int iterations : {quick_ ? 1 : 4, quick_ ? 2 : 12}) {
      for (int repeat = -1; repeat < repeats_; ++repeat) {
        const long long taken = cycles(1, [&] {
          straight<<<1, warp_threads>>>(clocks_.get(), sink<unsigned>(), 3u, 5u, parts, iterations);
        });
        if (repeat < 0) continue;
        emit("code.straight instructions=%d iterations=%d %lld cycles", parts * part_length,
             iterations, taken);
      }
    }
  }
}

// On which SMs the first blocks of a grid run, of which one fits an SM or few do.
void Calibration::map() {
  const Buffer<unsigned> sm(device_.sms);
  where<<<device_.sms, 1024, 40 << 10>>>(sm.get());
  CHECK(cudaGetLastError());
  const std::vector<unsigned> found = sm.read(device_.sms);
  for (size_t block = 0; block < found.size(); ++block) {
    emit("map.block block=%zu %u sm", block, found[block]);
  }
}

int attribute(cudaDeviceAttr which) {
  int value = 0;
  CHECK(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}

Device describe() {
  cudaDeviceProp properties{};
  CHECK(cudaGetDeviceProperties(&properties, 0));
  for (char* c = properties.name; *c != '\0'; ++c) {
    if (*c <= ' ' || *c > '~' || *c == '=') *c = '_';
  }
  emit("device.name %s text", properties.name);
  emit("device.capability %d.%d version", properties.major, properties.minor);
  int driver = 0;
  int runtime = 0;
  CHECK(cudaDriverGetVersion(&driver));
  CHECK(cudaRuntimeGetVersion(&runtime));
  emit("device.driver %d.%d version", driver / 1000, driver % 1000 / 10);
  emit("device.runtime %d.%d version", runtime / 1000, runtime % 1000 / 10);
  const Device device{attribute(cudaDevAttrMultiProcessorCount),
                      attribute(cudaDevAttrMaxThreadsPerMultiProcessor),
                      attribute(cudaDevAttrL2CacheSize)};
  emit("device.sms %d count", device.sms);
  emit("device.clock %d kHz", attribute(cudaDevAttrClockRate));
  emit("device.threads_per_sm %d count", device.threads_per_sm);
  emit("device.blocks_per_sm %d count", attribute(cudaDevAttrMaxBlocksPerMultiprocessor));
  emit("device.registers_per_sm %d count", attribute(cudaDevAttrMaxRegistersPerMultiprocessor));
  emit("device.shared_per_sm %d bytes", attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor));
  emit("device.shared_reserved %d bytes", attribute(cudaDevAttrReservedSharedMemoryPerBlock));
  emit("device.l2_size %d bytes", device.l2_bytes);
  emit("device.memory_clock %d kHz", attribute(cudaDevAttrMemoryClockRate));
  emit("device.memory_bus %d bits", attribute(cudaDevAttrGlobalMemoryBusWidth));
  return device;
}

}  // namespace

int main(int count, char** arguments) {
  const bool quick = count == 2 && std::strcmp(arguments[1], "quick") == 0;
  if (count > 1 && !quick) {
    std::fprintf(stderr, "usage: calibrate [quick] > run.txt\n");
    return 2;
  }
  CHECK(cudaSetDevice(0));
  emit("warpstack-calibration 1 format");
  const Device device = describe();
  Calibration calibration(device, quick);
  calibration.warm_up();
  calibration.clock();
  calibration.chains();
  calibration.near_memories();
  calibration.l1();
  calibration.l2_and_dram_latency();
  calibration.bandwidth();
  calibration.misses_in_flight();
  calibration.memory_instructions();
  calibration.atomics();
  calibration.l2_writes();
  calibration.l2_contents();
  calibration.launch();
  calibration.dispatch();
  calibration.ends_of_blocks();
  calibration.straight_code();
  calibration.map();
  emit("end %d lines", num_lines);
  CHECK(cudaDeviceSynchronize());
  return 0;
}

#endif  // __CUDACC_RTC__
