#include "simt/units/built_ins.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "common/error.h"
#include "simt/device/print.h"

namespace warpstack::simt {

void BuiltIns::call(Warp& warp, const Step& step, const Call& call, std::uint32_t mask) {
  execution_.need_turn();
  const Frame& frame = warp.frames.back();
  std::byte* const area = warp.file.data() + frame.base + frame.function->register_bytes;
  const auto argument = [&](std::size_t i, std::uint32_t lane) {
    std::uint64_t value = 0;
    if (i >= call.arguments.size()) return value;
    const Call::Piece& piece = call.arguments[i];
    std::memcpy(&value, area + std::size_t{lane} * frame.function->parameter_bytes + piece.offset,
                std::min(piece.bytes, 8u));
    return value;
  };
  const auto give = [&](std::uint32_t lane, std::uint64_t value) {
    if (call.results.empty()) return;
    const Call::Piece& piece = call.results[0];
    std::memcpy(area + std::size_t{lane} * frame.function->parameter_bytes + piece.offset, &value,
                std::min(piece.bytes, 8u));
  };
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    switch (call.built_in) {
      case Call::BuiltIn::print: {
        const std::string text = format_text(
            text_at(warp, step, lane, argument(0, lane)),
            [&](std::uint64_t offset, std::uint32_t bytes) {
              std::uint64_t value = 0;
              std::memcpy(&value,
                          spaces_.generic(warp, step, lane, argument(1, lane) + offset, bytes),
                          bytes);
              return value;
            },
            [&](std::uint64_t address) { return text_at(warp, step, lane, address); });
        if (execution_.device.print) {
          execution_.device.print(text);
        } else {
          std::fwrite(text.data(), 1, text.size(), stdout);
        }
        give(lane, text.size());
        break;
      }
      case Call::BuiltIn::assert_fail:
        faults_.stop(warp, step, lane,
                     "assertion `" + text_at(warp, step, lane, argument(0, lane)) + "` failed (" +
                         text_at(warp, step, lane, argument(1, lane)) + ":" +
                         std::to_string(argument(2, lane) & 0xffffffffu) + ")");
      case Call::BuiltIn::allocate: {
        std::uint64_t address = 0;
        try {
          address = allocate(argument(0, lane));
        } catch (const InputError&) {  // malloc() answers with a null pointer
        }
        give(lane, address);
        spaces_.forget_allocation();
        break;
      }
      case Call::BuiltIn::release:
        if (argument(0, lane) != 0) {
          try {
            memory_.free(argument(0, lane));
          } catch (const InputError& error) {
            faults_.stop(warp, step, lane, error.what());
          }
        }
        spaces_.forget_allocation();
        break;
      case Call::BuiltIn::runtime:
        give(lane, call_runtime(warp, step, call, lane));
        break;
      case Call::BuiltIn::none:
        break;
    }
  }
}

std::uint64_t BuiltIns::allocate(std::uint64_t bytes) {
  const std::uint64_t address = memory_.allocate(bytes);
  if (block_.races != nullptr) block_.races->forget(address, bytes);
  return address;
}

std::uint64_t BuiltIns::call_runtime(Warp& warp, const Step& step, const Call& call,
                                     std::uint32_t lane) {
  class Caller final : public RuntimeCaller {
   public:
    Caller(BuiltIns& built_ins, Warp& warp, const Step& step, const Call& call, std::uint32_t lane)
        : built_ins_(built_ins), warp_(warp), step_(step), call_(call), lane_(lane) {}

    [[nodiscard]] std::uint64_t block() const override { return built_ins_.block_.number; }
    [[nodiscard]] std::uint64_t thread() const override {
      return std::uint64_t{warp_.number} * warp_size + lane_;
    }
    [[nodiscard]] std::span<const std::byte> argument(std::size_t i) const override {
      if (i >= call_.arguments.size()) throw RuntimeFault("the call has too few arguments");
      const Frame& frame = warp_.frames.back();
      const Call::Piece& piece = call_.arguments[i];
      return {warp_.file.data() + frame.base + frame.function->register_bytes +
                  std::size_t{lane_} * frame.function->parameter_bytes + piece.offset,
              piece.bytes};
    }
    std::byte* writable(std::uint64_t address, std::uint32_t bytes) override {
      return built_ins_.spaces_.pointer(warp_, step_, AddressSpace::generic, lane_, address, bytes,
                                        {.reads = false, .writes = true});
    }
    std::uint64_t allocate(std::uint64_t bytes) override { return built_ins_.allocate(bytes); }
    void release(std::uint64_t address) override { built_ins_.memory_.free(address); }

   private:
    BuiltIns& built_ins_;
    Warp& warp_;
    const Step& step_;
    const Call& call_;
    std::uint32_t lane_;
  };
  if (execution_.options.runtime == nullptr) {
    faults_.stop(warp, step, lane,
                 "it calls the CUDA runtime, which only kernels of programs under warpstack trace "
                 "have");
  }
  Caller caller(*this, warp, step, call, lane);
  std::uint64_t result = 0;
  try {
    result = execution_.options.runtime->call(call.runtime_function, caller);
  } catch (const RuntimeFault& fault) {
    faults_.stop(warp, step, lane, fault.what());
  }
  spaces_.forget_allocation();
  return result;
}

std::string BuiltIns::text_at(Warp& warp, const Step& step, std::uint32_t lane,
                              std::uint64_t address) {
  std::string text;
  if (address == 0) return "(null)";
  while (text.size() < 65536) {
    const char c = static_cast<char>(*spaces_.generic(warp, step, lane, address++, 1));
    if (c == '\0') break;
    text += c;
  }
  return text;
}

}  // namespace warpstack::simt
