#include "nn/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "nn/json_cursor.h"

namespace weft {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // safetensors' own limit
constexpr size_t kMaxTensors = 1 << 16;
constexpr size_t kMaxMapTensors = 1 << 14;  // a TensorMap is searched from its beginning
constexpr size_t kMaxNameBytes = 1 << 16;
constexpr std::string_view kMetadataKey = "__metadata__";

// A dtype of the format; tensor is what weft reads it into, if anything.
struct FileType {
  std::string_view name;
  uint64_t bytes;
  std::optional<DType> tensor;
};
constexpr std::array<FileType, 15> kFileTypes = {{
    {"F32", 4, DType::kFloat32},
    {"BF16", 2, DType::kBFloat16},
    {"F64", 8, DType::kFloat64},
    {"I32", 4, DType::kInt32},
    {"I64", 8, DType::kInt64},
    {"U8", 1, DType::kUInt8},
    {"BOOL", 1, DType::kUInt8},
    {"F16", 2, {}},
    {"I8", 1, {}},
    {"I16", 2, {}},
    {"U16", 2, {}},
    {"U32", 4, {}},
    {"U64", 8, {}},
    {"F8_E4M3", 1, {}},
    {"F8_E5M2", 1, {}},
}};

const FileType* FindFileType(std::string_view name) {
  const auto found = std::find_if(kFileTypes.begin(), kFileTypes.end(),
                                  [&](const FileType& type) { return type.name == name; });
  return found == kFileTypes.end() ? nullptr : &*found;
}

std::string Quoted(std::string_view name) {
  return "tensor \"" + std::string(name.substr(0, 200)) + "\"";
}

[[noreturn]] void Corrupt(std::string_view file, const std::string& reason) {
  throw Error(ErrorCode::kCorrupt, std::string(file) + ": " + reason);
}

Shape ReadShape(JsonCursor& json) {
  std::array<int64_t, Shape::kMaxRank> dims{};
  size_t rank = 0;
  int64_t elements = 1;
  json.Expect('[', "to begin the shape");
  if (json.Take(']')) return Shape();
  do {
    if (rank == dims.size()) json.Fail("shape has more than 6 dimensions");
    const int64_t dim = json.Unsigned("dimension");
    if (__builtin_mul_overflow(elements, std::max<int64_t>(dim, 1), &elements)) {
      json.Fail("the shape overflows 64 bits");
    }
    dims[rank++] = dim;
  } while (json.Take(','));
  json.Expect(']', "to end the shape");
  return Shape(std::span<const int64_t>(dims.data(), rank));
}

// The object after a tensor's name: dtype, shape and data_offsets, each exactly once, in any order.
SafetensorsEntry ReadEntry(JsonCursor& json, std::string name) {
  SafetensorsEntry entry;
  entry.name = std::move(name);
  bool has_dtype = false, has_shape = false, has_offsets = false;
  json.Expect('{', "to begin the description of a tensor");
  do {
    const std::string key = json.String("key", kMaxNameBytes);
    json.Expect(':', "after a key");
    bool* seen = key == "dtype"          ? &has_dtype
                 : key == "shape"        ? &has_shape
                 : key == "data_offsets" ? &has_offsets
                                         : nullptr;
    if (!seen) json.Fail(Quoted(entry.name) + " has an unknown field");
    if (*seen) json.Fail(Quoted(entry.name) + " has " + key + " twice");
    *seen = true;
    if (key == "dtype") {
      const std::string dtype = json.String("dtype", kMaxNameBytes);
      const FileType* type = FindFileType(dtype);
      if (!type) json.Fail(Quoted(entry.name) + " has an unknown dtype");
      entry.dtype = type->name;
    } else if (key == "shape") {
      entry.shape = ReadShape(json);
    } else {
      json.Expect('[', "to begin data_offsets");
      entry.begin = static_cast<uint64_t>(json.Unsigned("offset"));
      json.Expect(',', "between the two offsets");
      entry.end = static_cast<uint64_t>(json.Unsigned("offset"));
      json.Expect(']', "after the two offsets");
    }
  } while (json.Take(','));
  json.Expect('}', "to end the description of a tensor");
  if (!has_dtype || !has_shape || !has_offsets) {
    json.Fail(Quoted(entry.name) + " needs dtype, shape and data_offsets");
  }
  return entry;
}

SafetensorsMetadata ReadMetadata(JsonCursor& json) {
  SafetensorsMetadata metadata;
  json.Expect('{', "to begin __metadata__");
  if (json.Take('}')) return metadata;
  do {
    std::string key = json.String("metadata key", kMaxNameBytes);
    json.Expect(':', "after a metadata key");
    std::string value = json.String("metadata value", kMaxHeaderBytes);
    if (!metadata.emplace(std::move(key), std::move(value)).second) {
      json.Fail("a metadata key stands twice");
    }
  } while (json.Take(','));
  json.Expect('}', "to end __metadata__");
  return metadata;
}

// Every entry's bytes fit its shape, and together they cover [0, data_bytes) once.
void CheckCoverage(const SafetensorsHeader& header, uint64_t data_bytes, std::string_view file) {
  std::vector<const SafetensorsEntry*> order;
  order.reserve(header.entries.size());
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.end < entry.begin || entry.end > data_bytes) {
      Corrupt(file, Quoted(entry.name) + ": data_offsets [" + std::to_string(entry.begin) + ", " +
                        std::to_string(entry.end) + "] do not lie in the " +
                        std::to_string(data_bytes) + " bytes of data");
    }
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(entry.shape.elements()),
                               FindFileType(entry.dtype)->bytes, &bytes)) {
      Corrupt(file, Quoted(entry.name) + ": the shape overflows 64 bits");
    }
    if (entry.end - entry.begin != bytes) {
      Corrupt(file, Quoted(entry.name) + ": shape " + entry.shape.ToString() + " needs " +
                        std::to_string(bytes) + " bytes but data_offsets give " +
                        std::to_string(entry.end - entry.begin));
    }
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  uint64_t position = 0;
  for (const SafetensorsEntry* entry : order) {
    if (entry->begin != position) {
      Corrupt(file, Quoted(entry->name) + ": data begin at " + std::to_string(entry->begin) +
                        (entry->begin < position ? ", inside another tensor that ends at "
                                                 : ", leaving a hole after ") +
                        std::to_string(position));
    }
    position = entry->end;
  }
  if (position != data_bytes) {
    Corrupt(file, "byte " + std::to_string(header.data_begin + position) + ": " +
                      std::to_string(data_bytes - position) + " bytes after the last tensor");
  }
}

