#include "trace/columns/touched_pages.h"

#include <cstddef>
#include <vector>

namespace warpstack::trace {

double TouchedPages::add(const KernelTrace& trace, const InterruptCheck& interrupt) {
  constexpr std::uint64_t sectors_per_page = bytes_per_page / sector_bytes;
  const std::uint64_t launch = ++num_launches_;
  std::uint64_t touched = 0;
  std::uint64_t fresh = 0;
  std::uint64_t last_page = 0;
  bool last_is_fresh = false;
  std::vector<std::byte> scratch;
  for (std::size_t b = 0; b < trace.blocks().size(); ++b) {
    if (b % 1024 == 0 && interrupt) interrupt();
    const ColumnView columns =
        trace.blocks().read(b, {}, {0, 0, trace.blocks().counts(b).sectors, 0}, scratch);
    for (const std::uint64_t sector : columns.sector) {
      const std::uint64_t page = sector / sectors_per_page;
      // Neighbours mostly lie in the same page.
      if (touched++ == 0 || page != last_page) {
        last_page = page;
        last_is_fresh = first_launch_.try_emplace(page, launch).first->second == launch;
      }
      fresh += last_is_fresh;
    }
  }
  return touched > 0 ? static_cast<double>(fresh) / static_cast<double>(touched) : 0;
}

}  // namespace warpstack::trace
