// A library under the name of NVIDIA's driver, with nothing in it: its functions come from
// libwarpstack_cudart, which the dynamic linker and dlsym() find through it.

extern "C" __attribute__((visibility("default"))) const int warpstack_cudriver = 1;
