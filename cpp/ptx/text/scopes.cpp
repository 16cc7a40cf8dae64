#include "ptx/text/scopes.h"

#include <algorithm>
#include <utility>

namespace warpstack::ptx {
namespace {

constexpr std::size_t max_scopes = 200;
constexpr std::size_t max_register_digits = 8;

/// Calls `found(prefix, number)` for every way to read a name as a member of a parameterised
/// declaration: `%r15` is number 15 of `%r` and number 5 of `%r1`. Stops when it returns true.
template <typename Found>
void for_each_member_reading(std::string_view name, Found found) {
  std::uint64_t number = 0;
  std::uint64_t scale = 1;
  for (std::size_t digits = 1; digits <= max_register_digits && digits < name.size(); ++digits) {
    const char digit = name[name.size() - digits];
    if (digit < '0' || digit > '9') return;
    number += scale * static_cast<std::uint64_t>(digit - '0');
    scale *= 10;
    if (digit == '0' && digits > 1) continue;  // %r05 is not a member
    if (found(name.substr(0, name.size() - digits), number)) return;
  }
}

}  // namespace

void Scopes::open(std::size_t first_pending) {
  if (scopes_.size() == max_scopes) {
    lexer_.fail(lexer_.token().line,
                "scopes are nested more than " + std::to_string(max_scopes) + " deep");
  }
  Scope scope;
  scope.first_pending = first_pending;
  scope.line = lexer_.token().line;
  scopes_.push_back(std::move(scope));
}

Scope Scopes::close() {
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  return scope;
}

void Scopes::declare(std::string_view name, Symbol symbol) {
  Scope& scope = scopes_.back();
  const std::uint32_t line = symbol.line;
  for_each_member_reading(name, [&](std::string_view prefix, std::uint64_t number) {
    if (const auto range = scope.ranges.find(prefix);
        range != scope.ranges.end() && number < range->second.count) {
      fail_duplicate(lexer_, name, line, range->second.line);
    }
    const auto [entry, is_new] = scope.smallest_members.try_emplace(prefix, number);
    entry->second = std::min(entry->second, number);
    return false;
  });
  const auto [entry, is_new] = scope.symbols.try_emplace(name, std::move(symbol));
  if (!is_new) fail_duplicate(lexer_, name, line, entry->second.line);
}

void Scopes::declare_range(std::string_view prefix, const RegisterRange& range) {
  Scope& scope = scopes_.back();
  const auto [entry, is_new] = scope.ranges.try_emplace(prefix, range);
  if (!is_new) fail_duplicate(lexer_, prefix, range.line, entry->second.line);
  const auto smallest = scope.smallest_members.find(prefix);
  if (smallest != scope.smallest_members.end() && smallest->second < range.count) {
    lexer_.fail(range.line, quoted(std::string(prefix) + std::to_string(smallest->second)) +
                                " is declared a second time");
  }
}

Symbol* Scopes::find(std::string_view name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->symbols.find(name); found != scope->symbols.end()) {
      return &found->second;
    }
    Symbol* member = nullptr;
    for_each_member_reading(name, [&](std::string_view prefix, std::uint64_t number) {
      const auto range = scope->ranges.find(prefix);
      if (range == scope->ranges.end() || number >= range->second.count) return false;
      const RegisterRange& found = range->second;
      member = &scope->symbols
                    .try_emplace(name, Symbol{.kind = Symbol::Kind::reg,
                                              .type = found.type,
                                              .vector = found.vector,
                                              .line = found.line,
                                              .index = unnamed_register})
                    .first->second;
      return true;
    });
    if (member) return member;
  }
  return nullptr;
}

void fail_duplicate(const Lexer& lexer, std::string_view name, std::uint32_t line,
                    std::uint32_t first_line) {
  lexer.fail(line, quoted(name) + " is declared a second time; first on line " +
                       std::to_string(first_line));
}

}  // namespace warpstack::ptx
