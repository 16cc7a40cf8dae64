// A library under the name and the symbol version of one of NVIDIA's libcublas or libcublasLt, with
// nothing in it: its functions come from libwarpstack_cublas, which needs to know only this. (The
// dynamic linker takes unversioned definitions for versioned references.)

extern "C" void warpstack_cublas_set_abi(int version);

/// Something for the version script to give a version.
extern "C" __attribute__((visibility("default"))) const int warpstack_cublas_abi =
    WARPSTACK_CUBLAS_ABI;

__attribute__((constructor)) static void tell_version() {
  warpstack_cublas_set_abi(warpstack_cublas_abi);
}
