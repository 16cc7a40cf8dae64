// An empty library with the name of NVIDIA's driver. Its functions come from libwarpstack_cudart,
// which the dynamic linker and dlsym() find through it.

extern "C" __attribute__((visibility("default"))) const int warpstack_cudriver = 1;
