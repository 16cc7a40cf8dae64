// What barriers in shared memory, tensor maps and descriptors of matrices hold, by hand.

#include <gtest/gtest.h>

#include <vector>

#include "common/error.h"
#include "simt/arithmetic/matrix_descriptor.h"
#include "simt/async/async_barriers.h"
#include "simt/program/tensor_map.h"
#include "simt/state/cluster.h"
#include "trace/columns/moved_bytes.h"

namespace warpstack::simt {
namespace {

TEST(BarrierWord, PhasesEndWhenAllHaveComeAndAllBytesAreThere) {
  BarrierWord word{.pending = 2, .expected = 3, .bytes = 16};
  EXPECT_FALSE(word.end_phase());
  word.pending = 0;
  EXPECT_FALSE(word.end_phase());
  word.bytes = 0;
  EXPECT_TRUE(word.end_phase());
  EXPECT_EQ(word.pending, 3u);
  EXPECT_TRUE(word.parity);
}

TEST(BarrierWord, FieldsSurvivePacking) {
  const BarrierWord word = BarrierWord::unpack(
      BarrierWord{.pending = 5, .expected = BarrierWord::max_count, .bytes = -48, .parity = true}
          .pack());
  EXPECT_EQ(word.pending, 5u);
  EXPECT_EQ(word.expected, BarrierWord::max_count);
  EXPECT_EQ(word.bytes, -48);
  EXPECT_TRUE(word.parity);
  EXPECT_TRUE(word.valid);
  EXPECT_FALSE(BarrierWord::unpack(0).valid);
}

TEST(Swizzle, ExchangesPiecesOfSixteenBytes) {
  // The third row of 128 bytes exchanges its pieces by 2: piece 1 lies where piece 3 was.
  EXPECT_EQ(swizzled(2 * 128 + 16, Swizzle::bytes_128), 2u * 128 + 48);
  // Rows of 64 bytes: rows 2 and 3 exchange by 1.
  EXPECT_EQ(swizzled(3 * 64, Swizzle::bytes_64), 3u * 64 + 16);
  // Rows of 32 bytes: rows 4 to 7.
  EXPECT_EQ(swizzled(3 * 32, Swizzle::bytes_32), 3u * 32);
  EXPECT_EQ(swizzled(4 * 32, Swizzle::bytes_32), 4u * 32 + 16);
  EXPECT_EQ(swizzled(4 * 32, Swizzle::none), 4u * 32);
  // A pattern that begins at byte 256: the row there is its first.
  EXPECT_EQ(swizzled(256, Swizzle::bytes_128, 2), 256u);
}

TEST(MatrixDescriptor, PlacesRowsAndColumns) {
  // Start 256, leading 512, stride 1024, without a swizzle: row 9 is the second of the second block
  // of 8 rows; its byte 20 lies 512 bytes behind byte 4.
  const std::uint64_t plain =
      256 >> 4 | std::uint64_t{512 >> 4} << 16 | std::uint64_t{1024 >> 4} << 32;
  EXPECT_EQ(MatrixDescriptor::unpack(plain).by_rows(9, 20), 256u + 1024 + 16 + 512 + 4);
  // By columns: row 9 and k 10 are element 1 of the second 8 rows and line 2 of the second 8 k.
  EXPECT_EQ(MatrixDescriptor::unpack(plain).by_columns(9, 10), 256u + 1024 + 2 + 512 + 32);
  // 128 bytes: 64 rows are in a line of the pattern, leading bytes lead to the next 64.
  const MatrixDescriptor swizzle = MatrixDescriptor::unpack(
      std::uint64_t{2048 >> 4} << 16 | std::uint64_t{1024 >> 4} << 32 | std::uint64_t{1} << 62);
  EXPECT_EQ(swizzle.swizzle, Swizzle::bytes_128);
  EXPECT_EQ(swizzle.by_columns(64, 0), 2048u);
  EXPECT_EQ(swizzle.by_columns(0, 9), 1024u + 128 + 16);
  EXPECT_EQ(swizzle.by_rows(9, 0), 1024u + 128 + 16);
}

TEST(TensorMap, FieldsSurvivePackingAndReplacing) {
  TensorMap map = TensorMap::unpack(TensorMap{}.pack());
  map.replace(TensorMapField::rank, 0, 1);
  map.replace(TensorMapField::global_address, 0, 0x1000);
  map.replace(TensorMapField::global_stride, 0, 64);
  for (std::uint32_t d = 0; d < 2; ++d) {
    map.replace(TensorMapField::global_dim, d, 16);
    map.replace(TensorMapField::box_dim, d, 8);
    map.replace(TensorMapField::element_stride, d, d + 1);
  }
  map.replace(TensorMapField::elemtype, 0, 7);
  map.replace(TensorMapField::swizzle_mode, 0, 1);
  map.check();
  const TensorMap again = TensorMap::unpack(map.pack());
  EXPECT_EQ(again.rank, 2);
  EXPECT_EQ(again.address, 0x1000u);
  EXPECT_EQ(again.strides[0], 64u);
  EXPECT_EQ(again.element, TensorElement::f32);
  EXPECT_EQ(again.swizzle, Swizzle::bytes_32);
  // 8 words of every second of 8 rows.
  EXPECT_EQ(again.tile_bytes(), 8u * 4 * 4);
  EXPECT_THROW(map.replace(TensorMapField::rank, 0, 5), InputError);
  EXPECT_THROW(TensorMap{}.check(), InputError);
}

TEST(Cluster, BlocksThatAreResidentTogether) {
  EXPECT_EQ(trace::consecutive_blocks({8, 4, 2}, {4, 1, 1}), 4u);
  EXPECT_EQ(trace::consecutive_blocks({8, 4, 2}, {1, 2, 1}), 16u);
  EXPECT_EQ(trace::consecutive_blocks({8, 4, 2}, {1, 1, 2}), 64u);
  EXPECT_EQ(rank_of_address(cluster_address(100, 3)), 3u);
  EXPECT_FALSE(in_cluster(100));
  EXPECT_THROW(check_cluster({6, 1, 1}, {4, 1, 1}), InputError);
  EXPECT_THROW(check_cluster({8, 8, 1}, {8, 4, 1}), InputError);
}

TEST(MovedBytes, EachSectorOnceInOrder) {
  // Bytes 40 to 79 are in sectors 1 and 2, bytes 0 to 15 in sector 0, bytes 32 to 39 in sector 1.
  const std::vector<trace::MovedBytes> moved = {{40, 40}, {0, 16}, {32, 8}};
  std::vector<std::uint64_t> sectors;
  std::vector<std::uint32_t> bytes;
  EXPECT_EQ(trace::coalesce(moved, sectors, &bytes), 3u);
  EXPECT_EQ(sectors, (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(bytes, (std::vector<std::uint32_t>{0xffff, 0xffffffff, 0xffff}));
}

}  // namespace
}  // namespace warpstack::simt
