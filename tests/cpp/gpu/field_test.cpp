#include "gpu/field.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/error.h"
#include "gpus.h"

namespace warpstack::gpu {
namespace {

TEST(Fields, AreInTheOrderOfTheirNames) {
  EXPECT_EQ(name_of(FieldName::num_sms), "num_sms");
  EXPECT_EQ(name_of(FieldName::shared_memory_latency), fields().back().name);
  for (std::size_t i = 0; i < fields().size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(fields()[i].id), i);
    EXPECT_FALSE(fields()[i].meaning.empty());
    EXPECT_LE(fields()[i].least, fields()[i].most);
  }
}

TEST(Fields, ValuesComeBack) {
  Gpu gpu = testing::small_gpu();
  for (const Field& field : fields()) {
    const Value value = value_of(gpu, field.id);
    set(gpu, field.id, value);
    EXPECT_EQ(value_of(gpu, field.id), value) << field.name;
  }
  EXPECT_EQ(gpu, testing::small_gpu());
  set(gpu, FieldName::scheduler, std::string_view("lrr"));
  EXPECT_EQ(gpu.scheduler, Scheduler::lrr);
  set(gpu, FieldName::dram_wl, 7.0);  // a whole number
  EXPECT_EQ(gpu.dram_wl, 7u);
  set(gpu, FieldName::l1_latency, -0.0);
  EXPECT_FALSE(std::signbit(gpu.l1_latency));
}

TEST(Fields, RefuseWhatTheyCannotBe) {
  Gpu gpu = testing::small_gpu();
  EXPECT_THROW(set(gpu, FieldName::dram_wl, 7.5), InputError);
  EXPECT_THROW(set(gpu, FieldName::dram_wl, -1.0), InputError);
  EXPECT_THROW(set(gpu, FieldName::num_sms, 0u), InputError);
  EXPECT_THROW(set(gpu, FieldName::clock_ghz, std::nan("")), InputError);
  EXPECT_THROW(set(gpu, FieldName::scheduler, 1.0), InputError);
  EXPECT_THROW(set(gpu, FieldName::scheduler, std::string_view("fifo")), InputError);
  EXPECT_THROW(set(gpu, FieldName::num_sms, std::string_view("many")), InputError);
  EXPECT_THROW(set(gpu, FieldName::shared_memory_carve_outs_kib, 8.0), InputError);
  EXPECT_EQ(gpu, testing::small_gpu());
}

TEST(Fields, SayTheirRange) {
  const auto range = [](FieldName id) {
    return range_text(fields()[static_cast<std::size_t>(id)]);
  };
  EXPECT_EQ(range(FieldName::num_sms), "1 to 65536");
  EXPECT_EQ(range(FieldName::l2_clock_ghz), "0, or 0.001 to 1000 GHz");
  EXPECT_EQ(range(FieldName::adaptive_l1_keeps), "sets, ways");
  EXPECT_EQ(range(FieldName::shared_memory_carve_outs_kib), "0 to 68719476736 KiB each");
}

TEST(Gpu, MustBePossible) {
  const auto fault = [](auto change) {
    Gpu gpu = testing::small_gpu();
    change(gpu);
    return fault_of(gpu).value_or("");
  };
  EXPECT_EQ(fault([](Gpu&) {}), "");
  EXPECT_EQ(fault([](Gpu& gpu) { gpu.num_sms = 0; }),
            "num_sms = 0 is less than 1; the range is 1 to 65536");
  EXPECT_EQ(fault([](Gpu& gpu) { gpu.l1_line_bytes = 100; }),
            "l1_line_bytes = 100 is not a multiple of 32 up to 256");
  EXPECT_EQ(fault([](Gpu& gpu) { gpu.l2_ways = 7; }),
            "l2_size_kib = 3072 is not a multiple of l2_line_bytes * l2_ways * l2_slices = 21 KiB; "
            "the nearest that is: 3066");
  EXPECT_EQ(fault([](Gpu& gpu) { gpu.l1_replacement = Replacement::plru; }),
            "l1_ways = 6 is not a power of two, which l1_replacement = plru needs");
  EXPECT_EQ(fault([](Gpu& gpu) { gpu.dram_channels = 7; }),
            "dram_channels = 7 does not divide l2_slices = 24");
  EXPECT_EQ(fault([](Gpu& gpu) { gpu.unified_l1_kib = 96; }),
            "unified_l1_kib = 96 and shared_memory_carve_outs_kib =  belong together; give both or "
            "none");
}

}  // namespace
}  // namespace warpstack::gpu
