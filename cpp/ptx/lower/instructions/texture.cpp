#include <algorithm>
#include <vector>

#include "ptx/lower/instructions.h"
#include "ptx/lower/memory_operands.h"

// Textures and surfaces.

namespace warpstack::ptx::handlers {
namespace {

/// Reads what chooses the level of a mipmap. There is only one level.
void read_level(Emitter& e, const Operand& level, std::vector<std::uint32_t>& uses) {
  for (const Operand* element : elements_of(level)) {
    const bool zero =
        (element->kind == Operand::Kind::floating || element->kind == Operand::Kind::integer) &&
        element->integer == 0;
    if (!zero) uses.push_back(e.in(*element, Type::b32));
  }
}

void take_geometry(Modifiers& modifiers, TextureAccess& access) {
  const auto shape =
      modifiers.take_one_of({"1d", "2d", "3d", "a1d", "a2d", "cube", "acube", "2dms"});
  if (!shape) throw Unsupported{"it names no geometry"};
  if (*shape == 7) throw Unsupported{"multisampled textures are not supported"};
  static constexpr std::uint8_t dimensions[] = {1, 2, 3, 1, 2, 3, 3};
  access.dimensions = dimensions[*shape];
  access.layered = *shape == 3 || *shape == 4 || *shape == 6;
  access.cube = *shape == 5 || *shape == 6;
}

/// The handle in a register, or the number of a `.texref` variable.
std::vector<std::uint32_t> texture_object(Emitter& e, const Operand& from, TextureAccess& access) {
  if (from.elements.empty()) throw Unsupported{"its texture operand is missing"};
  const Operand& object = from.elements[0];
  if (object.kind == Operand::Kind::variable) {
    const auto found = e.symbols().texture_references.find(object.name);
    if (found == e.symbols().texture_references.end()) {
      throw Unsupported{object.name + " is not a texture reference"};
    }
    access.reference = found->second;
    return {};
  }
  access.object = e.in(object, Type::u64);
  return {access.object};
}

/// What is behind the coordinates and levels: a vector of offsets in texels.
void take_offsets(Emitter& e, std::size_t next, TextureAccess& access,
                  std::vector<std::uint32_t>& uses) {
  if (next >= e.num_operands()) return;
  const Operand& given = e.operand(next);
  const auto offsets = elements_of(given);
  if (given.kind != Operand::Kind::vector || next + 1 < e.num_operands()) {
    throw Unsupported{"comparisons with a depth are not supported"};
  }
  if (access.cube) throw Unsupported{"a cubemap has no offsets"};
  if (offsets.size() < access.dimensions) throw Unsupported{"it has too few offsets"};
  for (std::size_t d = 0; d < access.dimensions; ++d) {
    access.offsets[d] = e.in(*offsets[d], Type::b32);
    uses.push_back(access.offsets[d]);
  }
}

/// A read of a texture whose opcode has been taken, with `levels` operands that choose a level.
void read_texture(Emitter& e, TextureAccess& access, Type coordinate, std::size_t levels) {
  if (e.operand(0).paired) throw Unsupported{"whether texels are resident is not known"};
  const Operand& from = e.operand(1);
  if (from.kind != Operand::Kind::texture || from.elements.size() < 2) {
    throw Unsupported{"its texture operand is missing"};
  }
  std::vector<std::uint32_t> uses = texture_object(e, from, access);
  const auto coordinates = elements_of(from.elements.back());
  const std::size_t needed = access.dimensions + (access.layered ? 1u : 0u);
  if (coordinates.size() < needed) throw Unsupported{"it has too few coordinates"};
  for (std::size_t i = 0; i < needed; ++i) {
    access.coordinates[i] =
        e.in(*coordinates[i], i == 0 && access.layered ? Type::s32 : coordinate);
    uses.push_back(access.coordinates[i]);
  }
  for (std::size_t level = 0; level < levels; ++level) read_level(e, e.operand(2 + level), uses);
  take_offsets(e, 2 + levels, access, uses);
  const auto targets = elements_of(e.operand(0));
  if (targets.size() > 4) throw Unsupported{"it has too many registers"};
  access.elements = static_cast<std::uint8_t>(targets.size());
  std::vector<std::uint32_t> definitions;
  for (std::size_t i = 0; i < targets.size() && i < 4; ++i) {
    access.values[i] = e.out(*targets[i], Type::b32);
    definitions.push_back(access.values[i]);
  }
  simt::make_texel_access(e.row(), Action::texture, access);
  e.emit(Action::texture, e.program().textures, access, definitions, uses);
}

void surface(Emitter& e, Modifiers& modifiers, bool is_load) {
  if (!modifiers.take("b")) throw Unsupported{"formatted surface accesses are not supported"};
  TextureAccess access;
  take_geometry(modifiers, access);
  if (access.cube) throw Unsupported{"it names no geometry of a surface"};
  modifiers.take_one_of({"ca", "cg", "cs", "cv", "wb", "wt"});
  access.elements = take_elements(modifiers);
  const Type type = modifiers.need_type();
  access.element_bytes = static_cast<std::uint8_t>(bytes_of(type));
  const auto beyond = modifiers.take_one_of({"trap", "clamp", "zero"});
  access.out_of_bounds = static_cast<std::uint8_t>(beyond.value_or(0));
  const Operand& at = e.operand(is_load ? 1 : 0);
  if (at.kind != Operand::Kind::texture) throw Unsupported{"its surface operand is missing"};
  std::vector<std::uint32_t> uses = texture_object(e, at, access);
  const auto coordinates = elements_of(at.elements.back());
  if (coordinates.size() < access.dimensions + (access.layered ? 1u : 0u)) {
    throw Unsupported{"it has too few coordinates"};
  }
  for (std::size_t i = 0; i < coordinates.size() && i < 4; ++i) {
    access.coordinates[i] = e.in(*coordinates[i], Type::b32);
    uses.push_back(access.coordinates[i]);
  }
  const auto registers = elements_of(e.operand(is_load ? 0 : 1));
  if (registers.size() != access.elements || registers.size() > 4) {
    throw Unsupported{"it has too few or many registers"};
  }
  std::vector<std::uint32_t> definitions;
  for (std::size_t i = 0; i < registers.size() && i < 4; ++i) {
    const Type width = bits_type(std::max(bytes_of(type), 2u));
    access.values[i] = is_load ? e.out(*registers[i], width) : e.in(*registers[i], width);
    (is_load ? definitions : uses).push_back(access.values[i]);
  }
  const Action action = is_load ? Action::surface_load : Action::surface_store;
  simt::make_texel_access(e.row(), action, access);
  e.emit(action, e.program().textures, access, definitions, uses);
}

}  // namespace

void tex(Emitter& e, Modifiers& modifiers) {
  TextureAccess access;
  const bool has_level = modifiers.take("level");
  const bool has_gradients = modifiers.take("grad");
  modifiers.take("base");
  take_geometry(modifiers, access);
  modifiers.take("v4");
  access.type = modifiers.need_type();
  const Type coordinate = modifiers.need_type();
  access.fetch = coordinate == Type::s32;
  if (access.cube && access.fetch) throw Unsupported{"cubemaps are not read at integers"};
  read_texture(e, access, coordinate, has_gradients ? 2 : has_level ? 1 : 0);
}

void tld4(Emitter& e, Modifiers& modifiers) {
  TextureAccess access;
  const auto component = modifiers.take_one_of({"r", "g", "b", "a"});
  if (!component) throw Unsupported{"it names no component"};
  access.gather = true;
  access.component = static_cast<std::uint8_t>(*component);
  access.offset_bits = 6;  // as in machine code
  take_geometry(modifiers, access);
  if (access.dimensions != (access.cube ? 3 : 2)) {
    throw Unsupported{"only planes and cubemaps are gathered"};
  }
  modifiers.take("v4");
  access.type = modifiers.need_type();
  read_texture(e, access, modifiers.need_type(), 0);
  if (access.elements != 4) throw Unsupported{"it has too few registers"};
}

void suld(Emitter& e, Modifiers& modifiers) { surface(e, modifiers, true); }

void sust(Emitter& e, Modifiers& modifiers) { surface(e, modifiers, false); }

void txq(Emitter& e, Modifiers& modifiers) {
  TextureAccess access;
  const auto query = modifiers.take_one_of({"width", "height", "depth"});
  if (!query) throw Unsupported{"this query is not supported"};
  access.query = static_cast<std::uint8_t>(*query);
  modifiers.need_type();
  const std::vector<std::uint32_t> uses = texture_object(e, e.operand(1), access);
  access.values[0] = e.out(0, Type::b32);
  e.emit(Action::texture_query, e.program().textures, access, {access.values[0]}, uses);
}

}  // namespace warpstack::ptx::handlers
