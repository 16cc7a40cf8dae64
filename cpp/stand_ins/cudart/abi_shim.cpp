// A library under the name and the symbol version of one of NVIDIA's libcudart, with nothing in it:
// its functions come from libwarpstack_cudart, which needs to know only this. (The dynamic linker
// takes unversioned definitions for versioned references.)

extern "C" void warpstack_cudart_set_abi(int version);

/// Something for the version script to give a version.
extern "C" __attribute__((visibility("default"))) const int warpstack_cudart_abi =
    WARPSTACK_CUDART_ABI;

__attribute__((constructor)) static void tell_version() {
  warpstack_cudart_set_abi(warpstack_cudart_abi);
}
