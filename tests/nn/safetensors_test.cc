#include "nn/safetensors.h"

#include <chrono>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "tests/nn/reference.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string File(const std::string& header, const std::string& data) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>((header.size() >> (8 * i)) & 0xFF);
  return out + header + data;
}

// The message of the Error(kCorrupt) that parsing must end in.
std::string Fault(const std::string& file) {
  try {
    ParseSafetensors(Bytes(file), "model.safetensors");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("model.safetensors: "));
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << file.substr(0, 200);
  return {};
}

std::string TemporaryFolder() {
  std::string folder = testing::TempDir() + "weft_safetensors_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(Safetensors, BytesAreThoseOfTheFormat) {
  TensorMap map;
  map.Set("b", Tensor::From<uint8_t>({3}, {1, 2, 255}));
  map.Set("a", Tensor::From<float>({1, 2}, {1.0f, -2.0f}));
  const std::string bytes = ToSafetensorsBytes(map, {{"format", "weft \"1\""}});
  const std::string header = R"({"__metadata__":{"format":"weft \"1\""},)"
                             R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},)"
                             R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(bytes, File(padded, std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0\x01\x02\xff", 11)));
}

TEST(Safetensors, WrittenMapsAreReadBackInOrderWithEveryDtype) {
  TensorMap map;
  map.Set("bytes", Tensor::From<uint8_t>({3}, {0, 7, 255}));
  map.Set("floats", Tensor::From<float>({2, 2}, {1.5f, -0.0f, 1e-45f, 3e38f}));
  map.Set("half", Tensor::From<BFloat16>({2}, {BFloat16{0x3f80}, BFloat16{0xc000}}));
  map.Set("doubles", Tensor::From<double>({1}, {0.1}));
  map.Set("ints", Tensor::From<int32_t>({2}, {-1, 1 << 30}));
  map.Set("longs", Tensor::From<int64_t>({}, {int64_t{-1} << 62}));
  map.Set("none", Tensor::Empty({0, 4}));
  map.Set("n\"a\\m\xc3\xa9\n", Tensor::Scalar(2));
  const std::string path = TemporaryFolder() + "/map.safetensors";
  WriteSafetensors(path, map, {{"step", "12"}, {"", ""}});
  SafetensorsMetadata metadata;
  const TensorMap read = ReadSafetensors(path, &metadata);
  EXPECT_EQ(Hash(read), Hash(map));
  ASSERT_EQ(read.size(), map.size());
  for (size_t i = 0; i < map.size(); ++i) {
    EXPECT_EQ(read.entry(i).first.text(), map.entry(i).first.text());
  }
  EXPECT_EQ(metadata, (SafetensorsMetadata{{"step", "12"}, {"", ""}}));
}

TEST(Safetensors, PanelsAreWrittenRowMajor) {
  const Tensor weight = Tensor::From<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  TensorMap panels, rows;
  panels.Set("w", weight.ToLayout(Layout::kPanels));
  rows.Set("w", weight);
  EXPECT_EQ(ToSafetensorsBytes(panels), ToSafetensorsBytes(rows));
}

TEST(Safetensors, EveryPrefixOfAFileIsRefused) {
  TensorMap map;
  map.Set("weight", Tensor::From<float>({2, 2}, {1, 2, 3, 4}));
  map.Set("bias", Tensor::From<float>({2}, {5, 6}));
  const std::string bytes = ToSafetensorsBytes(map, {{"k", "v"}});
  for (size_t size = 0; size < bytes.size(); ++size) Fault(bytes.substr(0, size));
}

TEST(Safetensors, EveryBitFlipInTheHeaderIsRefusedOrStillAValidContainer) {
  TensorMap map;
  map.Set("weight", Tensor::From<float>({2, 2}, {1, 2, 3, 4}));
  map.Set("id", Tensor::From<int64_t>({1}, {5}));
  const std::string bytes = ToSafetensorsBytes(map);
  const size_t header_end = bytes.size() - 24;
  int refused = 0;
  for (size_t i = 0; i < header_end; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      try {
        EXPECT_EQ(ParseSafetensors(Bytes(flipped), "f").bytes(), 24u);
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == ErrorCode::kCorrupt ||
                    error.code() == ErrorCode::kInvalidArgument);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(Safetensors, FaultsNameTheirPlace) {
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const std::string data(4, '\0');
  EXPECT_THAT(Fault(""), HasSubstr("byte 0"));
  EXPECT_THAT(Fault(File("{" + a + "," + a + "}", data)), HasSubstr("tensor \"a\" stands twice"));
  EXPECT_THAT(
      Fault(File(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", data)),
      HasSubstr("tensor \"a\" has dtype twice"));
  EXPECT_THAT(Fault(File(R"({"__metadata__":{"k":"1","k":"2"}})", "")),
              HasSubstr("metadata key stands twice"));
  EXPECT_THAT(Fault(File(R"({"__metadata__":{},"__metadata__":{}})", "")), HasSubstr("twice"));
  EXPECT_THAT(Fault(File("{" + a + "}", data + "x")), HasSubstr("1 bytes after the last tensor"));
  EXPECT_THAT(Fault(File("{" + a + R"(,"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})",
                         data + "xx")),
              HasSubstr("tensor \"b\": data begin at 5, leaving a hole after 4"));
  EXPECT_THAT(
      Fault(File("{" + a + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})", data + "x")),
      HasSubstr("inside another tensor"));
  EXPECT_THAT(Fault(File(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", data)),
              HasSubstr("byte 38: dimension must be a non-negative integer"));
  EXPECT_THAT(Fault(File(R"({"a":{"dtype":"F32","shape":[01],"data_offsets":[0,4]}})", data)),
              HasSubstr("non-negative integer"));
  EXPECT_THAT(Fault(File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", data)),
              HasSubstr("unknown field"));
  EXPECT_THAT(
      Fault(File(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})",
                 data)),
      HasSubstr("overflows"));
  EXPECT_THAT(Fault(File("{\"\xff\":{}}", "")), HasSubstr("byte 10: invalid UTF-8"));
  EXPECT_THAT(Fault(File("{\"\\ud800\":{}}", "")), HasSubstr("lone surrogate"));
  EXPECT_THAT(Fault(File("{}x", "")), HasSubstr("text after the header"));
  EXPECT_THAT(Fault(File(" {}", "")), HasSubstr("must begin with '{'"));
}

TEST(Safetensors, DtypesThatTensorsLackAreRefusedWithTheTensorsName) {
  try {
    ParseSafetensors(Bytes(File(R"({"w":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})", "xx")),
                     "f");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("tensor \"w\" has dtype F16"));
  }
}

TEST(Safetensors, HostileFilesAreRefusedQuickly) {
  WEFT_REQUIRE_REFERENCE();
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(ReferencePath("hostile/safetensors"))) {
    const std::string path = entry.path();
    const bool valid = path.find("values-") != std::string::npos;  // containers of NaN and Inf
    const auto begin = std::chrono::steady_clock::now();
    try {
      ReadSafetensors(path);
      EXPECT_TRUE(valid) << path << " was accepted";
    } catch (const Error& error) {
      EXPECT_FALSE(valid) << error.what();
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(path));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(50)) << path;
    ++files;
  }
  EXPECT_GE(files, 42);
}

TEST(Safetensors, UnusualValidFilesAreRead) {
  WEFT_REQUIRE_REFERENCE();
  const std::string folder = ReferencePath("language/safetensors_quirks/");
  const TensorMap plain = ReadSafetensors(folder + "space_padded_header.safetensors");
  for (const char* name : {"unsorted_offsets", "header_not_multiple_of_8", "pretty_printed_header",
                           "empty_and_scalar"}) {
    const TensorMap map = ReadSafetensors(folder + name + ".safetensors");
    for (const char* tensor : {"a", "b", "c"}) {
      ExpectClose(map.At(tensor), plain.At(tensor), 0, 0, std::string(name) + " " + tensor);
    }
  }
  EXPECT_NEAR(Element(plain.At("a"), 0), 0.7594475150108337, 0);
  SafetensorsMetadata metadata;
  EXPECT_TRUE(ReadSafetensors(folder + "metadata_only.safetensors", &metadata).empty());
  EXPECT_FALSE(metadata.empty());
  for (const char* name : {"odd_names", "odd_names_escaped"}) {
    const TensorMap map = ReadSafetensors(folder + name + ".safetensors");
    ExpectClose(map.At("we\"ird\\name/\u00e9\u6f22\U0001F600"), plain.At("a"), 0, 0, name);
    ExpectClose(map.At(""), plain.At("c"), 0, 0, name);
  }
}

}  // namespace
}  // namespace weft
