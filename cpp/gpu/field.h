#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "gpu/gpu.h"

namespace warpstack::gpu {

/// What reads a field of a GPU; values are sets.
enum class Stage : std::uint32_t {
  nothing = 0,
  memory = 1,      ///< what caches hold and which blocks are resident, whatever the order
  requests = 2,    ///< what the memory stage counts of requests, beyond `memory`
  greedy = 4,      ///< the memory stage where accesses are in greedy order, beyond `memory`
  timed = 8,       ///< the memory stage where accesses are in timed order, beyond `memory`
  interval = 16,   ///< the intervals of the representative warp
  model = 32,      ///< the equations of some model, which says which (model/model.cpp)
  timing = 64,     ///< the cycle-level simulator
  launch = 128,    ///< the starts of blocks in every model, and the time that a profiler reports
  timeline = 256,  ///< time lines of programs: calls, copies, kernels at the same time
};
constexpr Stage operator|(Stage a, Stage b) {
  return static_cast<Stage>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr bool has(Stage set, Stage one) {
  return (static_cast<std::uint32_t>(set) & static_cast<std::uint32_t>(one)) != 0;
}

/// A field by its name: one that there is not does not compile.
enum class FieldName : std::uint8_t {
#define GPU_FIELD(type, name, unit, fallback, range, stages, meaning) name,
#include "gpu/fields.inc"
#undef GPU_FIELD
};

/// What kind of value a field has.
enum class FieldKind : std::uint8_t { whole, number, word, numbers };
constexpr auto names_of(FieldKind) {
  return enum_names("kind of a field", "whole", "number", "word", "numbers");
}

/// A row of gpu/fields.inc.
struct Field {
  FieldName id;
  std::string_view name;
  std::string_view unit;
  std::string_view meaning;
  Stage stages;
  FieldKind kind;
  bool is_required;
  double least;  ///< of a number, or of each of several
  double most;
  bool or_zero;                               ///< a number below `least` can be 0, too
  std::span<const std::string_view> choices;  ///< the words
};

/// All fields, in their order.
std::span<const Field> fields();

inline std::string_view name_of(FieldName id) {
  return fields()[static_cast<std::size_t>(id)].name;
}

/// The value of a field; a word as its name.
using Value = std::variant<std::uint32_t, double, std::string_view, std::vector<double>>;
Value value_of(const Gpu& gpu, FieldName id);
/// Throws InputError unless the value is of the field's kind and one that it can have.
void set(Gpu& gpu, FieldName id, const Value& value);

/// What a field can be, as text: "0, or 0.001 to 1000 GHz".
std::string range_text(const Field& field);
/// What is wrong with a number for a field, as the end of a sentence that begins with the field and
/// its value: " is less than 1; the range is 1 to 65536". Nothing if the field can have it.
std::optional<std::string> fault_of(const Field& field, double number);

}  // namespace warpstack::gpu
