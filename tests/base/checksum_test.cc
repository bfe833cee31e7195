#include <gtest/gtest.h>
#include <numeric>

#include "base/file.h"

namespace weft {
namespace {

std::span<const uint8_t> Bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(Crc32c, GivesTheAnswersOfRfc3720) {
  EXPECT_EQ(Crc32c(Bytes("123456789")), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::vector<uint8_t>(32, 0)), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::vector<uint8_t>(32, 0xFF)), 0x62A8AB43u);
  std::vector<uint8_t> rising(32);
  std::iota(rising.begin(), rising.end(), uint8_t{0});
  EXPECT_EQ(Crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(Crc32c({}), 0u);
}

TEST(Crc32c, ContinuesOverParts) {
  std::vector<uint8_t> bytes(1001);
  std::iota(bytes.begin(), bytes.end(), uint8_t{3});
  const std::span<const uint8_t> whole(bytes);
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{7}, size_t{500}, size_t{1001}}) {
    EXPECT_EQ(Crc32c(whole.subspan(cut), Crc32c(whole.first(cut))), Crc32c(whole));
  }
}

TEST(Sha256, GivesTheAnswersOfTheStandard) {
  EXPECT_EQ(Sha256({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256(Bytes("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256(Bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256(std::vector<uint8_t>(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The padding changes its form at 55, 56 and 64 bytes; sums by coreutils' sha256sum.
TEST(Sha256, PadsEveryLengthAroundABlock) {
  EXPECT_EQ(Sha256(std::vector<uint8_t>(55, 'x')),
            "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  EXPECT_EQ(Sha256(std::vector<uint8_t>(56, 'x')),
            "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  EXPECT_EQ(Sha256(std::vector<uint8_t>(64, 'x')),
            "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
}

}  // namespace
}  // namespace weft
