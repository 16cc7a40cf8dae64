#include "simt/built_ins.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "common/error.h"
#include "simt/print.h"

namespace warpstack::simt {

void BuiltIns::call(Warp& warp, const Step& step, const Call& call, std::uint32_t mask) {
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
          address = memory_.allocate(argument(0, lane));
          if (block_.races != nullptr) block_.races->forget(address, argument(0, lane));
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
      case Call::BuiltIn::none:
        break;
    }
  }
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
