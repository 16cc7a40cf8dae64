// Tables for generators in the program's own kernels.

#include "stand_ins/curand/context.h"
#include "stand_ins/curand/direction_vectors.h"
#include "stand_ins/library/runtime_calls.h"

using namespace warpstack::curand;

namespace {

void tell_own_scrambling() {
  warpstack_cudart_note(
      "cuRAND: the scrambling of Sobol's sequences is warpstack's own, since NVIDIA's is not "
      "published: the numbers have the same distribution, but are others");
}

template <typename Word>
Status give_vectors(const char* function, const void** vectors, int set, VectorSet plain,
                    VectorSet scrambled) {
  return call(function, [&] {
    require(vectors != nullptr, Status::out_of_range, "nowhere to put the vectors");
    require(set == static_cast<int>(plain) || set == static_cast<int>(scrambled),
            Status::out_of_range,
            "set = " + std::to_string(set) + " is no set of vectors of " +
                std::to_string(sizeof(Word) * 8) + " bits");
    if (set == static_cast<int>(plain)) {
      *vectors = directions<Word>().data();
      return;
    }
    tell_own_scrambling();
    *vectors = scrambled_directions<Word>().data();
  });
}

template <typename Word>
Status give_constants(const char* function, const void** constants) {
  return call(function, [&] {
    require(constants != nullptr, Status::out_of_range, "nowhere to put the constants");
    tell_own_scrambling();
    *constants = scramble_constants<Word>().data();
  });
}

}  // namespace

CURAND_EXPORT Status curandGetDirectionVectors32(const void** vectors, int set) {
  return give_vectors<std::uint32_t>(__func__, vectors, set, VectorSet::plain32,
                                     VectorSet::scrambled32);
}

CURAND_EXPORT Status curandGetDirectionVectors64(const void** vectors, int set) {
  return give_vectors<std::uint64_t>(__func__, vectors, set, VectorSet::plain64,
                                     VectorSet::scrambled64);
}

CURAND_EXPORT Status curandGetScrambleConstants32(const void** constants) {
  return give_constants<std::uint32_t>(__func__, constants);
}

CURAND_EXPORT Status curandGetScrambleConstants64(const void** constants) {
  return give_constants<std::uint64_t>(__func__, constants);
}
