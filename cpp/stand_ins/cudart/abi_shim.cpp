// An empty library with the name and the symbol version of one of NVIDIA's libcudart. Its functions
// come from libwarpstack_cudart, which only needs to know this version. (The dynamic linker takes
// unversioned definitions for versioned references.)

extern "C" void warpstack_cudart_set_abi(int version);

/// A symbol for the version script.
extern "C" __attribute__((visibility("default"))) const int warpstack_cudart_abi =
    WARPSTACK_CUDART_ABI;

__attribute__((constructor)) static void tell_version() {
  warpstack_cudart_set_abi(warpstack_cudart_abi);
}
