#include "stand_ins/state/host_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

using warpstack::cudart::host_readable;
using warpstack::cudart::host_writable;

const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));

/// Eight fresh pages; the test changes some of them.
class HostMemory : public testing::Test {
 protected:
  void SetUp() override {
    void* const memory =
        ::mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    begin_ = reinterpret_cast<std::uint64_t>(memory);
  }
  void TearDown() override { ::munmap(at(0), 8 * page); }
  void* at(std::uint64_t number) const { return reinterpret_cast<void*>(begin_ + number * page); }

  std::uint64_t begin_ = 0;
};

TEST_F(HostMemory, OrdinaryMemoryIsBoth) {
  EXPECT_TRUE(host_readable(begin_, 8 * page));
  EXPECT_TRUE(host_writable(begin_ + 3, 8 * page - 3));
  std::vector<char> heap(1000);
  const char constant = 1;
  EXPECT_TRUE(host_writable(reinterpret_cast<std::uint64_t>(heap.data()), heap.size()));
  EXPECT_TRUE(host_readable(reinterpret_cast<std::uint64_t>(&constant), 1));
}

TEST_F(HostMemory, ReadOnlyPagesAreReadable) {
  ASSERT_EQ(::mprotect(at(2), page, PROT_READ), 0);
  EXPECT_TRUE(host_readable(begin_, 8 * page));
  EXPECT_FALSE(host_writable(begin_, 8 * page));
  EXPECT_TRUE(host_writable(begin_, 2 * page));
  EXPECT_FALSE(host_writable(begin_, 2 * page + 1)) << "one byte of it";
  static const char text[] = "a constant";
  EXPECT_TRUE(host_readable(reinterpret_cast<std::uint64_t>(text), sizeof text));
}

TEST_F(HostMemory, GuardPagesAndHolesAreNeither) {
  ASSERT_EQ(::mprotect(at(2), page, PROT_NONE), 0);
  ASSERT_EQ(::munmap(at(5), page), 0);
  EXPECT_TRUE(host_readable(begin_, 2 * page));
  EXPECT_FALSE(host_readable(begin_, 2 * page + 1));
  EXPECT_FALSE(host_readable(begin_ + 2 * page, 1));
  EXPECT_TRUE(host_readable(begin_ + 3 * page, 2 * page));
  EXPECT_FALSE(host_readable(begin_ + 3 * page, 3 * page)) << "it runs into a hole";
  EXPECT_FALSE(host_writable(begin_ + 4 * page, 4 * page)) << "the hole is inside";
  EXPECT_TRUE(host_writable(begin_ + 6 * page, 2 * page));
}

TEST_F(HostMemory, PagesBehindTheEndOfAFileAreNeither) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(::ftruncate(::fileno(file), static_cast<off_t>(page)), 0);
  void* const mapped =
      ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, ::fileno(file), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto address = reinterpret_cast<std::uint64_t>(mapped);
  EXPECT_TRUE(host_writable(address, page));
  EXPECT_FALSE(host_readable(address, 2 * page));
  ::munmap(mapped, 2 * page);
  std::fclose(file);
}

TEST_F(HostMemory, NoSuchAddresses) {
  for (const std::uint64_t address :
       {std::uint64_t{0}, std::uint64_t{8}, ~std::uint64_t{0}, ~std::uint64_t{0} - page,
        std::uint64_t{1} << 63, std::uint64_t{0xdead} << 48}) {
    EXPECT_FALSE(host_readable(address, 1)) << address;
    EXPECT_FALSE(host_writable(address, 64)) << address;
    EXPECT_TRUE(host_readable(address, 0)) << "nothing is always there";
  }
  EXPECT_FALSE(host_readable(begin_, ~std::uint64_t{0})) << "the end wraps around";
  EXPECT_FALSE(host_readable(begin_, ~std::uint64_t{0} - begin_));
}

}  // namespace
