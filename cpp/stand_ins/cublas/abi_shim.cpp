// An empty library with the name and the symbol version of one of NVIDIA's libcublas or
// libcublasLt. Its functions come from libwarpstack_cublas, which only needs to know this version.
// (The dynamic linker takes unversioned definitions for versioned references.)

extern "C" void warpstack_cublas_set_abi(int version);

/// A symbol for the version script.
extern "C" __attribute__((visibility("default"))) const int warpstack_cublas_abi =
    WARPSTACK_CUBLAS_ABI;

__attribute__((constructor)) static void tell_version() {
  warpstack_cublas_set_abi(warpstack_cublas_abi);
}