uint64_t LogicalBytes(const Tensor& tensor) {
  return static_cast<uint64_t>(tensor.elements()) * SizeOf(tensor.dtype());
}

}  // namespace

SafetensorsHeader ParseSafetensorsHeader(std::span<const uint8_t> file, std::string_view name) {
  if (file.size() < kLengthBytes) {
    Corrupt(name, "byte " + std::to_string(file.size()) +
                      ": the file ends inside the length of its header");
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= uint64_t{file[i]} << (8 * i);
  if (length > kMaxHeaderBytes || length > file.size() - kLengthBytes) {
    Corrupt(name, "byte 0: the header claims " + std::to_string(length) + " bytes, the file has " +
                      std::to_string(file.size() - kLengthBytes) + " and the limit is " +
                      std::to_string(kMaxHeaderBytes));
  }
  const auto text = file.subspan(kLengthBytes, length);
  JsonCursor json(text, name, kLengthBytes);
  if (text.empty() || text[0] != '{') json.Fail("the header must begin with '{'");

  SafetensorsHeader header;
  header.data_begin = kLengthBytes + length;
  std::set<std::string, std::less<>> names;
  json.Expect('{', "to begin the header");
  if (!json.Take('}')) {
    do {
      std::string key = json.String("tensor name", kMaxNameBytes);
      if (!names.insert(key).second) json.Fail(Quoted(key) + " stands twice");
      if (names.size() > kMaxTensors) {
        json.Fail("more than " + std::to_string(kMaxTensors) + " tensors");
      }
      json.Expect(':', "after a name");
      if (key == kMetadataKey) {
        header.metadata = ReadMetadata(json);
      } else {
        header.entries.push_back(ReadEntry(json, std::move(key)));
      }
    } while (json.Take(','));
    json.Expect('}', "to end the header");
  }
  if (!json.AtEnd()) json.Fail("text after the header's object");
  CheckCoverage(header, file.size() - header.data_begin, name);
  return header;
}

TensorMap ParseSafetensors(std::span<const uint8_t> file, std::string_view name,
                           SafetensorsMetadata* metadata) {
  SafetensorsHeader header = ParseSafetensorsHeader(file, name);
  if (header.entries.size() > kMaxMapTensors) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(name) + ": " + std::to_string(header.entries.size()) +
                    " tensors, a map holds at most " + std::to_string(kMaxMapTensors));
  }
  TensorMap tensors;
  for (const SafetensorsEntry& entry : header.entries) {
    const std::optional<DType> dtype = FindFileType(entry.dtype)->tensor;
    if (!dtype) {
      throw Error(ErrorCode::kInvalidArgument,
                  std::string(name) + ": " + Quoted(entry.name) + " has dtype " +
                      std::string(entry.dtype) +
                      "; weft reads F32, BF16, F64, I32, I64, U8 and BOOL");
    }
    Tensor tensor = Tensor::Empty(entry.shape, *dtype);
    const uint64_t bytes = entry.end - entry.begin;
    if (bytes > 0) std::memcpy(tensor.raw(), file.data() + header.data_begin + entry.begin, bytes);
    tensors.Set(std::string_view(entry.name), std::move(tensor));
  }
  if (metadata) *metadata = std::move(header.metadata);
  return tensors;
}

