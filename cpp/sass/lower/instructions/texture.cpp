#include <tuple>

#include "sass/lower/handlers.h"
#include "sass/lower/memory_operands.h"

// Textures and surfaces, as ptxas uses them. The object's handle is a word of constant bank 0 or a
// uniform register, and says both what is sampled and how.

namespace warpstack::sass {
namespace {

using simt::TextureAccess;

/// A 64-bit slot with a handle; machine code has only the lower word.
Slot object_of(Lowerer& to, Slot handle) {
  const Slot words = to.temporary();
  to.move(words, handle);
  to.move(words + Frame::slot_bytes, Frame::zero);
  const Slot object = to.temporary();
  to.emit(Operation::pack, Type::b64, object, {words});
  return object;
}

/// The object behind the registers: 0x0,0x5c is word 0x5c of constant bank 0, UR4,0x0 a register.
Slot take_object(Lowerer& to, Form& form) {
  const Operand& first = form.next();
  Slot handle = 0;
  if (first.kind == Operand::Kind::integer) {
    const std::int64_t word = to.number(form.next());
    if (to.number(first) != 0 || word < 0 || word > 0x3fff) {
      to.refuse("its object is not a word of constant bank 0");
    }
    handle = to.frame().constant(0, static_cast<std::uint32_t>(4 * word));
  } else {
    if (!first.is_register()) to.refuse("its object is not in a register");
    handle = to.word(first);
    if (form.peek().kind == Operand::Kind::integer && to.number(form.next()) != 0) {
      to.refuse("its object has an offset");
    }
  }
  return object_of(to, handle);
}

void take_shape(Lowerer& to, const Operand& operand, TextureAccess& access) {
  constexpr std::tuple<std::string_view, std::uint8_t, bool, bool> shapes[] = {
      {"1D", 1, false, false},      {"2D", 2, false, false},      {"3D", 3, false, false},
      {"ARRAY_1D", 1, true, false}, {"ARRAY_2D", 2, true, false}, {"CUBE", 3, false, true},
      {"ARRAY_CUBE", 3, true, true}};
  for (const auto& [name, dimensions, layered, cube] : shapes) {
    if (operand.text != name) continue;
    access.dimensions = dimensions;
    access.layered = layered;
    access.cube = cube;
    return;
  }
  to.refuse("its shape " + operand.text + " is not executed");
}

/// Consecutive registers from an operand on.
Slot part_of(Lowerer& to, const Operand& operand, std::uint32_t number) {
  const Slot first = to.word(operand);
  return first == Frame::zero ? first : first + number * Frame::slot_bytes;
}

/// Assigns the results in a mask: the first two go to the second register operand and the register
/// behind it, the others to the first operand.
void set_results(Lowerer& to, const Operand& rest, const Operand& first, std::uint32_t number,
                 std::uint32_t& slot) {
  const Slot target = to.target(number < 2 ? first : rest);
  slot = target == Frame::sink ? target : target + number % 2 * Frame::slot_bytes;
}

std::uint32_t take_mask(Lowerer& to, Form& form) {
  const std::int64_t mask = form.more() ? to.number(form.next()) : 0xf;
  if (mask < 1 || mask > 0xf) to.refuse("its mask is not one of four results");
  return static_cast<std::uint32_t>(mask);
}

/// Offsets in texels, that of each dimension so many bits behind the last one in a word.
void set_offsets(TextureAccess& access, Slot word, std::uint32_t from, std::uint32_t distance) {
  for (std::uint32_t d = 0; d < access.dimensions; ++d) {
    access.offsets[d] = word;
    access.offset_shifts[d] = static_cast<std::uint8_t>(from + d * distance);
  }
}

/// Emits the read. The engine gives all four results; those not in the mask go to a slot that is
/// never read.
void read_texture(Lowerer& to, TextureAccess& access, std::uint32_t mask, const Operand& rest,
                  const Operand& first) {
  std::uint32_t number = 0;
  for (std::uint32_t e = 0; e < 4; ++e) {
    if ((mask >> e & 1) == 0) {
      access.values[e] = Frame::sink;
    } else {
      set_results(to, rest, first, number++, access.values[e]);
    }
  }
  to.row_follows();
  to.emit(Action::texture, static_cast<std::uint32_t>(to.program().textures.size()));
  to.program().textures.push_back(access);
}

/// The arguments are in one vector of registers (layer, coordinates) and a second one (with .B the
/// handle, then the level, then offsets with .AOFFI); with .SCR in two vectors of equal length.
/// There is only one level.
void sample(Lowerer& to, Form& form, TextureAccess access) {
  const bool scattered = form.take("SCR");
  const bool holds_handle = form.take("B");
  const bool has_level = form.take("LL");
  if (!has_level && !form.take("LZ") && access.fetch) to.refuse("only .LL and .LZ are executed");
  if (access.fetch && has_level) form.take("CL");
  const bool has_offsets = form.take("AOFFI");
  const Operand& rest = form.next();
  const Operand& first = form.next();
  const Operand& a = form.next();
  const bool has_second = form.peek().kind == Operand::Kind::reg;
  const Operand& b = has_second ? form.next() : a;
  if (!holds_handle) access.object = take_object(to, form);
  take_shape(to, form.next(), access);
  const std::uint32_t mask = take_mask(to, form);
  const std::uint32_t coordinates = access.dimensions + (access.layered ? 1u : 0u);
  const std::uint32_t before = coordinates + (holds_handle ? 1u : 0u) + (has_level ? 1u : 0u);
  const std::uint32_t arguments = before + (has_offsets ? 1u : 0u);
  const std::uint32_t in_first = scattered ? (arguments + 1) / 2 : coordinates;
  if (scattered && arguments > 4) to.refuse("it has too many coordinates");
  if (arguments > in_first && !has_second) to.refuse("its coordinates are incomplete");
  const auto argument = [&](std::uint32_t i) {
    return i < in_first ? part_of(to, a, i) : part_of(to, b, i - in_first);
  };
  for (std::uint32_t i = 0; i < coordinates; ++i) access.coordinates[i] = argument(i);
  if (holds_handle) access.object = object_of(to, argument(coordinates));
  if (has_offsets) {
    access.offset_bits = access.gather ? 6 : 4;
    set_offsets(access, argument(before), 0, access.gather ? 8 : 4);
  }
  read_texture(to, access, mask, rest, first);
}

/// Surfaces: raw bytes at coordinates, the first of which counts bytes. The layer comes last.
template <bool is_load>
void surface(Lowerer& to, Form& form) {
  TextureAccess access;
  if (!form.take("D") || !form.take("BA")) to.refuse("only the form .D.BA is executed");
  constexpr std::tuple<std::string_view, std::uint8_t, bool> shapes[] = {{"1D", 1, false},
                                                                         {"2D", 2, false},
                                                                         {"3D", 3, false},
                                                                         {"1D_ARRAY", 1, true},
                                                                         {"2D_ARRAY", 2, true}};
  access.dimensions = 0;
  for (const auto& [name, dimensions, layered] : shapes) {
    if (access.dimensions != 0 || !form.take(name)) continue;
    access.dimensions = dimensions;
    access.layered = layered;
  }
  if (access.dimensions == 0) to.refuse("its shape is not executed");
  constexpr std::tuple<std::string_view, std::uint8_t, std::uint8_t> widths[] = {
      {"U8", 1, 1}, {"U16", 2, 1}, {"64", 4, 2}, {"128", 4, 4}};
  access.elements = 1;
  for (const auto& [name, bytes, elements] : widths) {
    if (!form.take(name)) continue;
    access.element_bytes = bytes;
    access.elements = elements;
    break;
  }
  simt::MemoryAccess order;
  take_order(form, order);
  access.out_of_bounds = form.take("TRAP") ? 0 : form.take("IGN") ? 2 : 1;
  const Operand* values = is_load ? &form.next() : nullptr;
  const Operand& place = form.next();
  if (!is_load) values = &form.next();
  access.object = take_object(to, form);
  if (place.kind != Operand::Kind::address || place.base == Operand::no_base ||
      place.base == zero_register || place.uniform_base != Operand::no_base || place.integer != 0) {
    to.refuse("operand " + place.text + " is not a register alone");
  }
  const Slot first = to.frame().reg(place.base);
  const std::uint32_t layers = access.layered ? 1 : 0;
  for (std::uint32_t d = 0; d < access.dimensions; ++d) {
    access.coordinates[layers + d] = first + d * Frame::slot_bytes;
  }
  if (access.layered) access.coordinates[0] = first + access.dimensions * Frame::slot_bytes;
  const Slot value = is_load ? to.target(*values) : to.word(*values);
  for (std::uint32_t e = 0; e < access.elements; ++e) {
    access.values[e] = value == Frame::zero ? value : value + e * Frame::slot_bytes;
  }
  to.row_follows();
  to.emit(is_load ? Action::surface_load : Action::surface_store,
          static_cast<std::uint32_t>(to.program().textures.size()));
  to.program().textures.push_back(access);
}

}  // namespace

void handlers::tex(Lowerer& to, Form& form) { sample(to, form, {}); }
void handlers::tld(Lowerer& to, Form& form) { sample(to, form, {.fetch = true}); }

/// The component's letter comes before .B, the object in a register, which may stand there, too.
void handlers::tld4(Lowerer& to, Form& form) {
  TextureAccess access;
  access.gather = true;
  constexpr std::tuple<std::string_view, std::uint8_t> components[] = {
      {"R", 0}, {"G", 1}, {"A", 3}, {"B", 2}};
  for (const auto& [name, number] : components) {
    if (!form.take(name)) continue;
    access.component = number;
    sample(to, form, access);
    return;
  }
  to.refuse("it names no component");
}

/// The first vector has the object with .B, the coordinates, and a word with the layer in its lower
/// half and offsets of four bits in its upper one. The second one has gradients, which choose a
/// level: there is only one.
void handlers::txd(Lowerer& to, Form& form) {
  TextureAccess access;
  const bool holds_handle = form.take("B");
  const bool has_offsets = form.take("AOFFI");
  const Operand& rest = form.next();
  const Operand& first = form.next();
  const Operand& a = form.next();
  to.word(form.next());
  if (!holds_handle) access.object = take_object(to, form);
  take_shape(to, form.next(), access);
  if (access.cube || access.dimensions == 3) to.refuse("only lines and planes have gradients");
  const std::uint32_t mask = take_mask(to, form);
  std::uint32_t next = 0;
  if (holds_handle) access.object = object_of(to, part_of(to, a, next++));
  const std::uint32_t before = access.layered ? 1 : 0;
  for (std::uint32_t d = 0; d < access.dimensions; ++d) {
    access.coordinates[before + d] = part_of(to, a, next++);
  }
  if (access.layered) access.coordinates[0] = part_of(to, a, next);
  access.layer_mask = 0xffff;
  if (has_offsets) set_offsets(access, part_of(to, a, next), 16, 4);
  read_texture(to, access, mask, rest, first);
}

/// Width, height and depth of the texels.
void handlers::txq(Lowerer& to, Form& form) {
  const Operand& rest = form.next();
  const Operand& first = form.next();
  const bool holds_handle = form.take("B");
  const Slot source = to.word(form.next());  // the handle, or the level
  if (form.next().text != "TEX_HEADER_DIMENSION") to.refuse("its query is not executed");
  const Slot object = holds_handle ? object_of(to, source) : take_object(to, form);
  const std::uint32_t mask = take_mask(to, form);
  if (mask > 7) to.refuse("only width, height and depth are executed");
  to.row_follows();
  std::uint32_t number = 0;
  for (std::uint8_t query = 0; query < 3; ++query) {
    if ((mask >> query & 1) == 0) continue;
    TextureAccess access;
    access.object = object;
    access.query = query;
    set_results(to, rest, first, number++, access.values[0]);
    to.emit(Action::texture_query, static_cast<std::uint32_t>(to.program().textures.size()));
    to.program().textures.push_back(access);
  }
}

void handlers::suld(Lowerer& to, Form& form) { surface<true>(to, form); }
void handlers::sust(Lowerer& to, Form& form) { surface<false>(to, form); }

}  // namespace warpstack::sass
