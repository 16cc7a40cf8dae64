// An empty library with the name and the symbol version of one of NVIDIA's. Its functions come from
// the library that it needs, which only has to know this version, if it depends on it. (The dynamic
// linker takes unversioned definitions for versioned references.) The build gives the macros.

extern "C" __attribute__((weak)) void WARPSTACK_SET_ABI(int version);

/// A symbol for the version script.
extern "C" __attribute__((visibility("default"))) const int WARPSTACK_ABI_SYMBOL =
    WARPSTACK_ABI_VERSION;

__attribute__((constructor)) static void tell_version() {
  if (WARPSTACK_SET_ABI != nullptr) WARPSTACK_SET_ABI(WARPSTACK_ABI_VERSION);
}
