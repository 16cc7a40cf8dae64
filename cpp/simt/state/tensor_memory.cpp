#include "simt/state/tensor_memory.h"

#include <algorithm>

namespace warpstack::simt {

std::optional<std::uint32_t> TensorMemory::allocate(std::uint32_t columns, TensorMemory* other) {
  for (std::uint32_t first = 0; first + columns <= tensor_columns; first += columns) {
    if (!is_free(first, columns)) continue;
    if (other != nullptr && !other->is_free(first, columns)) continue;
    add(first, columns);
    if (other != nullptr) other->add(first, columns);
    return first;
  }
  return std::nullopt;
}

bool TensorMemory::is_free(std::uint32_t first, std::uint32_t columns) const {
  return std::ranges::none_of(allocations_, [&](const Allocation& one) {
    return one.first < first + columns && first < one.first + one.columns;
  });
}

void TensorMemory::add(std::uint32_t first, std::uint32_t columns) {
  if (words_.empty()) words_.assign(std::size_t{tensor_lanes} * tensor_columns, 0);
  allocations_.push_back({.first = first, .columns = columns, .place = {}});
}

TensorMemory::Allocation& TensorMemory::allocation_at(std::uint32_t first) {
  return *std::ranges::find(allocations_, first, &Allocation::first);
}

bool TensorMemory::release(std::uint32_t first, std::uint32_t columns) {
  return std::erase_if(allocations_, [&](const Allocation& one) {
           return one.first == first && one.columns == columns;
         }) > 0;
}

bool TensorMemory::holds(std::uint32_t first, std::uint32_t columns) const {
  // Allocations side by side are as good as one.
  std::uint32_t column = first;
  while (column < first + columns) {
    const auto found = std::ranges::find_if(allocations_, [&](const Allocation& one) {
      return one.first <= column && column < one.first + one.columns;
    });
    if (found == allocations_.end()) return false;
    column = found->first + found->columns;
  }
  return true;
}

std::string TensorMemory::text() const {
  if (allocations_.empty()) return "no columns";
  std::string result;
  for (const Allocation& one : allocations_) {
    result += result.empty() ? "columns " : ", ";
    result += std::to_string(one.first) + "-" + std::to_string(one.first + one.columns - 1);
  }
  return result;
}

}  // namespace warpstack::simt
