// Ranges of NVTX, version 3, which is headers alone: a program that calls it loads the library that
// NVTX_INJECTION64_PATH names, and hands it a table of its functions to be replaced.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_set>

#include "stand_ins/state/runtime.h"

using namespace warpstack::cudart;

namespace {

/// nvtxEventAttributes_t
struct EventAttributes {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  std::uint64_t payload;
  std::int32_t message_type;
  const void* message;
};

/// A registered string is the address of its text here.
const std::string* registered(std::string text) {
  static auto* const texts = new std::unordered_set<std::string>;
  static auto* const mutex = new std::mutex;
  const std::lock_guard lock(*mutex);
  return &*texts->insert(std::move(text)).first;
}

std::string plain(const void* text) {
  return text == nullptr ? std::string() : std::string(static_cast<const char*>(text));
}

/// UTF-8 of wide characters, each of which is a code point.
std::string wide(const void* text) {
  std::string result;
  const auto* next = static_cast<const wchar_t*>(text);
  for (; next != nullptr && *next != 0; ++next) {
    const auto code = static_cast<std::uint32_t>(*next);
    const auto put = [&result](std::uint32_t byte) { result += static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
      continue;
    }
    if (code < 0x800) {
      put(0xc0 | code >> 6);
    } else {
      if (code < 0x10000) {
        put(0xe0 | code >> 12);
      } else {
        put(0xf0 | (code >> 18 & 7));
        put(0x80 | (code >> 12 & 0x3f));
      }
      put(0x80 | (code >> 6 & 0x3f));
    }
    put(0x80 | (code & 0x3f));
  }
  return result;
}

std::string message_of(const EventAttributes* attributes) {
  constexpr int ascii = 1, unicode = 2, of_registered = 3;
  if (attributes == nullptr || attributes->message == nullptr) return {};
  switch (attributes->message_type) {
    case ascii:
      return plain(attributes->message);
    case unicode:
      return wide(attributes->message);
    case of_registered:
      return *static_cast<const std::string*>(attributes->message);
    default:
      return {};
  }
}

int& level() {
  static thread_local int level = 0;
  return level;
}

int push(const char* function, std::string text) {
  const ApiCall api_call(function);
  Operation operation;
  operation.kind = OperationKind::range_push;
  operation.name = std::move(text);
  Runtime::get().log().add(operation);
  return level()++;
}

int pop(const char* function) {
  if (level() == 0) return -1;  // there is no range
  const ApiCall api_call(function);
  Operation operation;
  operation.kind = OperationKind::range_pop;
  Runtime::get().log().add(operation);
  return --level();
}

int push_plain(const char* text) { return push("nvtxRangePushA", plain(text)); }
int push_wide(const wchar_t* text) { return push("nvtxRangePushW", wide(text)); }
int push_attributes(const EventAttributes* attributes) {
  return push("nvtxRangePushEx", message_of(attributes));
}
int push_in_domain(void*, const EventAttributes* attributes) {
  return push("nvtxDomainRangePushEx", message_of(attributes));
}
int pop_any() { return pop("nvtxRangePop"); }
int pop_in_domain(void*) { return pop("nvtxDomainRangePop"); }
const void* register_plain(void*, const char* text) { return registered(plain(text)); }
const void* register_wide(void*, const wchar_t* text) { return registered(wide(text)); }

using Function = void (*)();
/// NvtxExportTableCallbacks
struct Callbacks {
  std::size_t bytes;
  int (*functions_of)(int module, Function*** table, unsigned* size);
};

template <typename Replacement>
void replace(Function** table, unsigned size, unsigned number, Replacement replacement) {
  if (number < size && table[number] != nullptr) {
    *table[number] = reinterpret_cast<Function>(replacement);
  }
}

}  // namespace

/// Replaces the ranges of threads; other functions of NVTX stay without effect. The numbers are
/// those of NvtxCallbackIdCore and NvtxCallbackIdCore2.
CUDART_EXPORT int InitializeInjectionNvtx2(const void* (*export_table)(std::uint32_t)) {
  constexpr std::uint32_t callbacks_table = 1;
  constexpr int core = 1, core_2 = 5;
  const auto* callbacks = static_cast<const Callbacks*>(export_table(callbacks_table));
  if (callbacks == nullptr || callbacks->bytes < sizeof *callbacks) return 0;
  Function** table = nullptr;
  unsigned size = 0;
  if (callbacks->functions_of(core, &table, &size) != 0) {
    replace(table, size, 8, push_attributes);
    replace(table, size, 9, push_plain);
    replace(table, size, 10, push_wide);
    replace(table, size, 11, pop_any);
  }
  if (callbacks->functions_of(core_2, &table, &size) != 0) {
    replace(table, size, 4, push_in_domain);
    replace(table, size, 5, pop_in_domain);
    replace(table, size, 10, register_plain);
    replace(table, size, 11, register_wide);
  }
  return 1;
}