TensorMap ReadSafetensors(const std::string& path, SafetensorsMetadata* metadata) {
  const MappedFile file(path);
  return ParseSafetensors(file.bytes(), path, metadata);
}

namespace {

// Calls write(bytes) for the parts of the file in order, a tensor at a time.
template <class F>
void Serialise(const TensorMap& tensors, const SafetensorsMetadata& metadata, F&& write) {
  // Data by falling element size; within one size in the map's order.
  std::vector<size_t> order(tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return SizeOf(tensors.entry(a).second.dtype()) > SizeOf(tensors.entry(b).second.dtype());
  });
  std::vector<uint64_t> begins(tensors.size());
  uint64_t data_bytes = 0;
  for (const size_t index : order) {
    begins[index] = data_bytes;
    data_bytes += LogicalBytes(tensors.entry(index).second);
  }

  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      if (header.back() != '{') header += ',';
      AppendJsonQuoted(key, header);
      header += ':';
      AppendJsonQuoted(value, header);
    }
    header += '}';
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors.entry(i);
    WEFT_CHECK(tensor.defined()) << Quoted(name.text()) << " is undefined and cannot be written";
    WEFT_CHECK(name.text() != kMetadataKey) << "a tensor cannot have the name __metadata__";
    if (header.back() != '{') header += ',';
    AppendJsonQuoted(name.text(), header);
    header += std::string(":{\"dtype\":\"") + Name(tensor.dtype()) + "\",\"shape\":[";
    for (int d = 0; d < tensor.shape().rank(); ++d) {
      if (d > 0) header += ',';
      header += std::to_string(tensor.dim(d));
    }
    header += "],\"data_offsets\":[" + std::to_string(begins[i]) + "," +
              std::to_string(begins[i] + LogicalBytes(tensor)) + "]}";
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');

  std::string length;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length += static_cast<char>((uint64_t{header.size()} >> (8 * i)) & 0xFF);
  }
  write(length);
  write(header);
  for (const size_t index : order) {
    const Tensor tensor = tensors.entry(index).second.ToLayout(Layout::kRowMajor);
    if (const uint64_t bytes = LogicalBytes(tensor); bytes > 0) {
      write(std::string_view(reinterpret_cast<const char*>(tensor.raw()), bytes));
    }
  }
}

}  // namespace

std::string ToSafetensorsBytes(const TensorMap& tensors, const SafetensorsMetadata& metadata) {
  std::string out;
  Serialise(tensors, metadata, [&](std::string_view bytes) { out += bytes; });
  return out;
}

void WriteSafetensors(const std::string& path, const TensorMap& tensors,
                      const SafetensorsMetadata& metadata) {
  WriteFileAtomic(path, [&](const std::string& temporary) {
    AppendFile file(temporary, 0);
    Serialise(tensors, metadata, [&](std::string_view bytes) {
      const std::string refusal = file.Append(bytes);
      if (!refusal.empty()) throw Error(ErrorCode::kIo, path + ": " + refusal);
    });
  });
}

}  // namespace weft
