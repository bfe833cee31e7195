// Read back with a parser of its own, written from the formats' descriptions.
#include "base/event_file.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <map>

#include "base/file.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

struct ParsedEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;
  std::map<std::string, float> scalars;
};

uint64_t TakeVarint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.at(0));
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

// Calls field(number, varint or bits, bytes) for each field of a message.
template <class Field>
void ForEachField(std::string_view message, Field field) {
  while (!message.empty()) {
    const uint64_t tag = TakeVarint(message);
    uint64_t bits = 0;
    std::string_view bytes;
    const size_t fixed = tag % 8 == 1 ? 8 : tag % 8 == 5 ? 4 : 0;
    if (tag % 8 == 0) bits = TakeVarint(message);
    if (tag % 8 == 2) {
      const uint64_t size = TakeVarint(message);
      bytes = message.substr(0, size);
      message.remove_prefix(size);
    }
    std::memcpy(&bits, message.data(), fixed);
    message.remove_prefix(fixed);
    field(tag / 8, bits, bytes);
  }
}

uint32_t Masked(std::string_view bytes) {
  const uint32_t crc = Crc32c({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

ParsedEvent ParseEvent(std::string_view message) {
  ParsedEvent event;
  ForEachField(message, [&](uint64_t number, uint64_t bits, std::string_view bytes) {
    if (number == 1) std::memcpy(&event.wall_time, &bits, 8);
    if (number == 2) event.step = static_cast<int64_t>(bits);
    if (number == 3) event.file_version = bytes;
    if (number != 5) return;
    ForEachField(bytes, [&](uint64_t, uint64_t, std::string_view value) {
      std::string tag;
      float scalar = NAN;
      ForEachField(value, [&](uint64_t part, uint64_t part_bits, std::string_view part_bytes) {
        if (part == 1) tag = part_bytes;
        if (part == 2) std::memcpy(&scalar, &part_bits, 4);
      });
      event.scalars[tag] = scalar;
    });
  });
  return event;
}

std::vector<ParsedEvent> ReadEvents(const std::string& path) {
  const std::string file = ReadFile(path);
  std::string_view bytes = file;
  std::vector<ParsedEvent> events;
  while (!bytes.empty()) {
    uint64_t length = 0;
    uint32_t length_crc = 0, crc = 0;
    std::memcpy(&length, bytes.data(), 8);
    std::memcpy(&length_crc, bytes.data() + 8, 4);
    EXPECT_EQ(length_crc, Masked(bytes.substr(0, 8)));
    const std::string_view message = bytes.substr(12, length);
    std::memcpy(&crc, bytes.data() + 12 + length, 4);
    EXPECT_EQ(crc, Masked(message));
    events.push_back(ParseEvent(message));
    bytes.remove_prefix(16 + length);
  }
  return events;
}

void WriteEvent(EventFile& file, int64_t step, double loss) {
  file.Begin(1000.5 + static_cast<double>(step), step);
  file.Scalar("loss", loss);
  file.Scalar("return", 2.5);
  EXPECT_EQ(file.End(), "");
}

TEST(EventFile, RecordsReadBackWithGoodChecksums) {
  const TemporaryFolder folder;
  {
    EventFile file(folder.Path("events"), 0);
    WriteEvent(file, 100, -0.25);
    WriteEvent(file, int64_t{1} << 40, NAN);
  }
  const auto events = ReadEvents(folder.Path("events"));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[1].step, 100);
  EXPECT_EQ(events[1].wall_time, 1100.5);
  EXPECT_EQ(events[1].scalars, (std::map<std::string, float>{{"loss", -0.25f}, {"return", 2.5f}}));
  EXPECT_EQ(events[2].step, int64_t{1} << 40);
  EXPECT_EQ(events[2].scalars, (std::map<std::string, float>{{"return", 2.5f}}));
}

// The first twelve bytes of every event file that TensorFlow writes.
TEST(EventFile, StartsAsTensorFlowsFilesDo) {
  const TemporaryFolder folder;
  { EventFile file(folder.Path("events"), 0); }
  EXPECT_EQ(ReadFile(folder.Path("events")).substr(0, 12),
            std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
}

TEST(EventFile, ResumingCutsLaterStepsAndAnUnfinishedRecord) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("events");
  {
    EventFile file(path, 0);
    for (const int64_t step : {100, 200, 300}) WriteEvent(file, step, 1);
  }
  const std::string whole = ReadFile(path);
  WriteFileAtomic(path, whole + whole.substr(0, 20));
  {
    EventFile file(path, 200);
    WriteEvent(file, 250, 2);
  }
  const auto events = ReadEvents(path);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[2].step, 200);
  EXPECT_EQ(events[3].step, 250);
  // Whatever is cut or damaged, the file opens and what follows is readable.
  for (size_t size = 0; size < whole.size(); size += 7) {
    WriteFileAtomic(path, whole.substr(0, size) + "damage");
    {
      EventFile file(path, 1000);
      WriteEvent(file, 400, 3);
    }
    EXPECT_EQ(ReadEvents(path).back().step, 400);
  }
}

}  // namespace
}  // namespace weft
