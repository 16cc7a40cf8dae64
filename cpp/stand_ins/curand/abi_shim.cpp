// An empty library with the name of NVIDIA's libcurand and its symbol version. Its functions come
// from libwarpstack_curand. (The dynamic linker takes unversioned definitions for versioned
// references.)

/// A symbol for the version script.
extern "C" __attribute__((visibility("default"))) const int warpstack_curand_abi =
    WARPSTACK_CURAND_ABI;
