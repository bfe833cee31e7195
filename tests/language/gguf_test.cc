#include "language/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/file.h"
#include "tests/nn/reference.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

template <class T>
std::string Raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}
std::string Text(const std::string& text) {
  return Raw<uint64_t>(text.size()) + text;
}

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string Head(uint64_t tensors, uint64_t values, uint32_t version = 3) {
  return "GGUF" + Raw(version) + Raw(tensors) + Raw(values);
}
std::string Description(const std::string& name, const std::vector<uint64_t>& ne, uint32_t type,
                        uint64_t offset) {
  std::string out = Text(name) + Raw(static_cast<uint32_t>(ne.size()));
  for (const uint64_t n : ne) out += Raw(n);
  return out + Raw(type) + Raw(offset);
}
std::string Padded(std::string text, size_t alignment = 32) {
  text.resize((text.size() + alignment - 1) / alignment * alignment, '\0');
  return text;
}

std::string Fault(const std::string& bytes) {
  try {
    const GgufFile file(Bytes(bytes), "m.gguf");
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("m.gguf: "));
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(Gguf, ReadsAFileWrittenByHand) {
  const std::string data = Raw(1.0f) + Raw(2.0f) + Raw(3.0f) + Raw(4.0f) + Raw(5.0f) + Raw(6.0f);
  const std::string bytes =
      Padded(Head(1, 3) + Text("a") + Raw(uint32_t{6}) + Raw(0.5f) + Text("b") + Raw(uint32_t{9}) +
             Raw(uint32_t{8}) + Raw(uint64_t{2}) + Text("x") + Text("") + Text("c") +
             Raw(uint32_t{7}) + Raw(uint8_t{1}) + Description("w", {3, 2}, 0, 0)) +
      data;
  const GgufFile file(Bytes(bytes), "m.gguf");
  double number = 0;
  EXPECT_TRUE(file.Find("a")->GetDouble(number));
  EXPECT_EQ(number, 0.5);
  std::vector<std::string> strings;
  EXPECT_TRUE(file.Find("b")->GetStrings(strings));
  EXPECT_EQ(strings, (std::vector<std::string>{"x", ""}));
  bool flag = false;
  EXPECT_TRUE(file.Find("c")->GetBool(flag));
  EXPECT_TRUE(flag);
  int64_t integer = 0;
  EXPECT_FALSE(file.Find("a")->GetInteger(integer));
  EXPECT_EQ(file.Find("d"), nullptr);
  const GgufTensor* tensor = file.FindTensor("w");
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::string(tensor->bytes.begin(), tensor->bytes.end()), data);
}

TEST(Gguf, NamesFileByteAndReason) {
  EXPECT_THAT(Fault("GGUX"), HasSubstr("byte 0: no GGUF file"));
  EXPECT_THAT(Fault("GGUF" + Raw(uint32_t{0x03000000}) + Raw(uint64_t{0}) + Raw(uint64_t{0})),
              HasSubstr("byte 4: a big-endian file"));
  EXPECT_THAT(Fault(Head(0, 0, 1)), HasSubstr("version 1"));
  EXPECT_THAT(Fault(Head(0, uint64_t{1} << 40)), HasSubstr("1099511627776 metadata values"));
  EXPECT_THAT(Fault(Head(0, 1) + Raw(~uint64_t{0}) + "abcdefgh"),
              HasSubstr("inside a metadata key"));
  EXPECT_THAT(Fault(Head(0, 1) + Text("k") + Raw(uint32_t{13}) + "        "),
              HasSubstr("unknown value type 13"));
  EXPECT_THAT(Fault(Head(0, 1) + Text("k") + Raw(uint32_t{7}) + "\x02"), HasSubstr("a bool is 2"));
  const std::string value = Text("k") + Raw(uint32_t{0}) + "1";
  EXPECT_THAT(Fault(Head(0, 2) + value + value), HasSubstr("metadata key \"k\" stands twice"));

  const auto with = [](const std::string& description, size_t data_bytes) {
    return Padded(Head(1, 0) + description) + std::string(data_bytes, 'x');
  };
  EXPECT_THAT(Fault(with(Description("w", {33}, 2, 0), 64)), HasSubstr("rows of 33 elements"));
  EXPECT_THAT(Fault(with(Description("w", {32}, 4, 0), 64)), HasSubstr("the unknown type 4"));
  EXPECT_THAT(Fault(with(Description("w", {256}, 23, 0), 64)),
              HasSubstr("type IQ4_XS; weft reads"));
  EXPECT_THAT(Fault(with(Description("w", {16}, 0, 8), 64)), HasSubstr("not aligned to 32"));
  EXPECT_THAT(Fault(with(Description("w", {32}, 0, 0), 64)),
              HasSubstr("does not lie in the 64 bytes of data"));
  EXPECT_THAT(Fault(with(Description("w", {uint64_t{1} << 32, uint64_t{1} << 32}, 0, 0), 64)),
              HasSubstr("overflows 64 bits"));
  EXPECT_THAT(Fault(with(Description("w", {8}, 0, 0), 64)), HasSubstr("32 bytes after the last"));
  EXPECT_THAT(
      Fault(Padded(Head(2, 0) + Description("v", {16}, 0, 0) + Description("w", {16}, 0, 32)) +
            std::string(96, 'x')),
      HasSubstr("lies inside another tensor"));
}

TEST(Gguf, ReadsEveryValueTypeInBothVersions) {
  WEFT_REQUIRE_REFERENCE();
  for (const char* version : {"v2", "v3"}) {
    const GgufFile file(
        ReferencePath(std::string("language/gguf/quirks-align64-") + version + ".gguf"));
    EXPECT_EQ(file.alignment(), 64u);
    const auto integer = [&](const char* key) {
      int64_t value = -1;
      EXPECT_TRUE(file.Find(key)->GetInteger(value)) << key;
      return value;
    };
    EXPECT_EQ(integer("t.u8"), 200);
    EXPECT_EQ(integer("t.i8"), -100);
    EXPECT_EQ(integer("t.u16"), 60000);
    EXPECT_EQ(integer("t.i16"), -30000);
    EXPECT_EQ(integer("t.u32"), 4'000'000'000);
    EXPECT_EQ(integer("t.i32"), -2'000'000'000);
    EXPECT_EQ(integer("t.i64"), -4611686018427387904);
    int64_t value = 7;
    EXPECT_FALSE(file.Find("t.u64")->GetInteger(value));  // beyond an int64
    double number = 0;
    EXPECT_TRUE(file.Find("t.f64")->GetDouble(number));
    EXPECT_EQ(number, 1e300);
    std::string_view text;
    EXPECT_TRUE(file.Find("t.string")->GetString(text));
    EXPECT_EQ(text, std::string_view("caf\xC3\xA9 \xF0\x9F\x98\x80 \0 nul", 16));
    std::vector<int64_t> integers;
    EXPECT_TRUE(file.Find("a.i32")->GetIntegers(integers));
    EXPECT_EQ(integers, (std::vector<int64_t>{1, -2, 3}));
    std::vector<float> floats;
    EXPECT_TRUE(file.Find("a.f32")->GetFloats(floats));
    EXPECT_EQ(floats, (std::vector<float>{0.5f, -0.25f}));
    for (const GgufTensor& tensor : file.tensors()) EXPECT_EQ(tensor.offset % 64, 0u);
  }
}

}  // namespace
}  // namespace weft
