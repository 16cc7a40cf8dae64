// Modules, libraries and the linker of the driver; kernels and variables by name.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include "common/error.h"
#include "stand_ins/cudriver/driver.h"
#include "stand_ins/cudriver/module_image.h"

using namespace warpstack::cudriver;
using warpstack::InputError;
using warpstack::cudart::FatBinaryEntry;
using warpstack::cudart::FatBinaryImage;

namespace {

/// CUjit_option and the values that programs pass or receive.
struct Options {
  unsigned count = 0;
  const int* options = nullptr;
  void** values = nullptr;

  void check() const {
    require(count == 0 || (options != nullptr && values != nullptr), "there are no options");
  }
  /// Writes a text to the program's buffer for the compiler's messages, and its size.
  void tell(int buffer, std::string_view text) const {
    char* place = nullptr;
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] == buffer) place = static_cast<char*>(values[i]);
    }
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] != buffer + 1) continue;  // the size of the buffer
      const std::size_t room = address_of(values[i]) & 0xffffffff;
      const std::size_t bytes = place == nullptr || room == 0 ? 0 : std::min(room - 1, text.size());
      if (place != nullptr && room > 0) {
        text.copy(place, bytes);
        place[bytes] = '\0';
      }
      values[i] = pointer_to(bytes);
    }
  }
};

constexpr int information = 3;  // CU_JIT_INFO_LOG_BUFFER
constexpr int errors = 5;       // CU_JIT_ERROR_LOG_BUFFER

/// Loads an image at once, so that errors are reported here.
FatModule* load(Runtime& runtime, FatBinaryImage image, const std::string& name,
                const Context* context, const Options& options) {
  static std::uint64_t number = 0;  // of this process; the runtime is locked
  const bool is_ptx = image.kind == FatBinaryEntry::Kind::ptx;
  FatModule* const module = runtime.add_module(
      std::move(image), std::string(program_invocation_short_name) +
                            (is_ptx ? " (PTX of " : " (machine code of ") +
                            (name.empty() ? "module " + std::to_string(++number) : name) + ")");
  try {
    runtime.load(*module);
  } catch (const std::exception& error) {
    options.tell(information, "");
    options.tell(errors, error.what());
    runtime.remove_module(module);
    throw;
  }
  options.tell(information, "");
  options.tell(errors, "");
  Driver::get().modules[module].context = context;
  return module;
}

/// Loads the image from `read` under a name for messages; libraries belong to no context.
Error load_image(const char* function, FatModule** module, const std::string& name,
                 const Options& options, bool is_library, const auto& read) {
  return drive(
      function,
      [&](Runtime& runtime) {
        require(module != nullptr, "nowhere to put the module");
        options.check();
        const Context* const context = is_library ? nullptr : Driver::get().current();
        *module = load(runtime, read(runtime), name, context, options);
      },
      is_library ? Needs::initialization : Needs::context);
}

Error load_data(const char* function, FatModule** module, const void* data, const Options& options,
                bool is_library) {
  return load_image(function, module, "", options, is_library,
                    [data](Runtime& runtime) { return read_image(runtime, data); });
}

Error load_file(const char* function, FatModule** module, const char* path, const Options& options,
                bool is_library) {
  return load_image(function, module, path == nullptr ? "" : path, options, is_library,
                    [path](Runtime& runtime) {
                      const std::string bytes = read_file(path);
                      return read_image(runtime, bytes.data());
                    });
}

/// The handle of a kernel.
Function function_of(Runtime& runtime, FatModule* module, const char* name) {
  Module& of = Driver::get().checked(module);
  require(name != nullptr, "there is no name");
  auto& handle = of.functions[name];
  if (handle == nullptr) {
    try {
      runtime.load(*module).arguments(name);
    } catch (const InputError& error) {
      of.functions.erase(name);
      throw Failure(Error::symbol_not_found, error.what());
    }
    handle = std::make_unique<LaunchSettings>();
    runtime.add_kernel(handle.get(), module, name);
  }
  return handle.get();
}

Error get_function(const char* function, Function* place, FatModule* module, const char* name,
                   Needs needs) {
  return drive(
      function,
      [&](Runtime& runtime) {
        require(place != nullptr, "nowhere to put the kernel");
        *place = function_of(runtime, module, name);
      },
      needs);
}

Error get_variable(const char* function, DevicePointer* pointer, std::size_t* bytes,
                   FatModule* module, const char* name, Needs needs) {
  return drive(
      function,
      [&](Runtime& runtime) {
        Driver::get().checked(module);
        require(name != nullptr, "there is no name");
        warpstack::cudart::ProgramModule& loaded = runtime.load(*module);
        try {
          const auto found = loaded.variable(name);
          if (pointer != nullptr) *pointer = found.address;
          if (bytes != nullptr) *bytes = found.bytes;
        } catch (const InputError& error) {
          throw Failure(Error::symbol_not_found, error.what());
        }
      },
      needs);
}

/// The result of cuLinkCreate. A single image needs no linking.
struct Linker {
  std::string input;
  bool has_input = false;
};

