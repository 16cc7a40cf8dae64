// Thread blocks that are parsed beside each other give what one thread gives: kernels, counts and
// errors.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

#include "common/error.h"
#include "trace/accelsim/reader.h"
#include "trace/columns/block_storage.h"

namespace warpstack::trace {
namespace {

constexpr std::uint64_t num_blocks = 700;

/// A trace of some MiB whose instructions appear bit by bit, with the lines of each block.
std::string random_trace(std::mt19937& random, bool odd_fields) {
  std::string text =
      "-kernel name = k\n-kernel id = 1\n-grid dim = (700,1,1)\n-block dim = (64,1,1)\n-shmem = 0\n"
      "-nregs = 32\n-binary version = 80\n-shmem base_addr = 0x7f0000000000\n"
      "-local mem base_addr = 0x7e0000000000\n-accelsim tracer version = " +
      std::string(odd_fields ? "7" : "4") + "\n\n#traces format = x\n";
  const std::string immediate = odd_fields ? " 0" : "";
  for (std::uint64_t b = 0; b < num_blocks; ++b) {
    if (random() % 50 == 0 && b > 0) continue;
    text += "\n#BEGIN_TB\n\nthread block = " + std::to_string(b) + ",0,0\n";
    for (int w = 0; w < 2; ++w) {
      const unsigned count = 20 + random() % 60;
      text += "\nwarp = " + std::to_string(w) + "\ninsts = " + std::to_string(count) + "\n";
      for (unsigned i = 0; i < count; ++i) {
        // Now and then an instruction that none of the blocks before had.
        const unsigned kind = random() % 2000 == 0 ? 8 : random() % 6;
        const std::string base = std::to_string(1 + random() % 8) + "00";
        switch (kind) {
          case 0:
            text += "0010 ffffffff 1 R2 LDG.E 1 R4 4 1 0x7f12345" + base + " 4" + immediate;
            break;
          case 1:
            text += "0020 0000000f 0 STG.E 2 R4 R2 4 2 0x7f12345" + base + " 4 -8 32" + immediate;
            break;
          case 2:  // generic: shared, local or global
            text += "0030 ffffffff 1 R6 LD.E 1 R4 4 1 0x7" + std::string(1, "ef0"[random() % 3]) +
                    "0000000" + base + " 4" + immediate;
            break;
          case 8:
            text +=
                "0" + std::to_string(1000 + random() % 900) + " ffffffff 1 R2 MOV 0 0" + immediate;
            break;
          default:
            text += "0040 ffffffff 1 R3 IADD3 2 R2 R3 0" + immediate;
        }
        if (odd_fields && random() % 3000 == 0) text += " odd";
        text += "\n";
      }
    }
    text += "#END_TB\n";
  }
  return text;
}

/// The digest, the counts and what was skipped, or the error.
std::string outcome(const std::string& text, unsigned num_threads, std::size_t piece,
                    std::uint64_t limit = std::uint64_t{1} << 30) {
  try {
    AccelSimReader reader("k.traceg", std::make_shared<StorageBudget>(limit, "/tmp"), num_threads);
    for (std::size_t i = 0; i < text.size(); i += piece) {
      reader.feed(std::string_view(text).substr(i, piece));
    }
    const KernelTrace trace = reader.finish();
    std::string result = trace.digest();
    for (const RowCounts& row : trace.row_counts()) {
      result += " " + std::to_string(row.issued) + "," + std::to_string(row.active);
    }
    const auto& unknown = reader.unknown_fields();
    return result + " " + std::to_string(unknown.lines) + ":" + std::to_string(unknown.first_line) +
           unknown.first_field;
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(AccelSimThreads, GiveWhatOneThreadGives) {
  std::mt19937 random(7);
  for (int round = 0; round < 6; ++round) {
    const std::string text = random_trace(random, round % 2 == 1);
    ASSERT_GT(text.size(), std::size_t{2} << 20);
    const std::string expected = outcome(text, 1, text.size());
    ASSERT_NE(expected.substr(0, 9), "k.traceg:");
    EXPECT_EQ(outcome(text, 2, text.size()), expected);
    EXPECT_EQ(outcome(text, 3, 1 << 18), expected);
    EXPECT_EQ(outcome(text, 5, 100'003), expected);
    EXPECT_EQ(outcome(text, 3, 1 << 20, 0), expected) << "columns in a file";
  }
}

TEST(AccelSimThreads, ErrorsAreThoseOfOneThread) {
  std::mt19937 random(8);
  const std::string text = random_trace(random, false);
  const std::vector<std::pair<std::string, std::string>> changes{
      {"IADD3 2", "IADD3 x"},
      {"ffffffff", "fffffff"},
      {"warp = 1", "warp = 0"},
      {"insts = ", "insts ="},
      {"#END_TB", "#END"},
      {"thread block = ", "thread block = 7"},
      {"#BEGIN_TB", "-key"},
      {"0x7f", "7f"},
      {"\n0040", "\nq"},
      {"R3 IADD3", "R2 IADD3"},
      {"thread block = 4", "thread block = 1"},
      {"", "cut"}};
  for (const auto& [from, to] : changes) {
    for (int round = 0; round < 6; ++round) {
      std::string broken = text;
      const std::size_t place = broken.find(from, random() % broken.size());
      if (place == std::string::npos) continue;
      if (to == "cut") {
        broken.resize(place);
      } else {
        broken.replace(place, from.size(), to);
      }
      EXPECT_EQ(outcome(broken, 3, 1 << 19), outcome(broken, 1, broken.size())) << from << to;
    }
  }
}

TEST(AccelSimThreads, BlocksBeyondWhatIsHeldAreReadAsTheyCome) {
  std::mt19937 random(9);
  std::string text = random_trace(random, false);
  std::string large = "#BEGIN_TB\nthread block = 699,0,0\nwarp = 0\ninsts = 500000\n";
  for (int i = 0; i < 500'000; ++i) large += "0040 ffffffff 1 R3 IADD3 2 R2 R3 0\n";
  text.resize(text.rfind("\n#BEGIN_TB"));
  text += "\n" + large + "#END_TB\n";
  EXPECT_EQ(outcome(text, 3, 1 << 20), outcome(text, 1, text.size()));
  // The same block twice is out of order.
  EXPECT_EQ(outcome(text + large + "#END_TB\n", 3, 1 << 20),
            outcome(text + large + "#END_TB\n", 1, text.size()));
}

}  // namespace
}  // namespace warpstack::trace
