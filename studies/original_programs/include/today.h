// What CUDA 4 had and CUDA 13 has under another name. Included before every CUDA source.
#pragma once
#define cudaThreadSynchronize cudaDeviceSynchronize
#define cudaThreadExit cudaDeviceReset