void add_input(Linker* linker, int kind, const void* data, std::size_t bytes) {
  require(linker != nullptr && data != nullptr && bytes > 0, "there is nothing to link");
  constexpr int fat_binary = 2;
  if (kind > fat_binary || linker->has_input) {
    throw Failure(Error::not_supported,
                  "several inputs, objects and libraries are not linked; load one PTX, fat binary "
                  "or cubin",
                  true);
  }
  linker->input.assign(static_cast<const char*>(data), bytes);
  linker->input.push_back('\0');
  linker->has_input = true;
}

}  // namespace

// --- modules ------------------------------------------------------------------------------------

CUDART_EXPORT Error cuModuleLoadDataEx(FatModule** module, const void* data, unsigned count,
                                       const int* options, void** values) {
  return load_data(__func__, module, data, {count, options, values}, false);
}

CUDART_EXPORT Error cuModuleLoadData(FatModule** module, const void* data) {
  return load_data(__func__, module, data, {}, false);
}
CUDART_ALIAS(cuModuleLoadFatBinary, cuModuleLoadData);

CUDART_EXPORT Error cuModuleLoad(FatModule** module, const char* path) {
  return load_file(__func__, module, path, {}, false);
}

CUDART_EXPORT Error cuModuleUnload(FatModule* module) {
  return drive(__func__, [&](Runtime&) { Driver::get().unload(module); });
}

CUDART_EXPORT Error cuModuleGetLoadingMode(int* mode) {
  return manage(
      __func__,
      [&](Driver&) {
        require(mode != nullptr, "nowhere to put the mode");
        *mode = 1;  // CU_MODULE_EAGER_LOADING
      },
      Needs::nothing);
}

CUDART_EXPORT Error cuModuleGetFunction(Function* function, FatModule* module, const char* name) {
  return get_function(__func__, function, module, name, Needs::context);
}

CUDART_EXPORT Error cuModuleGetGlobal_v2(DevicePointer* pointer, std::size_t* bytes,
                                         FatModule* module, const char* name) {
  return get_variable(__func__, pointer, bytes, module, name, Needs::context);
}

// --- libraries: modules that belong to no context -----------------------------------------------

CUDART_EXPORT Error cuLibraryLoadData(FatModule** library, const void* data, const int* options,
                                      void** values, unsigned count, const int*, void**, unsigned) {
  return load_data(__func__, library, data, {count, options, values}, true);
}

CUDART_EXPORT Error cuLibraryLoadFromFile(FatModule** library, const char* path, const int* options,
                                          void** values, unsigned count, const int*, void**,
                                          unsigned) {
  return load_file(__func__, library, path, {count, options, values}, true);
}

CUDART_EXPORT Error cuLibraryUnload(FatModule* library) {
  return drive(__func__, [&](Runtime&) { Driver::get().unload(library); }, Needs::initialization);
}

CUDART_EXPORT Error cuLibraryGetKernel(Function* kernel, FatModule* library, const char* name) {
  return get_function(__func__, kernel, library, name, Needs::initialization);
}

CUDART_EXPORT Error cuLibraryGetModule(FatModule** module, FatModule* library) {
  return drive(__func__, [&](Runtime&) {
    require(module != nullptr, "nowhere to put the module");
    Driver::get().checked(library);
    *module = library;
  });
}

CUDART_EXPORT Error cuLibraryGetGlobal(DevicePointer* pointer, std::size_t* bytes,
                                       FatModule* library, const char* name) {
  return get_variable(__func__, pointer, bytes, library, name, Needs::context);
}

CUDART_EXPORT Error cuLibraryGetManaged(DevicePointer* pointer, std::size_t* bytes,
                                        FatModule* library, const char* name) {
  return get_variable(__func__, pointer, bytes, library, name, Needs::initialization);
}

// --- the linker ---------------------------------------------------------------------------------

CUDART_EXPORT Error cuLinkCreate_v2(unsigned, const int*, void**, Linker** linker) {
  return drive(__func__, [&](Runtime&) {
    require(linker != nullptr, "nowhere to put the linker");
    *linker = new Linker;
  });
}

CUDART_EXPORT Error cuLinkAddData_v2(Linker* linker, int kind, const void* data, std::size_t bytes,
                                     const char*, unsigned, const int*, void**) {
  return drive(__func__, [&](Runtime& runtime) {
    if (data != nullptr) runtime.check_host(address_of(data), bytes, false);
    add_input(linker, kind, data, bytes);
  });
}

CUDART_EXPORT Error cuLinkAddFile_v2(Linker* linker, int kind, const char* path, unsigned,
                                     const int*, void**) {
  return drive(__func__, [&](Runtime&) {
    const std::string bytes = read_file(path);
    add_input(linker, kind, bytes.data(), bytes.size());
  });
}

CUDART_EXPORT Error cuLinkComplete(Linker* linker, void** image, std::size_t* bytes) {
  return drive(__func__, [&](Runtime&) {
    require(linker != nullptr && image != nullptr, "nowhere to put the image");
    require(linker->has_input, "there is nothing to link");
    *image = linker->input.data();
    if (bytes != nullptr) *bytes = linker->input.size();
  });
}

CUDART_EXPORT Error cuLinkDestroy(const Linker* linker) {
  return drive(__func__, [&](Runtime&) { delete linker; });
}
