#include "gpu/field.h"

#include <cmath>
#include <cstdio>

#include "common/error.h"
#include "gpu/own_policies.h"

namespace warpstack::gpu {
namespace {

/// Numbers below it that are not 0 are nothing that can be: cycles, KiB, bytes per cycle.
constexpr double least_part = 1e-6;

/// The range of a row; what it leaves out is that of the unit.
struct Range {
  std::optional<double> least;
  std::optional<double> most;
  bool or_zero = false;
};

/// What values can be by unit where a field has no range of its own: far beyond what anybody
/// builds, and so that sums, products and quotients of them stay finite.
constexpr struct {
  std::string_view unit;
  double least;
  double most;
} ranges_of_units[] = {
    {"", 0, 1 << 20}, {"GHz", 1e-3, 1e3}, {"GB/s", 1e-3, 1e9}, {"cycles", 0, 1e6},
    {"us", 0, 1e6},   {"ns", 0, 1e6},     {"KiB", 0, 0x1p36},  {"bytes", 0, 1 << 20},
};

template <typename Type>
constexpr FieldKind kind_of() {
  if constexpr (NamedEnum<Type>) {
    return FieldKind::word;
  } else if constexpr (std::is_same_v<Type, double>) {
    return FieldKind::number;
  } else if constexpr (std::is_same_v<Type, std::uint32_t>) {
    return FieldKind::whole;
  } else {
    static_assert(std::is_same_v<Type, std::vector<double>>);
    return FieldKind::numbers;
  }
}

template <typename Type>
constexpr std::span<const std::string_view> choices_of() {
  if constexpr (NamedEnum<Type>) {
    return names_in<Type>.names;
  } else {
    return {};
  }
}

template <typename Type, bool is_required>
Field row(FieldName id, std::string_view name, std::string_view unit, Range range, Stage stages,
          std::string_view meaning) {
  Field field{id, name, unit,          meaning,           stages, kind_of<Type>(), is_required,
              0,  0,    range.or_zero, choices_of<Type>()};
  for (const auto& of_unit : ranges_of_units) {
    if (of_unit.unit != unit) continue;
    field.least = range.least.value_or(of_unit.least);
    field.most = range.most.value_or(of_unit.most);
    return field;
  }
  throw InputError(std::string(name) + ": there is no unit " + std::string(unit));
}

std::vector<Field> make_table() {
  // The words of fields.inc.
  using enum Stage;
  const Range usual;
  const Range choices;
  const Range or_zero{.or_zero = true};
  const auto between = [](double least, double most) { return Range{least, most}; };
  const auto at_least = [](double least) { return Range{least, {}}; };
  const auto at_most = [](double most) { return Range{{}, most}; };
  std::vector<Field> table;
#define GPU_FIELD(type, name, unit, fallback, range, stages, meaning)   \
  table.push_back(row<type, std::string_view(#fallback) == "required">( \
      FieldName::name, #name, unit, range, stages, meaning));
#include "gpu/fields.inc"
#undef GPU_FIELD
  return table;
}

/// Calls `visit` with the member of a field.
template <typename AnyGpu, typename Visit>
auto with_member(AnyGpu& gpu, FieldName id, Visit visit) {
  switch (id) {
#define GPU_FIELD(type, name, unit, fallback, range, stages, meaning) \
  case FieldName::name:                                               \
    return visit(gpu.name);
#include "gpu/fields.inc"
#undef GPU_FIELD
  }
  throw InputError("there is no such field");
}

/// A number as C's printf writes it.
std::string formatted(const char* format, double number) {
  char text[64];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

std::string shown(double number) { return formatted("%.12g", number); }

}  // namespace

std::span<const Field> fields() {
  static const std::vector<Field> table = make_table();
  return table;
}

Value value_of(const Gpu& gpu, FieldName id) {
  return with_member(gpu, id, [](const auto& member) -> Value {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, Replacement>) {
      return policy_name(member);
    } else if constexpr (NamedEnum<std::remove_cvref_t<decltype(member)>>) {
      return warpstack::name_of(member);
    } else {
      return member;
    }
  });
}

void set(Gpu& gpu, FieldName id, const Value& value) {
  const Field& field = fields()[static_cast<std::size_t>(id)];
  const auto refuse = [&field](const std::string& text) {
    throw InputError(std::string(field.name) + " = " + text);
  };
  const auto checked = [&](double number) {
    if (const auto fault = fault_of(field, number)) refuse(shown(number) + *fault);
    return number == 0 ? 0 : number;  // a negative zero would be another value
  };
  with_member(gpu, id, [&](auto& member) {
    using Type = std::remove_cvref_t<decltype(member)>;
    if constexpr (NamedEnum<Type>) {
      const auto* word = std::get_if<std::string_view>(&value);
      if (word == nullptr) refuse("a number is no word; the range is " + range_text(field));
      if constexpr (std::is_same_v<Type, Replacement>) {
        member = policy_of(*word);
      } else {
        member = enum_of<Type>(*word);
      }
    } else if constexpr (std::is_same_v<Type, std::vector<double>>) {
      const auto* several = std::get_if<Type>(&value);
      if (several == nullptr) refuse("one value is not several numbers");
      for (const double number : *several) checked(number);
      member = *several;
    } else if (const auto* whole = std::get_if<std::uint32_t>(&value)) {
      member = static_cast<Type>(checked(*whole));
    } else if (const auto* number = std::get_if<double>(&value)) {
      member = static_cast<Type>(checked(*number));
    } else {
      refuse("this is not a number; the range is " + range_text(field));
    }
  });
}

std::string range_text(const Field& field) {
  if (field.kind == FieldKind::word) {
    std::string text;
    for (const std::string_view word : field.choices) {
      text.append(text.empty() ? "" : ", ").append(word);
    }
    return text;
  }
  std::string text = field.or_zero ? "0, or " : "";
  text += shown(field.least) + " to " + shown(field.most);
  if (!field.unit.empty()) text.append(" ").append(field.unit);
  return field.kind == FieldKind::numbers ? text + " each" : text;
}

std::optional<std::string> fault_of(const Field& field, double number) {
  const std::string_view has_range = "; the range is ";
  const auto fault = [&](const std::string& what) {
    return std::optional(" is " + what + std::string(has_range) + range_text(field));
  };
  if (!std::isfinite(number)) return fault("not finite");
  if (number == 0 && (field.least <= 0 || field.or_zero)) return {};
  if (number < field.least) return fault("less than " + formatted("%g", field.least));
  if (number < least_part) {
    return fault("less than " + formatted("%g", least_part) + " and not 0");
  }
  if (field.kind == FieldKind::whole && number != std::floor(number)) {
    return fault("not a whole number");
  }
  if (number > field.most) return fault("too large; the most is " + shown(field.most));
  return {};
}

}  // namespace warpstack::gpu
