#include "stand_ins/state/fat_binary.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "common/error.h"

namespace warpstack::cudart {
namespace {

using Bytes = std::vector<std::byte>;

template <typename T>
void put(Bytes& bytes, T value) {
  const auto* data = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), data, data + sizeof value);
}

Bytes bytes_of(const std::string& text) {
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

constexpr std::uint16_t kind_ptx = 1;
constexpr std::uint16_t kind_elf = 2;

/// An image as fatbinary 13.0 lays it out: a header of 64 bytes, then the payload, filled up to a
/// multiple of eight bytes.
Bytes image(std::uint16_t kind, std::uint32_t target, Bytes payload, std::uint64_t flags = 0x11,
            std::uint64_t unpacked = 0) {
  const auto packed = static_cast<std::uint32_t>(payload.size());
  payload.resize((payload.size() + 7) / 8 * 8);
  Bytes bytes;
  put<std::uint16_t>(bytes, kind);
  put<std::uint16_t>(bytes, 0x101);
  put<std::uint32_t>(bytes, 64);
  put<std::uint64_t>(bytes, payload.size());
  put<std::uint32_t>(bytes, unpacked == 0 ? 0 : packed);
  put<std::uint32_t>(bytes, 0);
  put<std::uint32_t>(bytes, 0x90000);  // PTX ISA 9.0
  put<std::uint32_t>(bytes, target);
  put<std::uint64_t>(bytes, 0);  // name
  put<std::uint64_t>(bytes, flags);
  put<std::uint64_t>(bytes, 0);
  put<std::uint64_t>(bytes, unpacked);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

Bytes container(const std::vector<Bytes>& images) {
  Bytes content;
  for (const Bytes& one : images) content.insert(content.end(), one.begin(), one.end());
  Bytes bytes;
  put<std::uint32_t>(bytes, 0xba55ed50);
  put<std::uint16_t>(bytes, 1);
  put<std::uint16_t>(bytes, 16);
  put<std::uint64_t>(bytes, content.size());
  bytes.insert(bytes.end(), content.begin(), content.end());
  return bytes;
}

std::string message_of(const Bytes& bytes) {
  try {
    best_ptx(bytes, 90);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(FatBinary, HighestTargetThatFits) {
  const auto ptx = [](std::uint32_t target) {
    return image(kind_ptx, target, bytes_of("target " + std::to_string(target)));
  };
  EXPECT_EQ(best_ptx(container({ptx(75), ptx(86), ptx(100)}), 90), "target 86");
  EXPECT_EQ(best_ptx(container({ptx(86), ptx(75), ptx(100)}), 90), "target 86");
  EXPECT_EQ(best_ptx(container({ptx(120), ptx(100)}), 90), "target 100");
  EXPECT_EQ(best_ptx(container({image(kind_elf, 90, bytes_of("ELF")), ptx(52)}), 90), "target 52");
}

/// The same with the name of a source file behind the 64 bytes of the header.
Bytes named(const std::string& name, Bytes image) {
  Bytes text = bytes_of(name);
  text.resize((text.size() + 7) / 8 * 8);
  const auto header_bytes = static_cast<std::uint32_t>(64 + text.size());
  const std::uint32_t place[] = {64, static_cast<std::uint32_t>(name.size())};
  std::memcpy(image.data() + 4, &header_bytes, sizeof header_bytes);
  std::memcpy(image.data() + 32, place, sizeof place);
  image.insert(image.begin() + 64, text.begin(), text.end());
  return image;
}

TEST(FatBinary, PtxOfLinkedObjects) {
  const auto ptx = [](const std::string& text) { return image(kind_ptx, 75, bytes_of(text)); };
  const Bytes a = container(
      {named("a.cu ", image(kind_elf, 75, bytes_of("ELF"))), named("a.cu ", ptx("first"))});
  const Bytes b = container({image(kind_ptx, 100, bytes_of("later")), ptx("second")});
  const Bytes runtime = container({ptx(".extern .func cnpGetParameterBufferV2;")});
  const std::vector<std::span<const std::byte>> objects{a, runtime, b};
  const std::vector<PtxImage> images = relocatable_ptx(objects, 90);
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(images[0].name, "a.cu");
  EXPECT_EQ(images[0].text, "first");
  EXPECT_EQ(images[1].name, "object 3");
  EXPECT_EQ(images[1].text, "second");
  const Bytes without = container({named("c.cu", image(kind_elf, 80, bytes_of("ELF")))});
  try {
    (void)relocatable_ptx(std::vector<std::span<const std::byte>>{a, without}, 90);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "c.cu, a part of the program's relocatable device code, has no PTX but machine "
                 "code for sm_80; build all parts with PTX, which warpstack links: nvcc -rdc=true "
                 "-arch=sm_75 (and -cudart shared, without -dlto); or run the machine code "
                 "(--machine-code) of kernels that neither launch kernels nor call functions that "
                 "are not inlined");
  }
}

TEST(FatBinary, ANameBeyondItsHeaderIsNone) {
  Bytes bytes = named("a.cu", image(kind_ptx, 75, bytes_of("text")));
  const std::uint32_t too_many = 100;
  std::memcpy(bytes.data() + 36, &too_many, sizeof too_many);
  const Bytes whole = container({bytes});
  EXPECT_EQ(fat_binary_entries(whole).at(0).name, "");
}

TEST(FatBinary, MachineCodeComesBeforePtx) {
  const auto one = [](std::uint16_t kind, std::uint32_t target) {
    return image(kind, target,
                 bytes_of((kind == kind_elf ? "sm_" : "compute_") + std::to_string(target) +
                          std::string(4, ' ')));
  };
  const auto chosen = [](const Bytes& bytes, std::uint32_t target) {
    const std::string text = image_for(bytes, target).bytes;
    return text.substr(0, text.find(' '));
  };
  const Bytes many = container({one(kind_elf, 75), one(kind_elf, 80), one(kind_elf, 86),
                                one(kind_ptx, 75), one(kind_ptx, 90)});
  EXPECT_EQ(chosen(many, 80), "sm_80");
  EXPECT_EQ(chosen(many, 86), "sm_86");
  EXPECT_EQ(chosen(many, 89), "sm_86");  // as a GPU of 8.9 runs it
  EXPECT_EQ(chosen(many, 90), "compute_90");
  EXPECT_EQ(chosen(container({one(kind_ptx, 52), one(kind_ptx, 75), one(kind_elf, 90)}), 80),
            "compute_75");
  EXPECT_EQ(image_for(many, 80).kind, FatBinaryEntry::Kind::machine_code);
  try {
    (void)image_for(container({one(kind_elf, 75), one(kind_ptx, 90), one(kind_elf, 90)}), 80);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "the program has no machine code for sm_80 and no PTX that could be assembled for "
        "it; it has machine code for sm_75, sm_90; it has PTX for compute_90; build it with "
        "nvcc -arch=sm_80 (and -cudart shared)");
  }
}

TEST(FatBinary, MachineCodeKeepsItsZeros) {
  const Bytes bytes = container({image(kind_elf, 80,
                                       bytes_of(std::string("\x7f"
                                                            "E\0F\0\0\0\0",
                                                            8)))});
  EXPECT_EQ(image_for(bytes, 80).bytes, std::string("\x7f"
                                                    "E\0F\0\0\0\0",
                                                    8));
}

TEST(FatBinary, ContainersAreFoundInFiles) {
  const Bytes one = container({image(kind_elf, 80, bytes_of("one"))});
  Bytes file = bytes_of("a program ");
  file.insert(file.end(), one.begin(), one.end());
  put<std::uint32_t>(file, 0xba55ed50);  // a number alone is none
  file.insert(file.end(), one.begin(), one.end());
  EXPECT_EQ(fat_binaries_in(file).size(), 2u);
  EXPECT_EQ(fat_binaries_in(bytes_of("a program")).size(), 0u);
  file.pop_back();
  EXPECT_THROW((void)fat_binaries_in(file), InputError);
}

TEST(FatBinary, TextEndsAtItsFirstZero) {
  EXPECT_EQ(best_ptx(container({image(kind_ptx, 75, bytes_of(std::string("abc\0\0", 5)))}), 90),
            "abc");
}

TEST(FatBinary, OnlyMachineCodeNamesTheRemedy) {
  const std::string message = message_of(
      container({image(kind_elf, 80, bytes_of("x")), image(kind_elf, 75, bytes_of("x"))}));
  EXPECT_NE(message.find("machine code for sm_75, sm_80"), std::string::npos) << message;
  EXPECT_NE(message.find("-gencode arch=compute_75,code=compute_75"), std::string::npos) << message;
  EXPECT_NE(message_of(container({})).find("no PTX"), std::string::npos);
}

TEST(FatBinary, Lz4) {
  // Four literals "abcd", then 4 + 3 bytes from four back ("abcdabc"), then the literal "!".
  Bytes packed = bytes_of(
      "\x43"
      "abcd");
  put<std::uint16_t>(packed, 4);
  const Bytes end = bytes_of("\x10!");
  packed.insert(packed.end(), end.begin(), end.end());
  EXPECT_EQ(unpack_lz4(packed, 12), "abcdabcdabc!");
  EXPECT_EQ(best_ptx(container({image(kind_ptx, 75, packed, 0x2011, 12)}), 90), "abcdabcdabc!");
  EXPECT_THROW(unpack_lz4(packed, 11), InputError);
  EXPECT_THROW(unpack_lz4(packed, 13), InputError);
  for (std::size_t size = 1; size < packed.size(); ++size) {
    EXPECT_THROW(unpack_lz4(std::span(packed).first(size), 12), InputError) << size;
  }
}

TEST(FatBinary, Lz4LengthsBeyondOneByte) {
  // 15 + 255 + 0 literals, then a match of 15 + 10 + 4 bytes that overlaps itself.
  Bytes packed = bytes_of(std::string("\xff\xff\x00", 3) + std::string(270, 'x'));
  put<std::uint16_t>(packed, 1);
  put<std::uint8_t>(packed, 10);
  EXPECT_EQ(unpack_lz4(packed, 299), std::string(299, 'x'));
}

TEST(FatBinary, Lz4RefusesDistancesBeforeTheText) {
  Bytes packed = bytes_of(
      "\x40"
      "abcd");
  for (const std::uint16_t distance : {0, 5}) {
    Bytes bad = packed;
    put<std::uint16_t>(bad, distance);
    EXPECT_THROW(unpack_lz4(bad, 8), InputError);
  }
}

TEST(FatBinary, Zstd) {
  // A frame by RFC 8878: magic number, one segment with a size in one byte, one last raw block.
  const std::string text = "hello";
  Bytes packed = bytes_of("\x28\xb5\x2f\xfd\x20\x05");
  const std::uint32_t block = static_cast<std::uint32_t>(text.size()) << 3 | 1;
  for (int shift = 0; shift < 24; shift += 8) {
    put<std::uint8_t>(packed, static_cast<std::uint8_t>(block >> shift));
  }
  const Bytes raw = bytes_of(text);
  packed.insert(packed.end(), raw.begin(), raw.end());
  const std::string message = message_of(container({image(kind_ptx, 75, packed, 0x8011, 5)}));
  if (message.find("libzstd") != std::string::npos) GTEST_SKIP() << message;
  EXPECT_EQ(message, "");
  EXPECT_EQ(best_ptx(container({image(kind_ptx, 75, packed, 0x8011, 5)}), 90), "hello");
  for (const std::uint64_t wrong : {4, 6}) {
    EXPECT_NE(message_of(container({image(kind_ptx, 75, packed, 0x8011, wrong)})), "");
  }
}

TEST(FatBinary, DamageIsAnError) {
  const Bytes good = container({image(kind_ptx, 75, bytes_of("some PTX text"))});
  ASSERT_EQ(message_of(good), "");
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(message_of(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))), "")
        << size;
  }
  const auto with = [&good](std::size_t offset, auto value) {
    Bytes bad = good;
    std::memcpy(bad.data() + offset, &value, sizeof value);
    return message_of(bad);
  };
  EXPECT_NE(with(0, std::uint32_t{1}).find("magic"), std::string::npos);
  EXPECT_NE(with(4, std::uint16_t{2}).find("version 2"), std::string::npos);
  EXPECT_NE(with(8, ~std::uint64_t{0}), "");
  EXPECT_NE(with(16 + 4, std::uint32_t{8}), "");        // header of the image
  EXPECT_NE(with(16 + 8, std::uint64_t{1} << 40), "");  // its payload
  EXPECT_NE(with(16 + 40, std::uint64_t{0x2000}), "");  // no LZ4 in it
  Bytes huge = container({image(kind_ptx, 75, bytes_of("x"), 0x2011, std::uint64_t{1} << 50)});
  EXPECT_NE(message_of(huge).find("unpacks to"), std::string::npos);
}

}  // namespace
}  // namespace warpstack::cudart
